/* From a backend to an open device: stages backend and device. */
#ifndef KD_NATIVE_DEVICE_H
#define KD_NATIVE_DEVICE_H

#include "native_driver.h"
#include "native_options.h"
#include "native_report.h"

/* Tries the backends that the options allow, tells the facts of the one that got furthest, and opens the chosen device.
 * Returns with *driver and *facts filled, and the number of visible devices in *count; ends the process with a report
 * when there is no such device. */
void device_open(const struct native_options *options, char *const environment[], struct report *report,
                 struct driver *driver, struct device_facts *facts, int *count);

#endif
