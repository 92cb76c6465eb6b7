// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The kernel's BBR, with its two windows set per flow at run time: HEADWAY_SET with values[0] the
 * BtlBw window in rounds and values[1] the RTprop window in nanoseconds. Without an agent it is BBR
 * with its own windows; where the guard has a flow it is Cubic's.
 */
#include "kernel.h"
#include "actions.h"
#include "base.h"

char _license[] SEC("license") = "Dual MIT/GPL";

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs) __ksym;
extern __u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern __u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void bbr_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern __u32 bbr_ssthresh(struct sock *sk) __ksym;
extern __u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, __u8 state) __ksym;

/*
 * Jiffies in a second. The agent writes it before the program is loaded, because a kernel's
 * configuration cannot be read everywhere.
 */
const volatile __u32 hz = 250;

/* net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec and bbr_bw_rtts */
#define BBR_RTPROP_S 10
#define BBR_BTLBW_ROUNDS 10

/* What the kernel's windows are made to seem. */
struct windows {
	__u64 rounds;       /* of the bandwidth filter's clock, times 65536 */
	__u32 rtprop_ms;
	__u32 btlbw_rounds;
	__u32 true_stamp;   /* min_rtt_stamp as BBR set it, in jiffies */
	__u32 shown_stamp;  /* and as we last showed it to BBR */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct windows);
} windows SEC(".maps");

