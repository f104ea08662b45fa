/* `--summarize DIR`: one table over a folder of reports. */
#ifndef KD_SUMMARIZE_H
#define KD_SUMMARIZE_H

#include <stdio.h>

enum { SUMMARIZE_FILE_MAX = 256 * 1024 };

/* Reads every regular file *.json in `dir` (no folders below it, no links followed, no names with a leading dot, at
 * most SUMMARIZE_FILE_MAX bytes each) and writes to `out`, as text or with `json` as one JSON document: how many
 * reports have which code and stage; the usual value of code, stage, driver version, device count and PyTorch version,
 * which is the most frequent one (of equals, the one of the first file by name); and the odd ones out, each with what
 * differs.
 *
 * What is no report of schema version 1 is named on `err`, counted, and skipped: it has no say in the exit status.
 * The files and names are foreign: nothing of them reaches a stream but as valid UTF-8 without control or
 * direction-changing characters ('?' stands in their place).
 *
 * Returns the exit status: 0 when every report that could be read is a pass; else that of the worst, which is the one
 * that failed at the earliest stage (first failing layer wins, as within one check; of one stage, the code that stands
 * first in the table, and of interruptions the first by name). 2, with a line on `err`, when the folder cannot be read
 * or holds no report at all; 12 when `out` took not everything and all had passed. Allocates; frees all. */
int summarize_run(const char *dir, int json, FILE *out, FILE *err);

#endif
