/* kd-probe, the native worker: see DESIGN.md 1 to 4 and the protocol in result.h. */
#ifndef KD_NATIVE_H
#define KD_NATIVE_H

#include <stdbool.h>

/* Runs the worker and ends the process itself once it has reported. `loaded` is false when no dynamic loader bound our
 * imports: then no library can be loaded, and only the CPU can be checked. Returns (exit status 2) only for arguments
 * that the supervisor does not give. */
int native_main(int argc, char *argv[], char *environment[], bool loaded);

#endif
