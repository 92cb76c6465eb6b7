/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The base controller of every program: the kernel's Cubic, which a flow falls back to. If a
 * program has cong_control, the kernel skips what it does around cong_avoid (tcp_cong_control() in
 * net/ipv4/tcp_input.c): the reduction after a loss (PRR, RFC 6937), the pacing rate, and the
 * restart after idle. cubic_control(), cubic_state() and cubic_restart() do these here, also for
 * flows without a slot, and for all flows while no agent runs. tests/system/test_packet_scripts.py
 * compares them with the kernel's own Cubic, packet by packet.
 *
 * A socket without a struct flow (kept_of() gives 0) could not be given its memory:
 * net.core.optmem_max is too small, or the host had none left. Its window is Cubic's, but a
 * reduction is one step, because PRR needs the flow's counter.
 */
#ifndef HEADWAY_BASE_H
#define HEADWAY_BASE_H

#include "kernel.h"
#include "flow.h"

/*
 * Ends the program's own pacing. SO_MAX_PACING_RATE, the application's, stays in force. The kernel
 * measures RTTs from the time at which pacing lets a packet go (tcp_wstamp_ns). After a low rate
 * that is up to some tens of milliseconds ahead. A packet that left before would have an RTT that
 * is too short, in the kernel too, and Cubic would end slow start by it. So the next packet waits
 * for that time. The packets after it do not wait: at this rate they add nothing to it.
 */
static __always_inline void stop_pacing(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);

	f->stops_pacing = 0;
	if (sk->sk_pacing_status != SK_PACING_NEEDED || sk->sk_max_pacing_rate != ~0ul)
		return;
	if (tp->tcp_wstamp_ns > tp->tcp_clock_cache) {
		f->stops_pacing = 1;
		sk->sk_pacing_rate = ~0ul;
	} else {
		sk->sk_pacing_status = SK_PACING_NONE;
	}
}

static __always_inline bool is_reducing(struct sock *sk)
{
	__u32 state = ca_state(sk);

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

/*
 * PRR (RFC 6937) with the slow-start reduction bound. The flow counts what was delivered: a program
 * may not write tp's.
 */
static __always_inline void reduce(struct sock *sk, struct flow *f, const struct rate_sample *rs,
				   bool advances)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__s32 acked = rs->acked_sacked, flying = in_flight(tp), ssthresh = tp->snd_ssthresh,
	      out = tp->prr_out, send;
	__u32 prior_cwnd = tp->prior_cwnd;

	if (acked <= 0 || !prior_cwnd)
		return;
	f->prr_delivered += acked;
	if (flying > ssthresh) {
		send = ((__u64)tp->snd_ssthresh * f->prr_delivered + prior_cwnd - 1) / prior_cwnd -
		       out;
	} else {
		send = (__s32)f->prr_delivered - out;
		if (send < acked)
			send = acked;
		if (advances && !rs->losses)
			send++;
		if (send > ssthresh - flying)
			send = ssthresh - flying;
	}
	/* The first retransmission is always sent (tcp_cwnd_reduction()). */
	if (send < !out)
		send = !out;
	set_cwnd(tp, flying + send > 1 ? flying + send : 1);
}

/* As tcp_update_pacing_rate(): this percentage of the window per RTT. */
static __always_inline void pace_window(struct sock *sk, __u32 percent)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 rate = (__u64)tp->mss_cache * ((1000000ull << 3) / 100);
	__u32 cwnd = tp->snd_cwnd > tp->packets_out ? tp->snd_cwnd : tp->packets_out;

	if (!tp->srtt_us)
		return;
	rate = rate * percent * cwnd / tp->srtt_us;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* An acknowledgement, handled as the kernel handles it for a controller without cong_control. */
static __always_inline void cubic_control(struct sock *sk, __u32 ack, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *f = kept_of(sk);
	bool advances = !f || f->una != tp->snd_una;

	if (f)
		f->una = tp->snd_una;
	if (is_reducing(sk) && f)
		reduce(sk, f, rs, advances);
	else if (is_reducing(sk))
		set_cwnd(tp, tp->snd_ssthresh);
	else if (rs->acked_sacked && (advances || tp->reordering > TCP_REORDERING))
		/*
		 * tcp_may_raise_cwnd(): a SACK alone lets the window grow only if reordering was
		 * seen on the path.
		 */
		cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
	/* Twice the window in slow start. */
	pace_window(sk, tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120);
	if (f && f->stops_pacing)
		stop_pacing(sk, f);
}

/*
 * Called before the kernel enters `state`. Begins a reduction, or ends one as
 * tcp_end_cwnd_reduction() does.
 */
static __always_inline void cubic_state(struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *f = kept_of(sk);
	__u32 before = ca_state(sk);

	cubictcp_state(sk, state);
	if (!is_reducing(sk) && f)
		f->prr_delivered = 0;
	else if (is_reducing(sk) && state < TCP_CA_CWR &&
		 tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
		 (before == TCP_CA_CWR || tp->undo_marker))
		set_cwnd(tp, tp->snd_ssthresh);
}

/* The time since the flow last sent, in jiffies. */
static __always_inline __u32 idle_of(struct tcp_sock *tp)
{
	return (__u32)bpf_jiffies64() - tp->lsndtime;
}

/*
 * Has the flow sent before, and nothing for an RTO since? The administrator may turn this off.
 */
