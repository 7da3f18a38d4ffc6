// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * record_cubic - the kernel's CUBIC with a record of every call, for tests only.
 *
 * A congestion control "lh_record" whose functions call the kernel's own and write what there was before and after to a
 * ring: the arguments, the socket's window, and CUBIC's private state. It has cong_avoid and no cong_control, as cubic
 * itself: recovery, pacing and the rest stay the kernel's.
 *
 * Hook: struct_ops/tcp_congestion_ops, socket locked, softirq or process context. A kernel that skips a program skips
 * the call in it too, so the state goes from one record to the next without a gap; what it then takes for the result is
 * repaired before the next record. A call that finds no room in the ring is still made, and counted.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* What kernel.h does not have of these. The loader ignores what comes after three underscores. */
struct tcp_sock___record {
	__u8 is_cwnd_limited : 1;
	__u32 max_packets_out;
} __attribute__((preserve_access_index));

struct sock___record {
	__u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
} __attribute__((preserve_access_index));

struct ack_sample___record {
	__s32 rtt_us;
} __attribute__((preserve_access_index));

struct bictcp___record {
	__u32 cnt;
	__u32 last_max_cwnd;
	__u32 last_cwnd;
	__u32 last_time;
	__u32 bic_origin_point;
	__u32 bic_K;
	__u32 delay_min;
	__u32 epoch_start;
	__u32 ack_cnt;
	__u32 tcp_cwnd;
	__u8 sample_cnt;
	__u8 found;
	__u32 round_start;
	__u32 end_seq;
	__u32 last_ack;
	__u32 curr_rtt;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops___record {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*cwnd_event_tx_start)(struct sock *sk);
};

extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
/* A kernel has one of the two (kernel.h, tcp_congestion_ops); the test chooses. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

enum call_kind {
	CALL_INIT,
	CALL_SSTHRESH,
	CALL_CONG_AVOID,
	CALL_SET_STATE,
	CALL_CWND_EVENT,
	CALL_PKTS_ACKED,
	CALL_UNDO_CWND,
};

/* tests/cubic.rs mirrors it. The window and CUBIC's state, before or after a call. */
struct moment {
	__u32 jiffies;
	__u32 cwnd;
	__u32 cwnd_count;
	__u32 ssthresh;
	__u32 cnt;
	__u32 last_max_cwnd;
	__u32 last_cwnd;
	__u32 last_time;
	__u32 bic_origin_point;
	__u32 bic_K;
	__u32 delay_min;
	__u32 epoch_start;
	__u32 ack_cnt;
	__u32 tcp_cwnd;
	__u32 sample_cnt;
	__u32 found;
	__u32 round_start;
	__u32 end_seq;
	__u32 last_ack;
	__u32 curr_rtt;
};

struct call {
	__u64 socket; /* its address */
	__u64 now_us; /* tcp_mstamp */
	__u64 pacing_rate;
	__u32 kind;
	__u32 argument; /* acked segments, RTT, event or new state */
	__u32 result; /* of ssthresh and undo_cwnd */
	__u32 cwnd_limited;
	__u32 pacing_status;
	__u32 gso_max_size;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 lsndtime;
	__u32 padding;
	struct moment before;
	struct moment after;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} calls SEC(".maps");

__u64 lost;
__u64 repaired;

/*
 * See stack.h: an ssthresh or a window that no program returned. CUBIC's arithmetic is meant for "cwnd < 1
 * million packets", as its own comment says.
 */
#define IMPOSSIBLE_WINDOW 1000000

static __always_inline void repair(struct tcp_sock *tp)
{
	__u32 prior = tp->prior_cwnd > 2 ? tp->prior_cwnd : 2;

	if (tp->snd_ssthresh <= IMPOSSIBLE_WINDOW || tp->snd_ssthresh == TCP_INFINITE_SSTHRESH) {
		if (tp->snd_cwnd <= IMPOSSIBLE_WINDOW)
			return;
		tp->snd_cwnd = prior;
	} else {
		tp->snd_ssthresh = prior;
		if (tp->snd_cwnd > IMPOSSIBLE_WINDOW)
			tp->snd_cwnd = prior;
	}
	__sync_fetch_and_add(&repaired, 1);
}

