/* Processes that a worker leaves behind. In the sandbox there are none, since it refuses fork; where that need not hold
 * (--sandbox off, best-effort), they must be gone before the workload starts, also when they left their group. */
#ifndef KD_STRAYS_H
#define KD_STRAYS_H

#include <stdbool.h>
#include <stdint.h>

struct strays {
	bool watched;
	int subreaper; /* as the workload is to have it */
};

/* From here on orphans of the workers become children of this process (PR_SET_CHILD_SUBREAPER, prctl(2)). Does nothing
 * where children exist already, which came with this process from its starter: they could not be told apart. */
void strays_watch(struct strays *strays);

/* Kills and reaps all children, until none is left or `until_ms` (worker_now_ms) has come, and puts the subreaper
 * setting back. To be called when every worker has been reaped. */
void strays_remove(struct strays *strays, int64_t until_ms);

#endif
