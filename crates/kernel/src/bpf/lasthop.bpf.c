// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lasthop - the kernel's CUBIC with a window bounded from outside, and the programs that give it to the right sockets
 * and observe them.
 *
 * 1. The idea. A policy in user space decides, twice a second, between which limits each window may move. The kernel's
 *    congestion control is not changed: the kernel's own CUBIC runs, called through its kfuncs. On every ACK
 *    lh_bound_window() (laws/include/bound.h, also compiled into the simulator) then bounds its window.
 *
 * 2. The lease. A bound carries the time at which it ends; after that it has no effect. So user space may die, hang or
 *    be killed: TCP is back to normal within one lease, without any action.
 *
 * 3. Why cong_control. A control with `cong_avoid` alone does not own its window during Recovery and CWR: the kernel's
 *    proportional rate reduction writes it, below any lower bound. With `cong_control` the kernel leaves everything per
 *    ACK to us. So bounded_cubic.h and stack.h repeat the kernel's tcp_cong_control(), in the same order:
 *
 *        in CWR or Recovery    reduce_window()     as tcp_cwnd_reduction(), with a prr_delivered of our own
 *        else, if it may grow  cubictcp_cong_avoid()
 *        always                bound, then the pacing rate as tcp_update_pacing_rate(), as the bound has it
 *
 *    and what the kernel omits elsewhere for such a control:
 *
 *        set_state             window = ssthresh when a reduction ends, as tcp_end_cwnd_reduction()
 *        cwnd_event            a smaller window after idleness, as tcp_cwnd_restart()
 *        init                  the first pacing rate of an accepted connection
 *
 *    Without a bound the windows are those of the kernel's cubic.
 *
 * 4. At the upper bound CUBIC must not go on by itself: its window is a function of the time since its last loss, and
 *    would have grown far by the end of the bound. So at the bound its growth is not called and its epoch is closed
 *    (epoch_start = 0). The next call of its growth begins a new one at the current window.
 *
 * 5. Cost per ACK. For the bound no map is read: each socket keeps a copy of it in the private bytes that CUBIC does not
 *    use, and compares one number, the generation, with the loader's. The lease is compared with tcp_mstamp, the
 *    monotonic time that the stack has already read for this ACK. For what is observed (7) one socket storage is read.
 *
 * 6. Which sockets get it (adopt.h): those of one network namespace whose packets leave by one interface, and if
 *    control is limited to a cgroup, those in it; but not loopback, excluded cgroups, or controls on the leave list.
 *    New ones get it at connect and accept, existing ones by a walk. Their own controls are remembered and given back.
 *
 * 7. What is observed (monitor.h): tracepoints mark sockets that change, and the walk at a tick writes one record for each
 *    of them and takes the mark from those at rest. The loader remembers the others; a ring tells it which have closed.
 *    A slow walk of all mends what this missed. A tracepoint tells each change of the congestion state.
 *
 * 8. What is received (receive.h): the window that a socket advertises is limited, too, in the segments that leave.
 *
 * 9. Without struct_ops (clamp.h): upper bounds only, by the kernel's own window clamp and SO_MAX_PACING_RATE.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bound.h"
#include "intf.h"

#include "maps.h"

#include "socket.h"

#include "bounded_cubic.h"

#include "adopt.h"
#include "clamp.h"
#include "monitor.h"
#include "receive.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
