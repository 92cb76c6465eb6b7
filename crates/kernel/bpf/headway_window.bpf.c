// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The policy's window in every state (Rax). Without an agent, and where the guard has a flow, all
 * is Cubic's.
 */
#include "kernel.h"
#include "actions.h"
#include "with_cong_control.h"

/* Of the window, in a round trip: where it is paced, as the kernel paces congestion avoidance. */
#define PACED_PERCENT 120
/* Where it is not, as the kernel paces slow start. */
#define UNPACED_PERCENT 200

char _license[] SEC("license") = "Dual MIT/GPL";

static __always_inline void start_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	pace_window(sk, PACED_PERCENT);
}

static __always_inline void tell(struct sock *sk, struct flow *f,
				 const struct headway_settings *set, __u32 acks, __u8 state)
{
	struct headway_report told;
	int verdict = report(sk, f, set, &told, acks, 1, state);

	if (verdict == HEADWAY_TRIP) {
		give_to_cubic(sk, f, state);
		stop_pacing(sk, f);
	} else if (verdict == HEADWAY_RESUME && (state == TCP_CA_CWR || state == TCP_CA_Recovery)) {
		/* The window is PRR's until the reduction ends, as in tcp_end_cwnd_reduction(). */
		set_cwnd(tcp_sk(sk), tcp_sk(sk)->snd_ssthresh);
		/* It may be far above the packets in flight. */
		start_pacing(sk);
	}
}

/*
 * The policy's window is not reduced packet by packet in recovery (PRR): all that a burst of losses
 * leaves free would go out at once, and most of that be lost again. Paced at 1.2 windows a round
 * trip what is free is spread. Only then, and for a round trip after an idle period: pacing has its
 * price. At all other times the rate only follows the window. The kernel sizes TSO packets and its
 * queue by it, and the qdisc fq and SO_MAX_PACING_RATE pace by it.
 */
static __always_inline void pace_policy(struct sock *sk, struct flow *f)
{
	if (ca_state(sk) >= TCP_CA_CWR || tcp_sk(sk)->tcp_clock_cache < f->paced_ns) {
		start_pacing(sk);
	} else {
		stop_pacing(sk, f);
		if (!f->stops_pacing)
			pace_window(sk, UNPACED_PERCENT);
	}
}

/* After an idle period no acknowledgements clock the window out, so it would leave as one burst. */
static __always_inline void resume(struct sock *sk, struct flow *f)
{
	if (!is_after_idle(sk))
		return;
	f->paced_ns = bpf_ktime_get_ns() + (f->srtt_us >> 3) * 1000ull;
	start_pacing(sk);
}

static __always_inline void answer_marks(struct sock *sk, struct flow *f,
					 const struct headway_settings *set)
{
	__u32 cwnd = after_marks(tcp_sk(sk)->snd_cwnd), least = limits_of(f, set)->min_cwnd;

	set_cwnd(tcp_sk(sk), cwnd > least ? cwnd : least);
}

SEC("struct_ops")
void window_init(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	cubictcp_init(sk);
	open_flow(sk);
}

SEC("struct_ops")
void window_cong_control(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct rate_sample *rs = (void *)ctx[3];
	__u32 ack = ctx[1];
	struct headway_settings *set = the_settings();
	struct flow *f = kept_of(sk);
	struct headway_action action;

	if (f)
		sample_rtt(f, rs->rtt_us);
	if (!f || !set || !is_served(sk, f, set, 0)) {
		cubic_control(sk, ack, rs);
		return;
	}
	answer_marks_in_recovery(sk, f, set);
	if (find_action(f, set, &action))
		steer_cwnd(tcp_sk(sk), f, set, &action);
	if (f->in_fallback)
		cubic_control(sk, ack, rs);
	else
		pace_policy(sk, f);
	tell(sk, f, set, 1, ca_state(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_window = {
	.init = (void *)window_init,
	.cong_control = (void *)window_cong_control,
	WITH_CONG_CONTROL,
	.name = "headway_window",
};
