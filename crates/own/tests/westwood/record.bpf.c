// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * record.bpf.c - writes down what Linux's tcp_westwood is told and what it concludes, one line for each call (record).
 *
 * Hooks: fexit of the module's pkts_acked and cwnd_event, so that ssthresh after an event is seen. No maps.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* What is read of the kernel's structs; their places are relocated. */
struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 snd_cwnd, snd_ssthresh, delivered, mss_cache;
} __attribute__((preserve_access_index));

struct ack_sample {
	__s32 rtt_us;
} __attribute__((preserve_access_index));

/* net/ipv4/tcp_westwood.c, since 2.6.14: bytes and jiffies */
struct westwood {
	__u32 bw_ns_est, bw_est, rtt_win_sx, bk, snd_una, cumul_ack, accounted, rtt, rtt_min;
};

enum { CA_EVENT_COMPLETE_CWR = 2, CA_EVENT_LOSS = 3 }; /* enum tcp_ca_event, include/net/tcp.h */

static void write_line(const char *what, void *sk, __s32 rtt_us)
{
	struct inet_connection_sock *icsk = sk;
	struct tcp_sock *tp = sk;
	struct westwood w;

	bpf_probe_read_kernel(&w, sizeof(w), __builtin_preserve_access_index(&icsk->icsk_ca_priv));
	bpf_printk("westwood %llu %s %d %u %u %u %u %u %u", bpf_ktime_get_ns() / 1000, what, rtt_us,
		   BPF_CORE_READ(tp, delivered), BPF_CORE_READ(tp, snd_cwnd), BPF_CORE_READ(tp, snd_ssthresh),
		   w.bw_est, w.rtt_min, BPF_CORE_READ(tp, mss_cache));
}

SEC("fexit/tcp_westwood_pkts_acked")
int BPF_PROG(on_acked, void *sk, const struct ack_sample *sample)
{
	write_line("acked", sk, BPF_CORE_READ(sample, rtt_us));
	return 0;
}

SEC("fexit/tcp_westwood_event")
int BPF_PROG(on_event, void *sk, int event)
{
	if (event == CA_EVENT_COMPLETE_CWR)
		write_line("reduced", sk, -1);
	if (event == CA_EVENT_LOSS)
		write_line("timed_out", sk, -1);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
