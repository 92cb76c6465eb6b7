/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The hooks that all programs with cong_control share. While a policy controls the flow they keep
 * Cubic's state up to date. In fallback, or without a policy, they do all that Cubic does. Each
 * program has a tell() of its own.
 */
#ifndef HEADWAY_WITH_CONG_CONTROL_H
#define HEADWAY_WITH_CONG_CONTROL_H

#include "base.h"

/*
 * Passes the flow's record at a timeout (acks 0) or after an acknowledgement (1) to the guard and
 * to the policy. `state` is the state that the kernel is in, or enters.
 */
static __always_inline void tell(struct sock *sk, struct flow *f,
				 const struct headway_settings *set, __u32 acks, __u8 state);

/*
 * Reduces a policy's window or rate for ECN marks: to seven tenths, as Cubic after a loss (RFC
 * 9438, 4.6).
 */
static __always_inline __u64 after_marks(__u64 before)
{
	return before * 7 / 10;
}

/*
 * Answers the marks of a round trip, or a full queue of this host: the kernel enters TCP_CA_CWR for
 * both.
 */
static __always_inline void answer_marks(struct sock *sk, struct flow *f,
					 const struct headway_settings *set);

/*
 * Answers marks while losses are repaired, once in each recovery. The kernel does so in other
 * states only: in recovery its own controllers have reduced for the loss already, and a policy has
 * not. The receiver repeats a mark until it sees CWR, perhaps until the recovery has ended.
 */
static __always_inline void answer_marks_in_recovery(struct sock *sk, struct flow *f,
						     const struct headway_settings *set)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now_ns = tp->tcp_clock_cache;
	bool is_marked = tp->delivered_ce != f->marked;

	f->marked = tp->delivered_ce;
	if (ca_state(sk) < TCP_CA_Recovery)
		f->has_answered = 0;
	else if (is_marked && !f->in_fallback && !f->has_answered &&
		 headway_since(now_ns, f->marked_ns) >= (f->srtt_us >> 3) * 1000ull) {
		f->has_answered = 1;
		f->marked_ns = now_ns;
		answer_marks(sk, f, set);
	}
}

/* A flow of a policy sends again after any pause. */
static __always_inline void resume(struct sock *sk, struct flow *f);

SEC("struct_ops")
void cc_release(__u64 *ctx)
{
	close_flow((void *)ctx[0]);
}

SEC("struct_ops")
void cc_pkts_acked(__u64 *ctx)
{
	cubictcp_acked((void *)ctx[0], (void *)ctx[1]);
}

SEC("struct_ops")
void cc_set_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u8 state = ctx[1];
	struct headway_settings *set = the_settings();
	struct flow *f = flow_of(sk);

	if (!f || f->in_fallback)
		cubic_state(sk, state);
	else
		cubictcp_state(sk, state);
	/*
	 * The kernel enters this state once a round trip. It tells the receiver that the sender has
	 * slowed down.
	 */
	if (f && set && !f->in_fallback && state == TCP_CA_CWR &&
	    tcp_sk(sk)->ecn_flags & TCP_ECN_OK) {
		/* As a recovery ends, its marks may be repeated. */
		if (!f->has_answered) {
			f->marked_ns = tcp_sk(sk)->tcp_clock_cache;
			answer_marks(sk, f, set);
		}
		f->has_answered = 0;
	}
	if (f && set && state == TCP_CA_Loss)
		tell(sk, f, set, 0, state);
}

static __always_inline void tx_start(struct sock *sk)
{
	struct flow *f = flow_of(sk);

	if (!f || f->in_fallback) {
		cubic_restart(sk);
		return;
	}
	cubic_tx_start(sk);
	resume(sk, f);
}

SEC("struct_ops")
void cc_cwnd_event(__u64 *ctx)
{
	if (ctx[1] == CA_EVENT_TX_START)
		tx_start((void *)ctx[0]);
}

SEC("struct_ops")
void cc_tx_start(__u64 *ctx)
{
	tx_start((void *)ctx[0]);
}

SEC("struct_ops")
__u32 cc_ssthresh(__u64 *ctx)
{
	return cubic_ssthresh((void *)ctx[0]);
}

SEC("struct_ops")
__u32 cc_undo_cwnd(__u64 *ctx)
{
	return cubic_undo_cwnd((void *)ctx[0]);
}

/* These hooks, for a struct tcp_congestion_ops. */
#define WITH_CONG_CONTROL \
	.release = (void *)cc_release, \
	.pkts_acked = (void *)cc_pkts_acked, \
	.set_state = (void *)cc_set_state, \
	.cwnd_event = (void *)cc_cwnd_event, \
	.cwnd_event_tx_start = (void *)cc_tx_start, \
	.ssthresh = (void *)cc_ssthresh, \
	.undo_cwnd = (void *)cc_undo_cwnd, \
	.flags = TCP_CONG_NON_RESTRICTED

#endif
