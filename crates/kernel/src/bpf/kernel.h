/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel.h - the kernel types that our programs use, with only the members that they use.
 *
 * The loader relocates every access by the running kernel's BTF (CO-RE). So only the names matter here, not order and
 * offsets, and the build does not depend on the kernel of the building machine. Members that the running kernel may
 * lack are read after bpf_core_field_exists().
 *
 * __VMLINUX_H__ is defined because this file replaces a full vmlinux.h, which bound.h and libbpf's headers ask for.
 */
#ifndef LASTHOP_KERNEL_H
#define LASTHOP_KERNEL_H
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u16 __sum16;
typedef __u32 __wsum;
typedef _Bool bool;

#define NULL ((void *)0)
#define true 1
#define false 0

/* Numbers of the kernel's user interface, which never change. */
enum {
	AF_INET = 2,
	AF_INET6 = 10,
	SOL_SOCKET = 1, /* on all machines with BPF but MIPS, PA-RISC, SPARC and Alpha */
	SO_MAX_PACING_RATE = 47, /* likewise */
	SOL_TCP = 6,
	TCP_CONGESTION = 13,
	TCP_BPF_IW = 1001,
	TCP_BPF_SNDCWND_CLAMP = 1002,
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008,
	TCP_SAVE_SYN = 27,
	TCP_CA_NAME_MAX = 16,
	TCPHDR_SYN = 2,
	TCPHDR_RST = 4,
	TCPHDR_ACK = 16,
	TCX_NEXT = -1, /* the next program decides */

	EFAULT = 14,
	ENOSPC = 28,
	ENOENT = 2,
	TCPOPT_MSS = 2, /* RFC 9293 section 3.2 */

	TCP_SYN_SENT = 2,
	TCP_ESTABLISHED = 1,
	TCP_CLOSE = 7,
	TCP_LISTEN = 10,

	BPF_ANY = 0,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_CLONE = 512,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,

	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	BPF_SOCK_OPS_RTT_CB = 12,
	BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,
	BPF_SOCK_OPS_RTT_CB_FLAG = 8,
	BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG = 32,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 64,
	BPF_LOAD_HDR_OPT_TCP_SYN = 1,
	BPF_WRITE_HDR_TCP_CURRENT_MSS = 1,
	BPF_WRITE_HDR_TCP_SYNACK_COOKIE = 2,
};

/* include/uapi/linux/tcp.h, include/net/tcp.h and net/ipv4/tcp_input.c */
enum {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

enum {
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	TCP_INIT_CWND = 10,
	RTAX_INITCWND = 11,
	RTAX_CC_ALGO = 16,
	USEC_PER_SEC = 1000000,
	TCP_CONG_NON_RESTRICTED = 1,

