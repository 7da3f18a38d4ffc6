// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * link_report - a client reports its last link to its servers, in a TCP option (laws/include/link_report.h).
 *
 *        connect   SYN with the report          unless SYNs with it to that destination were lost lately
 *        SYN lost  SYN without it               a middlebox may drop unknown options: a destination where it happens
 *                                               twice is remembered
 *        SYN-ACK   with ANSWER                  the server knows the option: reports follow
 *                  without                      the server does not: no further report on this connection
 *        segments  with the report, where there is room, SENDINGS in a row:
 *                  - when the claim has changed
 *                  - when half of the announced validity is over
 *                  - when the server asks (RESEND): it sent a SYN cookie and kept nothing
 *
 * Room: 12 octets of the 40 for options, in a segment that would not be full even with all 40. A report makes no
 * segment smaller, and none larger than the maximum. So it changes neither segmentation nor throughput. A client's ACKs
 * and requests have room.
 *
 * A claim ends at its expires_us, even if the agent has died: the announced validity is the time left. After that, and
 * on a connection that now leaves by another interface, the report is "unknown".
 *
 * Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. Other programs run beside it on the
 * same sockets. So our flags are added to theirs, and flags that were set before us are not removed. A program that
 * needs a flag after us sets it at each event, as we do. Maps: reporting (create), remembered. The verifier wants
 * ctx->sk read once, and each bpf_sock_ops member read by a constant offset from ctx itself.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "option.h"
#include "link_report_intf.h"

const volatile struct lh_report_settings settings SEC(".rodata.settings") = {};

/* Written by the loader only. */
struct lh_claims claims SEC(".data.claims") = { .generation = 1 };

/* Written by the programs only. */
struct lh_reporter_counters counters SEC(".bss.counters") = {};

#include "interface.h"

/* Segments in a row that carry a new report, because any may get lost. */
#define SENDINGS 3

/*
 * RFC 9293 section 3.1: options of all kinds together. Varying ones, such as SACK blocks, are not part of the maximum
 * segment size, and a program cannot see how many of them this segment has.
 */
#define MOST_OPTION_OCTETS 40

struct reporting {
	__u64 renew_us; /* when half of the announced validity is over; 0: nothing to renew */
	__u32 generation; /* of the claim last reported */
	__u8 offered; /* 1: a SYN had the option */
	__u8 answered; /* 1: the server knows it */
	__u8 syns; /* number sent */
	__u8 left; /* segments that must still carry the report */
	__u8 reserved; /* 1: room for ours is reserved in the segment being written */
	__u8 flag_is_ours; /* 1: no other program wanted to write options when we began */
	__u8 waits; /* 1: a report waits for a segment with room */
	__u8 padding[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct reporting);
} reporting SEC(".maps");

struct destination {
	__u8 address[16]; /* IPv4: mapped */
};

struct silence {
	__u64 until_us; /* when it is forgotten */
	__u64 times; /* how often a SYN with the option was lost, while one without it got through and had no answer */
};

/* A single lost SYN is normal on a radio link. */
#define SUSPICIOUS_TIMES 2

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LH_REMEMBERED_MAX);
	__type(key, struct destination);
	__type(value, struct silence);
} remembered SEC(".maps");

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline __u64 now_us(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static __always_inline void destination_of(struct sock *sk, struct destination *to)
{
	__builtin_memset(to, 0, sizeof(*to));
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		to->address[10] = to->address[11] = 0xff;
		BPF_CORE_READ_INTO((__u32 *)&to->address[12], sk, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&to->address, sk, __sk_common.skc_v6_daddr);
	}
}

static __always_inline bool by_our_interface(struct sock *sk)
{
	return interface_of(sk) == settings.interface_index && !to_loopback(sk);
}

/* Fills in the report to send now. Returns whether there is one. */
static __always_inline bool claimed(struct sock *sk, __u64 now, struct lh_report *report)
{
	const struct lh_claim *claim = &claims.claims[claims.generation & 1];
	__u64 left_s;

	report->bandwidth_kbps = 0;
	report->error_ppm = LH_ERROR_UNKNOWN;
	report->valid_s = 1;
	if (claim->expires_us < now + USEC_PER_SEC || !by_our_interface(sk))
		return false;
	if (!claim->bandwidth_kbps && claim->error_ppm == LH_ERROR_UNKNOWN)
		return false;
	report->bandwidth_kbps = claim->bandwidth_kbps;
	report->error_ppm = claim->error_ppm;
	left_s = (claim->expires_us - now) / USEC_PER_SEC;
	report->valid_s = left_s > LH_REPORT_VALID_MAX_S ? LH_REPORT_VALID_MAX_S : left_s;
	return true;
}

