// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The policy's window in congestion avoidance; slow start, ssthresh, recovery and timeouts are the
 * kernel's Cubic (Owl, section VI; Orca). Without an agent all is Cubic's.
 */
#include "kernel.h"
#include "actions.h"
#include "base.h"

char _license[] SEC("license") = "Dual MIT/GPL";

static __always_inline bool is_avoiding(struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd >= tcp_sk(sk)->snd_ssthresh && ca_state(sk) < TCP_CA_CWR;
}

static __always_inline void tell(struct sock *sk, struct flow *f,
				 const struct headway_settings *set, __u32 acks, __u8 state)
{
	struct headway_report told;

	if (report(sk, f, set, &told, acks, state < TCP_CA_CWR && is_avoiding(sk), state) ==
	    HEADWAY_TRIP)
		give_to_cubic(sk, f, state);
}

/* The agent's newest action, if there is one and it is congestion avoidance's turn. */
static __always_inline void act(struct sock *sk, struct flow *f, const struct headway_settings *set)
{
	struct headway_action action;
	struct tcp_sock *tp = tcp_sk(sk);

	if (!find_action(f, set, &action) || !is_avoiding(sk))
		return;
	steer_cwnd(tp, f, set, &action);
	/* Below ssthresh it would be slow start's, which leads back. */
	if (tp->snd_ssthresh > tp->snd_cwnd)
		tp->snd_ssthresh = tp->snd_cwnd;
}

SEC("struct_ops")
void owl_init(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	cubictcp_init(sk);
	open_flow(sk);
}

SEC("struct_ops")
void owl_release(__u64 *ctx)
{
	close_flow((void *)ctx[0]);
}

/* Comes before loss detection; cong_avoid after it, but not in recovery. */
SEC("struct_ops")
void owl_pkts_acked(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct ack_sample *sample = (void *)ctx[1];
	struct headway_settings *set = the_settings();
	struct flow *f;

	cubictcp_acked(sk, sample);
	f = kept_of(sk);
	if (!f || !set)
		return;
	/*
	 * The acknowledgement before came to no cong_avoid, as one that brings SACK blocks alone.
	 * Its answer is looked for here, or the guard would count it as missing.
	 */
	if (f->is_pending) {
		act(sk, f, set);
		tell(sk, f, set, 1, ca_state(sk));
	}
	sample_rtt(f, sample->rtt_us);
	if (!is_served(sk, f, set, 0))
		return;
	f->is_pending = 1;
	if (ca_state(sk) >= TCP_CA_CWR) {
		act(sk, f, set);
		tell(sk, f, set, 1, ca_state(sk));
	}
}

SEC("struct_ops")
void owl_cong_avoid(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u32 ack = ctx[1], acked = ctx[2];
	struct headway_settings *set = the_settings();
	struct flow *f = flow_of(sk);

	if (!f || !set || f->in_fallback || set->grows || !is_avoiding(sk))
		cubictcp_cong_avoid(sk, ack, acked);
	if (!f || !set)
		return;
	act(sk, f, set);
	if (f->is_pending)
		tell(sk, f, set, 1, ca_state(sk));
}

SEC("struct_ops")
void owl_set_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u8 state = ctx[1];
	struct headway_settings *set = the_settings();
	struct flow *f;

	cubictcp_state(sk, state);
	f = flow_of(sk);
	if (f && set && state == TCP_CA_Loss)
		tell(sk, f, set, 0, state);
}

SEC("struct_ops")
void owl_cwnd_event(__u64 *ctx)
{
	if (ctx[1] == CA_EVENT_TX_START)
		cubic_tx_start((void *)ctx[0]);
}

SEC("struct_ops")
void owl_tx_start(__u64 *ctx)
{
	cubic_tx_start((void *)ctx[0]);
}

SEC("struct_ops")
__u32 owl_ssthresh(__u64 *ctx)
{
	return cubic_ssthresh((void *)ctx[0]);
}

SEC("struct_ops")
__u32 owl_undo_cwnd(__u64 *ctx)
{
	return cubic_undo_cwnd((void *)ctx[0]);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_owl = {
	.init = (void *)owl_init,
	.release = (void *)owl_release,
	.pkts_acked = (void *)owl_pkts_acked,
	.cong_avoid = (void *)owl_cong_avoid,
	.set_state = (void *)owl_set_state,
	.cwnd_event = (void *)owl_cwnd_event,
	.cwnd_event_tx_start = (void *)owl_tx_start,
	.ssthresh = (void *)owl_ssthresh,
	.undo_cwnd = (void *)owl_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "headway_owl",
};
