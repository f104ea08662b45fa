/* The fixed computation of CONTRACT.md 1, on the CPU and on an opened device. */
#ifndef KD_NATIVE_CHECK_H
#define KD_NATIVE_CHECK_H

#include "native_driver.h"
#include "native_report.h"

/* Computes on the CPU and sends the values. Cannot fail; whether they are right is the supervisor's to say. */
void check_on_cpu(struct report *report);

/* Computes on the device that `driver` has opened, sends the values, and releases everything. Returns when that held,
 * and ends the process with a report when a call failed. */
void check_on_device(struct driver *driver, const struct device_facts *facts, int index, bool several,
                     struct report *report);

#endif
