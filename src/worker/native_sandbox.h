/* The self-test of the sandbox: kd-probe measures what it is in, before any foreign code is loaded. */
#ifndef KD_NATIVE_SANDBOX_H
#define KD_NATIVE_SANDBOX_H

#include "native_options.h"
#include "native_report.h"

/* Reads back no_new_privs and seccomp and, unless the sandbox is off, tries forbidden acts that do no harm when they
 * succeed: they use a bad descriptor or pointer, or are undone at once. Says `no_new_privs`, `seccomp` (1: a filter is
 * in force and every act was refused) and, with confine=, `writes_confined`. Returns whether no_new_privs and seccomp
 * both hold. */
bool sandbox_measure(const struct native_options *options, struct report *report);

#endif
