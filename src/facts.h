/* The shapes of the texts that a worker may tell. A report holds no free text of a worker's: what does not have the
 * shape of its field is cut or dropped, so that neither a path nor an environment variable travels in it by accident.
 */
#ifndef KD_FACTS_H
#define KD_FACTS_H

#include <stdbool.h>

enum fact {
	FACT_WORD,          /* one of a fixed list; checked elsewhere */
	FACT_VERSION,       /* 2.6.0a0+df5bbc0.nv24, 6.3.42131-0: numbers, then a short tag and a short local part */
	FACT_IDENTIFIER,    /* a class, a driver's error name */
	FACT_CALL,          /* identifiers, dots and blanks: "cuInit", "import torch" */
	FACT_MISSING,       /* the bare name of a module, shared object, symbol or code image */
	FACT_LIBC,          /* "glibc 2.36", "musl" */
	FACT_ARCHITECTURE,  /* sm_90a, compute_90, gfx942, gfx9-4-generic */
	FACT_ARCHITECTURES, /* the same, separated by commas */
	FACT_DEVICE_NAME,   /* a product's name, without anything like a UUID */
	FACT_DEVICE_UUID,   /* GPU-..., MIG-... */
};

/* Cuts `text` (terminated, in place) to what has the shape; it may become "". */
void facts_clean(enum fact fact, char *text);

#endif