static __always_inline void look(struct sock *sk, struct moment *moment)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bictcp___record *cubic = (void *)tp->inet_conn.icsk_ca_priv;

	moment->jiffies = bpf_jiffies64();
	moment->cwnd = tp->snd_cwnd;
	moment->cwnd_count = tp->snd_cwnd_cnt;
	moment->ssthresh = tp->snd_ssthresh;
	moment->cnt = BPF_CORE_READ(cubic, cnt);
	moment->last_max_cwnd = BPF_CORE_READ(cubic, last_max_cwnd);
	moment->last_cwnd = BPF_CORE_READ(cubic, last_cwnd);
	moment->last_time = BPF_CORE_READ(cubic, last_time);
	moment->bic_origin_point = BPF_CORE_READ(cubic, bic_origin_point);
	moment->bic_K = BPF_CORE_READ(cubic, bic_K);
	moment->delay_min = BPF_CORE_READ(cubic, delay_min);
	moment->epoch_start = BPF_CORE_READ(cubic, epoch_start);
	moment->ack_cnt = BPF_CORE_READ(cubic, ack_cnt);
	moment->tcp_cwnd = BPF_CORE_READ(cubic, tcp_cwnd);
	moment->sample_cnt = BPF_CORE_READ(cubic, sample_cnt);
	moment->found = BPF_CORE_READ(cubic, found);
	moment->round_start = BPF_CORE_READ(cubic, round_start);
	moment->end_seq = BPF_CORE_READ(cubic, end_seq);
	moment->last_ack = BPF_CORE_READ(cubic, last_ack);
	moment->curr_rtt = BPF_CORE_READ(cubic, curr_rtt);
}

/* include/net/tcp.h tcp_is_cwnd_limited() */
static __always_inline __u32 is_cwnd_limited(struct tcp_sock *tp)
{
	struct tcp_sock___record *record = (void *)tp;

	if (BPF_CORE_READ_BITFIELD_PROBED(record, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * BPF_CORE_READ(record, max_packets_out);
}

static __always_inline struct call *begin(struct sock *sk, __u32 kind, __u32 argument)
{
	struct call *call = bpf_ringbuf_reserve(&calls, sizeof(*call), 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct sock___record *record = (void *)sk;

	if (!call) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	repair(tp);
	call->socket = (__u64)sk;
	call->now_us = tp->tcp_mstamp;
	call->pacing_rate = tp->inet_conn.icsk_inet.sk.sk_pacing_rate;
	call->kind = kind;
	call->argument = argument;
	call->result = 0;
	call->cwnd_limited = is_cwnd_limited(tp);
	call->pacing_status = BPF_CORE_READ(record, sk_pacing_status);
	call->gso_max_size = BPF_CORE_READ(record, sk_gso_max_size);
	call->snd_una = tp->snd_una;
	call->snd_nxt = tp->snd_nxt;
	call->lsndtime = tp->lsndtime;
	call->padding = 0;
	look(sk, &call->before);
	return call;
}

static __always_inline void end(struct sock *sk, struct call *call, __u32 result)
{
	if (!call)
		return;
	call->result = result;
	look(sk, &call->after);
	bpf_ringbuf_submit(call, BPF_RB_NO_WAKEUP);
}

SEC("struct_ops")
void BPF_PROG(record_init, struct sock *sk)
{
	struct call *call = begin(sk, CALL_INIT, 0);

	cubictcp_init(sk);
	end(sk, call, 0);
}

SEC("struct_ops")
__u32 BPF_PROG(record_ssthresh, struct sock *sk)
{
	struct call *call = begin(sk, CALL_SSTHRESH, 0);
	__u32 result = cubictcp_recalc_ssthresh(sk);

	end(sk, call, result);
	return result;
}

SEC("struct_ops")
void BPF_PROG(record_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct call *call = begin(sk, CALL_CONG_AVOID, acked);

	cubictcp_cong_avoid(sk, ack, acked);
	end(sk, call, 0);
}

SEC("struct_ops")
void BPF_PROG(record_set_state, struct sock *sk, __u8 new_state)
{
	struct call *call = begin(sk, CALL_SET_STATE, new_state);

	cubictcp_state(sk, new_state);
	end(sk, call, 0);
}

SEC("struct_ops")
void BPF_PROG(record_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct call *call = begin(sk, CALL_CWND_EVENT, event);

	cubictcp_cwnd_event(sk, event);
	end(sk, call, 0);
}

SEC("struct_ops")
void BPF_PROG(record_cwnd_event_tx_start, struct sock *sk)
{
	struct call *call = begin(sk, CALL_CWND_EVENT, CA_EVENT_TX_START);

	cubictcp_cwnd_event_tx_start(sk);
	end(sk, call, 0);
}

SEC("struct_ops")
void BPF_PROG(record_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct ack_sample___record *record = (void *)sample;
	struct call *call = begin(sk, CALL_PKTS_ACKED, BPF_CORE_READ(record, rtt_us));

	cubictcp_acked(sk, sample);
	end(sk, call, 0);
}

SEC("struct_ops")
__u32 BPF_PROG(record_undo_cwnd, struct sock *sk)
{
	struct call *call = begin(sk, CALL_UNDO_CWND, 0);
	__u32 result = tcp_reno_undo_cwnd(sk);

	end(sk, call, result);
	return result;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops___record record = {
	.init = (void *)record_init,
	.ssthresh = (void *)record_ssthresh,
	.cong_avoid = (void *)record_cong_avoid,
	.set_state = (void *)record_set_state,
	.cwnd_event = (void *)record_cwnd_event,
	.cwnd_event_tx_start = (void *)record_cwnd_event_tx_start,
	.pkts_acked = (void *)record_pkts_acked,
	.undo_cwnd = (void *)record_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "lh_record",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