static __always_inline bool is_after_idle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct net *net = sk->__sk_common.skc_net.net;
	__u32 rto = tp->inet_conn.icsk_rto;

	return tp->data_segs_out && rto && idle_of(tp) > rto &&
	       net->ipv4.sysctl_tcp_slow_start_after_idle;
}

/* tcp_cwnd_restart(): half the window for each RTO of idleness, down to the initial one. */
static __always_inline void restart_after_idle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 rto = tp->inet_conn.icsk_rto, idle = idle_of(tp), cwnd = tp->snd_cwnd;
	struct flow *f = kept_of(sk);
	__u32 initial_cwnd = f ? f->initial_cwnd : TCP_INIT_CWND;

	/* A flow that has sent nothing keeps its initial window. */
	if (!is_after_idle(sk))
		return;
	if (tp->snd_ssthresh < (cwnd >> 1) + (cwnd >> 2))
		tp->snd_ssthresh = (cwnd >> 1) + (cwnd >> 2);
	/* 32 halvings make any window 0. */
	for (int i = 0; i < 32 && idle > rto && cwnd > initial_cwnd; i++) {
		idle -= rto;
		cwnd >>= 1;
	}
	if (tp->snd_cwnd > initial_cwnd)
		set_cwnd(tp, cwnd > initial_cwnd ? cwnd : initial_cwnd);
}

static __always_inline void cubic_restart(struct sock *sk)
{
	cubic_tx_start(sk);
	restart_after_idle(sk);
}

/*
 * The ssthresh after a loss or a mark: Cubic's. For losses soon after a trip the window may stay,
 * because the policy sent what is lost now. It never grows: the reduction ends at ssthresh.
 */
static __always_inline __u32 cubic_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct headway_settings *set = the_settings();
	struct flow *f = kept_of(sk);
	__u32 cwnd = tp->snd_cwnd > 2 ? tp->snd_cwnd : 2;

	/* What is undone from now on is a reduction of Cubic's own window. */
	if (f)
		f->undo_most = 0;
	if (f && set && f->in_fallback && tp->lost_out &&
	    headway_guard_ignores_loss(&f->guard, limits_of(f, set), bpf_ktime_get_ns(),
				       f->srtt_us >> 3) &&
	    tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		return tp->snd_ssthresh < cwnd ? tp->snd_ssthresh : cwnd;
	return cubictcp_recalc_ssthresh(sk);
}

/*
 * Undoes a reduction that was wrong, but never up to a window that the guard took from a policy.
 */
static __always_inline __u32 cubic_undo_cwnd(struct sock *sk)
{
	struct flow *f = kept_of(sk);
	__u32 cwnd = tcp_reno_undo_cwnd(sk), now = tcp_sk(sk)->snd_cwnd, most;

	if (!f || !f->undo_most)
		return cwnd;
	/* Cubic's window may have grown since. */
	most = f->undo_most > now ? f->undo_most : now;
	return cwnd > most ? most : cwnd;
}

/*
 * Cubic takes over, near what the path carries. If the policy's window was smaller, slow start
 * leads there. In set_state `state` is the one that the kernel enters.
 */
static __always_inline void give_to_cubic(struct sock *sk, struct flow *f, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct headway_settings *set = the_settings();
	struct headway_record now = {};
	__u32 ssthresh = HEADWAY_NO_SSTHRESH;

	write_record(sk, f, &now, 0, 0, 0, state);
	/* During a reduction the window is PRR's. The policy's was the one before. */
	if (state >= TCP_CA_CWR && now.cwnd < tp->prior_cwnd)
		now.cwnd = tp->prior_cwnd;
	if (set)
		ssthresh = headway_guard_restart(&f->guard, limits_of(f, set), &now);
	cubictcp_init(sk);
	/* During recovery PRR leads to ssthresh. After a timeout slow start does. */
	f->prr_delivered = tp->prr_out;
	/* An earlier reduction may be undone later, when its last retransmission is reported. */
	f->undo_most = state >= TCP_CA_CWR || tp->undo_marker ? ssthresh : 0;
	if (state >= TCP_CA_CWR) {
		/*
		 * ssthresh is seven tenths of the policy's window, which may have been far too
		 * large. BBR sets none.
		 */
		if (tp->snd_ssthresh > ssthresh)
			tp->snd_ssthresh = ssthresh;
		/* The policy's window would leave at this acknowledgement as one burst. */
		if (tp->snd_cwnd > in_flight(tp) + 1)
			set_cwnd(tp, in_flight(tp) + 1);
		return;
	}
	tp->snd_ssthresh = ssthresh;
	if (tp->snd_cwnd > ssthresh)
		set_cwnd(tp, ssthresh);
	else if (tp->snd_cwnd < f->initial_cwnd)
		set_cwnd(tp, f->initial_cwnd < ssthresh ? f->initial_cwnd : ssthresh);
}

/*
 * Lowers the window to the packets in flight, after Cubic has taken a flow that was paced by a
 * rate. Such a window is only a bound, and may be twice as large. Unpaced, the difference would
 * leave as one burst.
 */
static __always_inline void fill_window(struct sock *sk, struct flow *f, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 flying = in_flight(tp), least = f->initial_cwnd,
	      most = flying > least ? flying : least;

	if (state < TCP_CA_CWR && tp->snd_cwnd > most)
		set_cwnd(tp, most);
}

#endif
