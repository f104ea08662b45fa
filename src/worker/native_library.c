#include "native_library.h"

#include "native_text.h"

/* From libdl.so.2, in the oldest version that each architecture has (native.map). Declared here, not by dlfcn.h: that
 * header follows the libc of the build machine. Weak, for the start without a loader. */
extern void *dlopen(const char *name, int flags) __attribute__((weak, visibility("default")));
extern void *dlsym(void *library, const char *name) __attribute__((weak, visibility("default")));
extern char *dlerror(void) __attribute__((weak, visibility("default")));

enum { LIBRARY_LAZY = 1 /* RTLD_LAZY of glibc and musl */ };

/* dladdr of glibc and musl; Dl_info is four pointers, the first of them the path of the object. */
typedef int library_dladdr(const void *address, const void *info[4]);

/* In this order: a stub below /usr/lib is a stub, a python package below /usr/lib a python package. */
static const struct {
	bool anywhere; /* the text may stand in the middle */
	char text[24], origin[16];
} ORIGINS[] = {
        {true, "/stubs/", "stub"},
        {true, "/compat/", "compat"},
        {true, "/wsl/", "wsl"},
        {true, "/site-packages/", "python-package"},
        {true, "/dist-packages/", "python-package"},
        {true, "/_rocm_sdk", "python-package"},
        {true, "/torch/lib/", "python-package"},
        {false, "/lib/", "system"},
        {false, "/lib64/", "system"},
        {false, "/usr/lib/", "system"},
        {false, "/usr/lib64/", "system"},
        {false, "/usr/local/nvidia/", "system"},  /* where GKE mounts the node's driver */
        {false, "/run/opengl-driver/", "system"}, /* NixOS */
        {false, "/opt/rocm", "system"},
};

/* What the loader said begins with the object at fault, "NAME: reason" (glibc), or has it after "library " (musl). The
 * name is a fact; the reason is not looked at. */
static void library_culprit(const char *said, const char *name, char *missing, size_t size)
{
	static const char MUSL[] = "Error loading shared library ";
	char object[256];
	size_t length = 0;

	if (said && text_starts(said, MUSL))
		said += sizeof MUSL - 1;
	while (said && said[length] && said[length] != ':' && said[length] != ' ' && length + 1 < sizeof object) {
		object[length] = said[length];
		length++;
	}
	object[length] = '\0';
	text_copy(missing, size, text_base(text_contains(object, ".so") ? object : name));
}

void *library_load(const char *name, char *missing, size_t missing_size)
{
	void *library = dlopen(name, LIBRARY_LAZY);
	const char *said = library ? NULL : dlerror();

	if (!library && missing)
		library_culprit(said, name, missing, missing_size);
	return library;
}

void *library_symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

const char *library_origin(void *symbol)
{
	library_dladdr *address_info = (library_dladdr *)dlsym(NULL, "dladdr");
	const void *info[4] = {NULL};
	const char *path;

	if (!address_info || !address_info(symbol, info) || !info[0])
		return "other";
	path = info[0];
	for (size_t i = 0; i < sizeof ORIGINS / sizeof *ORIGINS; i++)
		if (ORIGINS[i].anywhere ? text_contains(path, ORIGINS[i].text) : text_starts(path, ORIGINS[i].text))
			return ORIGINS[i].origin;
	return "other";
}

bool library_is_musl(void)
{
	return !dlsym(NULL, "gnu_get_libc_version");
}

void library_libc(char *text, size_t size)
{
	const char *(*version)(void) = (const char *(*)(void))dlsym(NULL, "gnu_get_libc_version");

	text_copy(text, size, version ? "glibc " : "musl");
	if (version)
		text_append(text, size, version());
}
