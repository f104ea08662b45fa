/* What the control group says about memory. */
#ifndef KD_CGROUP_H
#define KD_CGROUP_H

/* How often the kernel has killed a process of this process's memory control group for want of memory: `oom_kill` of
 * memory.events (version 2) or memory.oom_control (version 1, Linux 4.13); -1 where it cannot be read. A killed worker
 * counts before its SIGKILL is sent (Linux mm/oom_kill.c). No allocation. */
long cgroup_oom_kills(void);

#endif
