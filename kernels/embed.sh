#!/bin/sh
# embed.sh PTX [ARCHITECTURE=FILE]...
# Prints the C header that carries the kernels: the PTX as text, the AMD code objects in the order given. The output
# depends on the files' bytes alone.
set -eu
export LC_ALL=C

ptx=$1
shift

cat <<'HEADER'
/* Made by kernels/embed.sh from kernels/check.c. Do not edit. */
#ifndef KD_IMAGES_H
#define KD_IMAGES_H

/* NUL-terminated, as cuModuleLoadData wants text. */
static const char kernel_ptx[] =
HEADER
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' -e 's/^/	"/' -e 's/$/\\n"/' "$ptx"
printf '\t;\n'

for image in "$@"; do
	name=$(printf '%s' "${image%%=*}" | tr -- '-' '_')
	printf '\nstatic const unsigned char kernel_image_%s[] = {\n' "$name"
	od -An -v -tx1 -w24 "${image#*=}" | sed -e 's/ \(..\)/0x\1,/g' -e 's/^/	/'
	printf '};\n'
done

cat <<'TABLE'

struct kernel_image {
	const char *architecture;
	const unsigned char *bytes;
	unsigned size;
};

/* Named targets first, then the generic ones. */
static const struct kernel_image kernel_images[] = {
TABLE
for image in "$@"; do
	architecture=${image%%=*}
	name=$(printf '%s' "$architecture" | tr -- '-' '_')
	printf '\t{"%s", kernel_image_%s, (unsigned)sizeof kernel_image_%s},\n' "$architecture" "$name" "$name"
done
cat <<'FOOTER'
};

static const unsigned kernel_image_count = (unsigned)(sizeof kernel_images / sizeof kernel_images[0]);

#endif
FOOTER
