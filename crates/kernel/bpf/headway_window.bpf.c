// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* The policy's window in every state (Rax). Without an agent, and where the guard has a flow, all is Cubic's. */
#include "kernel.h"
#include "flow.h"
#include "beneath.h"

char _license[] SEC("license") = "Dual MIT/GPL";

static __always_inline void tell(struct sock *sk, struct flow *f, __u32 acks)
{
	struct headway_record r;

	if (report(sk, f, &r, acks, 1) == HEADWAY_TRIPS)
		give_to_cubic(sk, f);
}

SEC("struct_ops")
void window_init(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	cubictcp_init(sk);
	open_flow(sk);
}

SEC("struct_ops")
void window_release(__u64 *ctx)
{
	close_flow((void *)ctx[0]);
}

SEC("struct_ops")
void window_pkts_acked(__u64 *ctx)
{
	cubictcp_acked((void *)ctx[0], (void *)ctx[1]);
}

SEC("struct_ops")
void window_cong_control(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct rate_sample *rs = (void *)ctx[3];
	__u32 ack = ctx[1];
	struct flow *f = flow_of(sk);
	struct headway_action action;

	if (f)
		sample_rtt(f, rs->rtt_us);
	if (f && find_action(f, &action))
		tcp_sk(sk)->snd_cwnd = steer_cwnd(f, &action, tcp_sk(sk)->snd_cwnd);
	if (!f || f->is_cubics)
		cubic_control(sk, ack, rs);
	pace_window(sk);
	if (f)
		tell(sk, f, 1);
}

SEC("struct_ops")
void window_set_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	__u8 state = ctx[1];
	struct flow *f = flow_of(sk);

	if (!f || f->is_cubics)
		cubic_state(sk, state);
	else
		cubictcp_state(sk, state);
	if (f && state == TCP_CA_Loss)
		tell(sk, f, 0);
}

SEC("struct_ops")
void window_cwnd_event(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct flow *f = flow_of(sk);

	if (!f || f->is_cubics)
		cubic_event(sk, ctx[1]);
	else
		cubictcp_cwnd_event(sk, ctx[1]);
}

SEC("struct_ops")
__u32 window_ssthresh(__u64 *ctx)
{
	return cubic_ssthresh((void *)ctx[0]);
}

SEC("struct_ops")
__u32 window_undo_cwnd(__u64 *ctx)
{
	return tcp_reno_undo_cwnd((void *)ctx[0]);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_window = {
	.init = (void *)window_init,
	.release = (void *)window_release,
	.pkts_acked = (void *)window_pkts_acked,
	.cong_control = (void *)window_cong_control,
	.set_state = (void *)window_set_state,
	.cwnd_event = (void *)window_cwnd_event,
	.ssthresh = (void *)window_ssthresh,
	.undo_cwnd = (void *)window_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "headway_window",
};
