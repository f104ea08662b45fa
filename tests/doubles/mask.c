/* Which devices a process sees: the variables of the real drivers, as the real drivers read them. */
#include "double.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Devices differ from their first hex digits on, so that a short prefix can name one: d0..., d1..., and so on. */
void mask_uuid_bytes(int physical, uint8_t uuid[16])
{
	static const uint8_t rest[15] = {0x0b, 0x1e, 0, 0, 0, 0x4b, 0x44, 0x80, 0, 0, 0, 0, 0, 0, 1};

	uuid[0] = (uint8_t)(0xd0 + physical);
	memcpy(uuid + 1, rest, sizeof rest);
}

void mask_uuid_cuda(int physical, char text[48])
{
	uint8_t u[16];

	mask_uuid_bytes(physical, u);
	(void)snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
	               u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

void mask_uuid_hip(int physical, char text[48])
{
	uint8_t u[16];

	mask_uuid_bytes(physical, u);
	(void)snprintf(text, 48, "GPU-%02x%02x%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4], u[5], u[6],
	               u[7]);
}

static int see_all(int devices, int visible[DOUBLE_DEVICES_MAX])
{
	for (int i = 0; i < devices; i++)
		visible[i] = i;
	return devices;
}

static bool seen(const int *visible, int count, int device)
{
	for (int i = 0; i < count; i++) {
		if (visible[i] == device)
			return true;
	}
	return false;
}

/* The next element of a list: its start and length, blanks trimmed; false at the end. */
static bool next_token(const char **cursor, const char **token, size_t *length)
{
	const char *start = *cursor;

	if (!start)
		return false;
	*length = strcspn(start, ",");
	*cursor = start[*length] ? start + *length + 1 : NULL;
	while (*length && isspace((unsigned char)*start)) {
		start++;
		(*length)--;
	}
	while (*length && isspace((unsigned char)start[*length - 1]))
		(*length)--;
	*token = start;
	return true;
}

/* The only device whose UUID begins so; -1 when there is none or more than one. */
static int by_prefix(void (*uuid)(int, char[48]), int devices, const char *token, size_t length)
{
	int found = -1;

	for (int i = 0; i < devices; i++) {
		char text[48];
		uuid(i, text);
		if (strncasecmp(text, token, length) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* As strtoul would: leading digits count, what follows them does not; -1 where there are none. */
static int cuda_index(const char *token, size_t length)
{
	char text[16] = "";
	long number;

	memcpy(text, token, length < sizeof text ? length : sizeof text - 1);
	if (!isdigit((unsigned char)text[text[0] == '+']))
		return -1;
	number = strtol(text, NULL, 10);
	return number < DOUBLE_DEVICES_MAX ? (int)number : -1;
}

/* CUDA programming guide, "CUDA Environment Variables": indices or UUID prefixes; the first invalid one ends the list,
 * an empty list hides everything. A repeated device empties the list (driver behaviour that PyTorch's
 * torch/cuda/__init__.py re-enacts for NVML counting). MIG-... never matches: these devices have no instances. */
int mask_cuda(int devices, int visible[DOUBLE_DEVICES_MAX])
{
	const char *cursor = getenv("CUDA_VISIBLE_DEVICES"), *token;
	size_t length;
	int count = 0;

	if (!cursor)
		return see_all(devices, visible);
	while (count < DOUBLE_DEVICES_MAX && next_token(&cursor, &token, &length)) {
		bool named = length > 4 && strncmp(token, "GPU-", 4) == 0;
		int device = named ? by_prefix(mask_uuid_cuda, devices, token, length) : cuda_index(token, length);

		if (device < 0 || device >= devices)
			break;
		if (seen(visible, count, device))
			return 0;
		visible[count++] = device;
	}
	return count;
}

/* ROCR_VISIBLE_DEVICES, as ROCR-Runtime's amd_filter_device.cpp reads it: set but empty hides everything; UUID prefixes
 * of 5 to 20 characters in any case; the first invalid or repeated element ends the list. */
static int mask_rocr(int devices, int visible[DOUBLE_DEVICES_MAX])
{
	const char *cursor = getenv("ROCR_VISIBLE_DEVICES"), *token;
	size_t length;
	int count = 0;

	if (!cursor)
		return see_all(devices, visible);
	while (count < devices && next_token(&cursor, &token, &length)) {
		int device = -1;

		if (length && toupper((unsigned char)*token) == 'G') {
			if (length >= 5 && length <= 20)
				device = by_prefix(mask_uuid_hip, devices, token, length);
		} else if (length) {
			char *end;
			long number = strtol(token, &end, 0);
			if (end == token + length && number >= 0 && number < devices)
				device = (int)number;
		}
		if (device < 0 || device >= devices || seen(visible, count, device))
			break;
		visible[count++] = device;
	}
	return count;
}

/* HIP_VISIBLE_DEVICES, or where that is unset or empty CUDA_VISIBLE_DEVICES, over what ROCr shows, as clr's
 * rocclr/device/rocm/rocdevice.cpp reads them: an empty text hides nothing; plain decimal ordinals, or a part of a
 * UUID; the first invalid one ends the list, a repeated one is passed over. No blanks are trimmed: "0, 1" is device 0.
 */
int mask_hip(int devices, int visible[DOUBLE_DEVICES_MAX])
{
	int below[DOUBLE_DEVICES_MAX], below_count = mask_rocr(devices, below), count = 0;
	const char *list = getenv("HIP_VISIBLE_DEVICES");

	if (!list || !*list)
		list = getenv("CUDA_VISIBLE_DEVICES");
	if (!list || !*list) {
		memcpy(visible, below, sizeof below);
		return below_count;
	}
	while (*list && count < DOUBLE_DEVICES_MAX) {
		char token[64] = "", plain[16];
		size_t length = strcspn(list, ",");
		int index = -1;

		memcpy(token, list, length < sizeof token ? length : sizeof token - 1);
		for (int i = 0; index < 0 && i < below_count && strstr(token, "GPU-"); i++) {
			char uuid[48];
			mask_uuid_hip(below[i], uuid);
			if (strstr(uuid, token))
				index = i;
		}
		for (int i = 0; index < 0 && i < below_count; i++) {
			(void)snprintf(plain, sizeof plain, "%d", i);
			if (strcmp(plain, token) == 0)
				index = i;
		}
		if (index < 0)
			break;
		if (!seen(visible, count, below[index]))
			visible[count++] = below[index];
		list += length + (list[length] == ',');
	}
	return count;
}
