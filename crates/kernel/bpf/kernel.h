/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What BPF programs need of the kernel: types with only the fields that are used (CO-RE finds where
 * the running kernel has them), helpers by their numbers, and the kernel's own controllers. It
 * stands in for a vmlinux.h of 130,000 lines and for libbpf's headers, so that building takes clang
 * and nothing else.
 */
#ifndef HEADWAY_KERNEL_H
#define HEADWAY_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed int __s32;
typedef signed long long __s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))

/* Maps in BTF's notation. */
#define __uint(name, value) int (*name)[value]
#define __type(name, type) typeof(type) *name
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_QUEUE 22
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

/* include/uapi/linux/bpf.h numbers them. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_map_push_elem)(void *map, const void *value, __u64 flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value,
					 __u64 flags) = (void *)107;
static __u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size,
					__u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static __u64 (*const bpf_ringbuf_query)(void *ring, __u64 what) = (void *)134;

#define AF_INET6 10
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_CHRONO_RWND_LIMITED 2
#define TCP_REORDERING 3 /* net.ipv4.tcp_reordering, unless somebody has set it */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
/* Of ecn_flags: both ends have agreed on ECN, by RFC 3168, or on AccECN (since Linux 7.0). */
#define TCP_ECN_OK 0x11
#define TCP_CONG_NON_RESTRICTED 1 /* any process may choose it */

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__u32 u6_addr32[4];
	} in6_u;
};

struct netns_ipv4 {
	__u8 sysctl_tcp_slow_start_after_idle;
};

struct net {
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	__u32 skc_daddr;
	__u32 skc_rcv_saddr;
	__u16 skc_dport;
	__u16 skc_num;
	__u16 skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	__u32 val;
} kuid_t;

struct sock {
	struct sock_common __sk_common;
	kuid_t sk_uid;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
	__u32 icsk_rto;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 app_limited;
	__u32 data_segs_out;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 lost;
	__u32 lost_out;
	__u32 lsndtime;
	__u32 mdev_us;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 prior_cwnd;
	__u32 prr_out;
	__u32 reordering;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 srtt_us;
	__u64 tcp_clock_cache;
	__u64 tcp_wstamp_ns;
	__u32 total_retrans;
	__u32 undo_marker;
	__u16 tcp_header_len;
	__u8 ecn_flags;
	__u8 is_cwnd_limited : 1;
	__u8 chrono_type : 2;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct rate_sample {
	__u32 prior_delivered;
	__s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	__u32 acked_sacked;
};

/* include/linux/win_minmax.h */
struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

/* net/ipv4/tcp_bbr.c */
struct bbr {
	__u32 min_rtt_us;
	__u32 min_rtt_stamp;
	struct minmax bw; /* packets a microsecond, times 2^24 */
	__u32 rtt_cnt;
	__u32 next_rtt_delivered;
	__u32 mode : 3;
	__u32 pacing_gain : 10;
	__u32 cwnd_gain : 10;
};

#pragma clang attribute pop

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	/* the last: headwayd takes it out where the kernel has it not */
	void (*cwnd_event_tx_start)(struct sock *sk);
};

/* Since Linux 7.1 CA_EVENT_TX_START has a hook of its own, and Cubic and BBR have only that. */
struct tcp_congestion_ops___with_tx_start {
	void (*cwnd_event_tx_start)(struct sock *sk);
} __attribute__((preserve_access_index));

#define HAS_TX_START \
	__builtin_preserve_field_info( \
		((struct tcp_congestion_ops___with_tx_start *)0)->cwnd_event_tx_start, \
		FIELD_EXISTS)

/* The kernel's own controllers. */
extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* Of a bit field, where the running kernel has it. */
#define TYPE_MATCHES 2 /* for __builtin_preserve_type_info() */
#define FIELD_EXISTS 2 /* and for __builtin_preserve_field_info() */
#define FIELD_OFFSET 0
#define FIELD_SIZE 1
#define FIELD_LEFT 4
#define FIELD_RIGHT 5
#define BITS(pointer, field) ({ \
	const void *at = (const void *)(pointer) + \
		__builtin_preserve_field_info((pointer)->field, FIELD_OFFSET); \
	__u64 bits; \
	asm volatile("" : "+r"(at)); \
	switch (__builtin_preserve_field_info((pointer)->field, FIELD_SIZE)) { \
	case 1: bits = *(const __u8 *)at; break; \
	case 2: bits = *(const __u16 *)at; break; \
	case 4: bits = *(const __u32 *)at; break; \
	default: bits = *(const __u64 *)at; break; \
	} \
	bits <<= __builtin_preserve_field_info((pointer)->field, FIELD_LEFT); \
	bits >> __builtin_preserve_field_info((pointer)->field, FIELD_RIGHT); \
})

#define VOLATILE(x) (*(volatile typeof(x) *)&(x))

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline __u32 ca_state(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	return BITS(icsk, icsk_ca_state);
}

/*
 * Every window that a program sets is at most what the administrator allows
 * (`ip route ... cwnd lock N`).
 */
static __always_inline void set_cwnd(struct tcp_sock *tp, __u32 cwnd)
{
	__u32 clamp = tp->snd_cwnd_clamp;

	tp->snd_cwnd = cwnd < clamp ? cwnd : clamp;
}

/* Cubic's, as the flow begins to send again. */
static __always_inline void cubic_tx_start(struct sock *sk)
{
	if (HAS_TX_START)
		cubictcp_cwnd_event_tx_start(sk);
	else
		cubictcp_cwnd_event(sk, CA_EVENT_TX_START);
}

static __always_inline __u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

#endif
