/* Signals during the check. One flag set by handlers, looked at only inside signals_poll(): everything else runs with
 * the signals blocked, so that no system call of ours is interrupted and none is lost, as PID 1 too. */
#ifndef KD_SIGNALS_H
#define KD_SIGNALS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>

struct signals {
	sigset_t original_mask;
	struct sigaction pipe, file_size, child; /* the dispositions we found */
};

/* To be called before anything else in main: blocks and takes SIGTERM, SIGINT, SIGHUP, SIGQUIT (those that are not
 * ignored: nohup's stays ignored) and SIGCHLD; ignores SIGPIPE and SIGXFSZ, which then show as EPIPE and EFBIG. */
void signals_take(struct signals *signals);

/* ppoll with the signals let in: as poll(2); timeout_ms -1 waits without a bound. Returns -EINTR after a signal. */
int signals_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* The number of a signal that asked us to stop, or 0. */
int signals_stopped_by(void);

/* "SIGSEGV" for a signal number, "SIG<n>" in `unknown` (of 16 bytes) for one without a name (signal(7)). */
const char *signals_name(int number, char unknown[16]);

/* In a forked child: the dispositions and the mask that the workload would have. */
void signals_restore_in_child(const struct signals *signals);

/* Just before execve: dispositions back; returns a stopping signal that is pending (nothing is unblocked then), else 0
 * with the original mask in force. */
int signals_hand_over(const struct signals *signals);

#endif