static __always_inline struct bbr *bbr_of(struct sock *sk)
{
	return (struct bbr *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline struct windows *windows_of(struct sock *sk)
{
	return bpf_sk_storage_get(&windows, sk, 0, 0);
}

static __always_inline bool in_fallback(struct sock *sk)
{
	struct flow *f = kept_of(sk);

	return f && f->in_fallback;
}

/* Over Cubic's state, which is in the same place. There are no windows where memory was short. */
static __always_inline void begin(struct sock *sk, struct windows *w)
{
	bbr_init(sk);
	if (!w)
		return;
	w->rounds = 0;
	w->true_stamp = w->shown_stamp = bbr_of(sk)->min_rtt_stamp;
}

/* BBR has set the stamp itself. */
static __always_inline void keep_stamp(struct sock *sk, struct windows *w)
{
	__u32 stamp = bbr_of(sk)->min_rtt_stamp;

	if (stamp != w->shown_stamp)
		w->true_stamp = w->shown_stamp = stamp;
}

/*
 * The agent is told what BBR takes the path for. Where Cubic has the flow, its state is in the same
 * place.
 */
static __always_inline void keep_model(struct sock *sk, struct flow *f, bool is_bbrs)
{
	struct bbr *bbr = bbr_of(sk);

	f->btlbw = is_bbrs ? (((__u64)bbr->bw.s[0].v * wire_mss(sk)) >> 8) * 1000000 >> 16 : 0;
	f->rtprop_us = is_bbrs && bbr->min_rtt_us != ~0u ? bbr->min_rtt_us : 0;
	f->pacing_gain = is_bbrs ? BITS(bbr, pacing_gain) : 0;
	f->cwnd_gain = is_bbrs ? BITS(bbr, cwnd_gain) : 0;
}

static __always_inline void tell(struct sock *sk, struct flow *f, __u32 acks, __u8 state)
{
	const struct headway_settings *set = the_settings();
	struct windows *w = windows_of(sk);
	struct headway_report told;
	int verdict;

	if (!set)
		return;
	keep_model(sk, f, !f->in_fallback);
	verdict = report(sk, f, set, &told, acks, 1, state);
	if (verdict == HEADWAY_TRIP) {
		give_to_cubic(sk, f, state);
		fill_window(sk, f, state);
		stop_pacing(sk, f);
	} else if (verdict == HEADWAY_RESUME) {
		begin(sk, w);
	}
}

static __always_inline void set_windows(struct windows *w, const struct headway_action *action)
{
	__s64 rounds = action->values[0], rtprop_ns = action->values[1];

	if (action->kind != HEADWAY_SET)
		return;
	if (action->which & 1)
		w->btlbw_rounds = rounds < 1 ? 1 : rounds > 10000 ? 10000 : rounds;
	if (action->which & 2)
		w->rtprop_ms = rtprop_ns < 1000000 ? 1 :
			       rtprop_ns > 3600000000000ll ? 3600000 : (__u64)rtprop_ns / 1000000;
}

/*
 * BBR takes its RTprop for expired 10 s after min_rtt_stamp: it is shown a stamp that old once our
 * window is over, and a fresh one before. Its bandwidth filter keeps 10 rounds of rtt_cnt: that
 * clock is run at 10/N of its speed.
 */
static __always_inline void run_bbr(struct sock *sk, struct windows *w, __u32 ack, int flag,
				    const struct rate_sample *rs)
{
	struct bbr *bbr = bbr_of(sk);
	__u32 now = bpf_jiffies64(), rounds = w->btlbw_rounds ? w->btlbw_rounds : 1;
	__u64 window = (__u64)w->rtprop_ms * hz / 1000;

	w->shown_stamp = now - w->true_stamp > window ? now - (BBR_RTPROP_S * hz + 1) : now - 1;
	bbr->min_rtt_stamp = w->shown_stamp;
	/* bbr_update_bw() counts a round up itself, by the same test. */
	if (rs->delivered >= 0 && rs->interval_us > 0 &&
	    (__s32)(rs->prior_delivered - bbr->next_rtt_delivered) >= 0) {
		w->rounds += ((__u64)BBR_BTLBW_ROUNDS << 16) / rounds;
		bbr->rtt_cnt = (__u32)(w->rounds >> 16) - 1;
	} else {
		bbr->rtt_cnt = w->rounds >> 16;
	}
	bbr_main(sk, ack, flag, rs);
	keep_stamp(sk, w);
}

SEC("struct_ops")
void tuned_init(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct windows *w = bpf_sk_storage_get(&windows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct flow *f = open_flow(sk);

	if (w) {
		w->rtprop_ms = BBR_RTPROP_S * 1000;
		w->btlbw_rounds = BBR_BTLBW_ROUNDS;
	}
	if (f && f->in_fallback)
		cubictcp_init(sk);
	else
		begin(sk, w);
}

SEC("struct_ops")
void tuned_release(__u64 *ctx)
{
	close_flow((void *)ctx[0]);
}

SEC("struct_ops")
void tuned_cong_control(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u32 ack = ctx[1];
	int flag = ctx[2];
	const struct rate_sample *rs = (void *)ctx[3];
	struct windows *w = windows_of(sk);
	struct headway_settings *set = the_settings();
	struct flow *f = kept_of(sk);
	struct headway_action action;
	bool is_told = 0;

	if (f && set) {
		sample_rtt(f, rs->rtt_us);
		is_told = is_served(sk, f, set, 0);
		if (is_told && find_action(f, set, &action) && w)
			set_windows(w, &action);
	}
	if (f && f->in_fallback)
		cubic_control(sk, ack, rs);
	else if (w)
		run_bbr(sk, w, ack, flag, rs);
	else
		bbr_main(sk, ack, flag, rs);
	if (f && is_told)
		tell(sk, f, 1, ca_state(sk));
}

SEC("struct_ops")
void tuned_pkts_acked(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	if (in_fallback(sk))
		cubictcp_acked(sk, (void *)ctx[1]);
}

SEC("struct_ops")
void tuned_set_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u8 state = ctx[1];
	struct flow *f = flow_of(sk);

	if (in_fallback(sk))
		cubic_state(sk, state);
	else
		bbr_set_state(sk, state);
	if (f && state == TCP_CA_Loss)
		tell(sk, f, 0, state);
}

static __always_inline void tx_start(struct sock *sk)
{
	struct windows *w = windows_of(sk);

	if (in_fallback(sk)) {
		cubic_restart(sk);
		return;
	}
	if (HAS_TX_START)
		bbr_cwnd_event_tx_start(sk);
	else
		bbr_cwnd_event(sk, CA_EVENT_TX_START);
	if (w)
		keep_stamp(sk, w);
}

SEC("struct_ops")
void tuned_cwnd_event(__u64 *ctx)
{
	if (ctx[1] == CA_EVENT_TX_START)
		tx_start((void *)ctx[0]);
}

SEC("struct_ops")
void tuned_tx_start(__u64 *ctx)
{
	tx_start((void *)ctx[0]);
}

SEC("struct_ops")
__u32 tuned_ssthresh(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	return in_fallback(sk) ? cubic_ssthresh(sk) : bbr_ssthresh(sk);
}

SEC("struct_ops")
__u32 tuned_undo_cwnd(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	return in_fallback(sk) ? cubic_undo_cwnd(sk) : bbr_undo_cwnd(sk);
}

SEC("struct_ops")
__u32 tuned_sndbuf_expand(__u64 *ctx)
{
	return in_fallback((void *)ctx[0]) ? 2 : bbr_sndbuf_expand((void *)ctx[0]);
}

SEC("struct_ops")
__u32 tuned_min_tso_segs(__u64 *ctx)
{
	return in_fallback((void *)ctx[0]) ? 2 : bbr_min_tso_segs((void *)ctx[0]);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_bbr = {
	.init = (void *)tuned_init,
	.release = (void *)tuned_release,
	.pkts_acked = (void *)tuned_pkts_acked,
	.cong_control = (void *)tuned_cong_control,
	.set_state = (void *)tuned_set_state,
	.cwnd_event = (void *)tuned_cwnd_event,
	.cwnd_event_tx_start = (void *)tuned_tx_start,
	.ssthresh = (void *)tuned_ssthresh,
	.undo_cwnd = (void *)tuned_undo_cwnd,
	.sndbuf_expand = (void *)tuned_sndbuf_expand,
	.min_tso_segs = (void *)tuned_min_tso_segs,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "headway_bbr",
};
