/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The kernel's Cubic beneath every program: what a flow goes back to. Where a program has cong_control the kernel
 * leaves out what it does around cong_avoid (tcp_cong_control() in net/ipv4/tcp_input.c): the reduction after a loss
 * (PRR, RFC 6937) and the pacing rate. cubic_control() and cubic_state() do it.
 */
#ifndef HEADWAY_BENEATH_H
#define HEADWAY_BENEATH_H

#include "kernel.h"
#include "flow.h"

static __always_inline bool is_reducing(struct sock *sk)
{
	__u32 state = ca_state(sk);

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

/* RFC 6937 with the slow-start reduction bound, over this program's own count of what was delivered. */
static __always_inline void reduce(struct sock *sk, struct flow *f, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__s32 acked = rs->acked_sacked, flying = in_flight(tp), ssthresh = tp->snd_ssthresh, out = tp->prr_out, send;
	__u32 prior_cwnd = tp->prior_cwnd;

	if (acked <= 0 || !prior_cwnd)
		return;
	f->prr_delivered += acked;
	if (flying > ssthresh) {
		send = ((__u64)tp->snd_ssthresh * f->prr_delivered + prior_cwnd - 1) / prior_cwnd - out;
	} else {
		send = (__s32)f->prr_delivered - out;
		if (send < acked)
			send = acked;
		if (!rs->losses)
			send++;
		if (send > ssthresh - flying)
			send = ssthresh - flying;
	}
	/* The first retransmission goes out whatever is in flight. */
	if (send < !out)
		send = !out;
	tp->snd_cwnd = flying + send > 1 ? flying + send : 1;
}

/* What tcp_update_pacing_rate() sets: twice the window per RTT in slow start, then 1.2 times. */
static __always_inline void pace_window(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 rate = (__u64)tp->mss_cache * ((1000000ull << 3) / 100);
	__u32 cwnd = tp->snd_cwnd > tp->packets_out ? tp->snd_cwnd : tp->packets_out;

	if (!tp->srtt_us)
		return;
	rate *= tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	rate = rate * cwnd / tp->srtt_us;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* An acknowledgement, as Cubic without us would take it. */
static __always_inline void cubic_control(struct sock *sk, struct flow *f, __u32 ack, const struct rate_sample *rs)
{
	if (is_reducing(sk) && f)
		reduce(sk, f, rs);
	else if (rs->acked_sacked)
		cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
	pace_window(sk);
}

/* Before the kernel enters `state`: where a reduction begins and ends (tcp_end_cwnd_reduction()). */
static __always_inline void cubic_state(struct sock *sk, struct flow *f, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 before = ca_state(sk);

	cubictcp_state(sk, state);
	if (!f)
		return;
	if (!is_reducing(sk))
		f->prr_delivered = 0;
	else if (state < TCP_CA_CWR && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
		 (before == TCP_CA_CWR || tp->undo_marker))
		tp->snd_cwnd = tp->snd_ssthresh;
}

/* Cubic takes over, from near what the path carries: by slow start if the policy left less. */
static __always_inline void give_to_cubic(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct headway_record now = {};
	__u32 ssthresh;

	write_record(sk, f, &now, 0, 0, 0);
	ssthresh = headway_guard_restart(&f->guard, &now);
	cubictcp_init(sk);
	/* In recovery PRR leads to the ssthresh of the loss, from here on. */
	f->prr_delivered = tp->prr_out;
	if (ca_state(sk) >= TCP_CA_CWR)
		return;
	tp->snd_ssthresh = ssthresh;
	if (tp->snd_cwnd > ssthresh)
		tp->snd_cwnd = ssthresh;
}

#endif