	FLAG_DATA_ACKED = 0x04,
	FLAG_FORWARD_PROGRESS = 0x34, /* data or SYN acknowledged, or data SACKed */
	FLAG_SND_UNA_ADVANCED = 0x400,
};

/* include/net/sock.h enum sk_pacing */
enum {
	SK_PACING_NONE,
	SK_PACING_NEEDED, /* by TCP itself */
};

enum tcp_ca_event {
	CA_EVENT_TX_START, /* first transmission with nothing in flight */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
	int ifindex;
};

struct dst_entry {
	struct net_device *dev;
	unsigned long _metrics;
	short obsolete;
};

struct ns_common {
	unsigned int inum;
};

struct list_head {
	struct list_head *next, *prev;
};

struct module;
struct rate_sample {
	__u32 prior_delivered;
	__s32 delivered; /* -1: no sample */
	long interval_us; /* -1: no sample */
	bool is_app_limited;
	int losses;
	long rtt_us; /* -1: none */
	__u32 acked_sacked;
	__u32 prior_in_flight;
};

struct ack_sample {
	__u32 pkts_acked;
};

struct netns_ipv4 {
	int sysctl_tcp_reordering;
	int sysctl_tcp_pacing_ss_ratio;
	int sysctl_tcp_pacing_ca_ratio;
	__u8 sysctl_tcp_slow_start_after_idle;
	const struct tcp_congestion_ops *tcp_congestion_control;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	struct sock *skc_listener; /* of a request */
};

struct kernfs_node {
	__u64 id;
};

struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

typedef struct {
	__u32 val;
} kuid_t;

struct sock {
	struct sock_common __sk_common;
	int sk_rx_dst_ifindex; /* since 5.17 */
	struct dst_entry *sk_dst_cache;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	kuid_t sk_uid;
	struct sock_cgroup_data sk_cgrp_data;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u8 icsk_ca_state : 5, icsk_ca_initialized : 1, icsk_ca_setsockopt : 1, icsk_ca_dst_locked : 1;
	__u8 icsk_retransmits;
	__u64 icsk_ca_priv[13];
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 saw_tstamp : 1, rcv_wscale : 4;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 bytes_received;
	__u32 data_segs_in;
	__u32 rcv_ooopack; /* since 5.4 */
	struct {
		__u32 rtt_us; /* times eight; 0: none yet */
	} rcv_rtt_est;
	struct tcp_options_received rx_opt;
	__u8 is_cwnd_limited : 1;
	__u8 tcp_usec_ts : 1; /* since 6.7 */
	__u16 advmss; /* payload of a full segment to us: the MSS that we told, less the timestamps */
	__u32 max_packets_out;
	__u32 lost;
	__u32 app_limited; /* until this much is delivered; 0: it is not */
	__u64 delivered_mstamp;
	__u64 tcp_wstamp_ns; /* when the next packet departs */
	__u64 tcp_clock_cache; /* now */
	__u32 high_seq;
	__u32 prior_ssthresh;
	__u32 reordering;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 prr_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 retrans_out;
	__u32 snd_ssthresh;
	struct minmax rtt_min;
	__u32 write_seq;
	__u32 lsndtime;
	__u64 tcp_mstamp; /* time of the latest ACK or transmission, CLOCK_MONOTONIC, us */
	__u32 snd_nxt;
	__u32 snd_una;
	struct tcp_rack {
		__u32 rtt_us; /* of the newest segment acknowledged; 0: none yet */
	} rack;
	__u32 srtt_us;
	__u32 packets_out;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u64 bytes_acked;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_wnd;
	__u32 max_window; /* the largest of them */
	__u32 snd_cwnd_stamp;
	__u32 prior_cwnd;
	__u32 prr_delivered;
	__u32 undo_marker;
	__u64 bytes_retrans;
	__u32 total_retrans;
	__u32 data_segs_out; /* data segments, with retransmissions */
	__u16 total_rto; /* since 6.7 */
};

/* CUBIC's private state, at the start of icsk_ca_priv. */
struct bictcp {
	__u32 epoch_start;
};

struct bpf_sock;
struct bpf_sock_ops {
	__u32 op;
	union {
		__u32 args[4];
	};
	__u32 bpf_sock_ops_cb_flags;
	struct bpf_sock *sk;
	__u32 skb_len;
	__u32 skb_tcp_flags;
	void *skb_data; /* the TCP header of a segment that arrives */
	void *skb_data_end;
};

/* A packet, as a program is given it. */
struct __sk_buff {
	struct bpf_sock *sk;
};

/* The kernel's own struct behind it. */
struct sk_buff {
	__u16 transport_header; /* from head */
	unsigned char *head;
	unsigned char *data;
};

/* The kernel's own struct behind bpf_sock_ops. */
struct bpf_sock_ops_kern {
	struct sock *sk; /* for a SYN-ACK: a request */
	struct sk_buff *syn_skb; /* NULL: the SYN-ACK is retransmitted */
};

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct file;
struct task_struct;
struct socket {
	struct sock *sk;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_map;
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* Not relocated: libbpf maps our struct_ops onto the kernel's by the names of the members. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	/* In kernels that have it CA_EVENT_TX_START comes here (seen in 7.2), and not to cwnd_event; the loader chooses. */
	void (*cwnd_event_tx_start)(struct sock *sk);
};

/* The same struct, relocated, to read the members of any control. */
struct tcp_congestion_ops___read {
	char name[TCP_CA_NAME_MAX];
	__u32 key; /* by which routes name it */
	struct list_head list;
} __attribute__((preserve_access_index));

#endif /* LASTHOP_KERNEL_H */
