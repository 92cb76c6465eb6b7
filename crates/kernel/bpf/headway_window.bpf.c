// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The policy's window in every state (Rax). Without an agent, and where the guard has a flow, all is Cubic's. */
#include "kernel.h"
#include "flow.h"
#include "with_cong_control.h"

char _license[] SEC("license") = "Dual MIT/GPL";

static __always_inline void tell(struct sock *sk, struct flow *f, const struct headway_settings *set, __u32 acks,
				 __u8 state)
{
	struct headway_report told;

	if (report(sk, f, set, &told, acks, 1, state) == HEADWAY_TRIPS)
		give_to_cubic(sk, f, state);
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
	struct flow *f = flow_of(sk);
	struct headway_action action;

	if (!f || !set) {
		cubic_control(sk, ack, rs);
		return;
	}
	sample_rtt(f, rs->rtt_us);
	if (find_action(f, set, &action))
		tcp_sk(sk)->snd_cwnd = steer_cwnd(f, set, &action, tcp_sk(sk)->snd_cwnd);
	if (f->is_cubics)
		cubic_control(sk, ack, rs);
	else
		pace_window(sk);
	tell(sk, f, set, 1, ca_state(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_window = {
	.init = (void *)window_init,
	.cong_control = (void *)window_cong_control,
	WITH_CONG_CONTROL,
	.name = "headway_window",
};