static __always_inline void begin(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct tcp_sock *tp)
{
	struct reporting *state;
	struct silence *silence;
	struct destination to;

	if (!in_our_namespace(SK(tp)) || !by_our_interface(SK(tp)))
		return;
	destination_of(SK(tp), &to);
	silence = bpf_map_lookup_elem(&remembered, &to);
	if (silence && silence->times >= SUSPICIOUS_TIMES && now_us() < silence->until_us) {
		count(&counters.avoided);
		return;
	}
	state = bpf_sk_storage_get(&reporting, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state) {
		count(&counters.failed);
		return;
	}
	__builtin_memset(state, 0, sizeof(*state));
	state->flag_is_ours = !(ctx->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	ask_for(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* A SYN with the option was lost, and one without it was not. */
static __always_inline void suspect(struct tcp_sock *tp)
{
	struct silence *known, silence = {};
	struct destination to;
	__u64 now = now_us();

	destination_of(SK(tp), &to);
	known = bpf_map_lookup_elem(&remembered, &to);
	if (known && now < known->until_us)
		silence.times = known->times;
	silence.times++;
	silence.until_us = now + settings.remember_us;
	bpf_map_update_elem(&remembered, &to, &silence, BPF_ANY);
}

static __always_inline void give_up(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct reporting *state)
{
	if (state->flag_is_ours)
		no_longer_ask_for(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	bpf_sk_storage_delete(&reporting, sk);
}

/* The handshake is complete; the context's segment is the SYN-ACK. */
static __always_inline void hear_answer(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct tcp_sock *tp,
					struct reporting *state)
{
	__u8 option[LH_REPORT_OCTETS] = {};
	struct lh_report nothing = {};
	enum lh_report_outcome outcome;
	struct destination to;
	__u32 flags;

	outcome = load_option(ctx, 0, option, &nothing);
	flags = lh_report_flags(option);
	if (!state->offered || outcome != LH_REPORT_GOOD || !(flags & LH_REPORT_ANSWER)) {
		if (state->offered)
			count(&counters.unanswered);
		if (state->offered && outcome != LH_REPORT_NOT_OURS)
			count(&counters.mangled);
		else if (state->offered && state->syns > 1)
			suspect(tp);
		give_up(ctx, sk, state);
		return;
	}
	state->answered = 1;
	count(&counters.answered);
	if (flags & LH_REPORT_RESEND) {
		state->left = SENDINGS;
		count(&counters.asked_again);
	}
	/* nothing on the path drops the option */
	destination_of(SK(tp), &to);
	bpf_map_delete_elem(&remembered, &to);
}

/* Each segment with the SYN flag. */
static __always_inline void offer(struct bpf_sock_ops *ctx, struct reporting *state)
{
	if (state->syns < 255)
		state->syns++;
	if (state->syns == 1) {
		state->reserved = !bpf_reserve_hdr_opt(ctx, LH_REPORT_OCTETS, 0);
		state->offered = state->reserved;
		count(state->reserved ? &counters.offered : &counters.no_room);
	} else if (state->offered) {
		count(&counters.sent_again);
	}
}

/*
 * Each segment after the handshake. tcp_mstamp approximates now: it is the time of the latest segment in either
 * direction.
 */
static __always_inline void reserve(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct reporting *state)
{
	if (!state->answered)
		return;
	if (state->generation != claims.generation || (state->renew_us && tp->tcp_mstamp >= state->renew_us)) {
		state->generation = claims.generation;
		state->renew_us = 0;
		state->left = SENDINGS;
	}
	if (!state->left)
		return;
	state->reserved = ctx->skb_len + MOST_OPTION_OCTETS <= tp->mss_cache &&
			  !bpf_reserve_hdr_opt(ctx, LH_REPORT_OCTETS, 0);
	if (!state->reserved && !state->waits)
		count(&counters.no_room);
	state->waits = !state->reserved;
}

/* The header is being written. Other programs may have asked for that, too: the reserved room is ours only if we asked. */
static __always_inline void write(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct reporting *state)
{
	__u8 option[LH_REPORT_OCTETS];
	struct lh_report report = {};
	__u32 generation = claims.generation;
	__u64 now = now_us();
	bool known;

	if (!state->reserved)
		return;
	state->reserved = 0;
	known = claimed(SK(tp), now, &report);
	lh_report_write(option, &report, 0);
	state->renew_us = known ? now + lh_report_valid_s(option) * (USEC_PER_SEC / 2) : 0;
	if (bpf_store_hdr_opt(ctx, option, sizeof(option), 0)) {
		count(&counters.no_room);
		return;
	}
	state->generation = generation;
	if (!state->answered)
		return;
	count(&counters.sent);
	if (state->left)
		state->left--;
}

SEC("sockops")
int report(struct bpf_sock_ops *ctx)
{
	struct reporting *state;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	__u32 op = ctx->op;

	if (op != BPF_SOCK_OPS_HDR_OPT_LEN_CB && op != BPF_SOCK_OPS_WRITE_HDR_OPT_CB &&
	    op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	/* the maximum segment size is being computed: see Room */
	if (op == BPF_SOCK_OPS_HDR_OPT_LEN_CB && ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	if (op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
		begin(ctx, sk, tp);
		return 1;
	}
	state = bpf_sk_storage_get(&reporting, sk, NULL, 0);
	if (!state)
		return 1;
	if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		hear_answer(ctx, sk, tp, state);
	else if (op == BPF_SOCK_OPS_WRITE_HDR_OPT_CB)
		write(ctx, tp, state);
	else if (ctx->skb_tcp_flags & TCPHDR_SYN)
		offer(ctx, state);
	else
		reserve(ctx, tp, state);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
