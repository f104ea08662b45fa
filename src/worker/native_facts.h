/* Why a GPU cannot be used: facts looked at on the machine, turned into hints. Nothing here reads printed text. */
#ifndef KD_NATIVE_FACTS_H
#define KD_NATIVE_FACTS_H

#include "native_driver.h"
#include "native_failure.h"

#include <stdbool.h>

/* Whether a device node of this backend's vendor is here: /dev/nvidia*, /dev/dxg, /dev/kfd. Opens nothing. */
bool facts_vendor_present(const struct backend *backend);

/* The library of `backend` could not be loaded. Opens and loads nothing. */
void facts_library_absent(const struct backend *backend, struct failure *failure);

/* A call up to and including context creation failed, or no device was found. `origin` is library_origin's word.
 * Opens the vendor's device nodes for a moment, as the driver has just done. Sets failure->missing to "group N" where
 * membership in group N would give access. `counted`: the driver has counted devices, so nodes that are not here are
 * not the cause. */
void facts_device_failed(const struct backend *backend, const char *origin, bool counted, struct failure *failure);

/* Device selection is at stake: adds `mask-set` when a variable of the environment masks devices. The value is never
 * parsed; an empty HIP variable hides nothing (FIELD-NOTES 9). */
void facts_mask(const struct backend *backend, char *const environment[], struct failure *failure);

#endif
