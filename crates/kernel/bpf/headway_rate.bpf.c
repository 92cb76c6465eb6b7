// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The policy's pacing rate (Aurora), with a window that only bounds what an outage can pile up. The
 * policy is the agent's, or one in whole numbers that is evaluated here. Without either, and where
 * the guard has a flow, all is Cubic's.
 */
#include "kernel.h"
#include "actions.h"
#include "with_cong_control.h"
#include "rate_agent.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Of the two signatures that cong_control has had the newer one, since Linux 6.10. */
struct tcp_congestion_ops___with_ack {
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
} __attribute__((preserve_access_index));

/* The policy that is evaluated here; its generation is 0 where the agent decides. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct headway_int8);
} int8 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct headway_rate_agent);
} rate_agents SEC(".maps");

static __always_inline struct headway_int8 *the_int8(void)
{
	__u32 first = 0;
	struct headway_int8 *net = bpf_map_lookup_elem(&int8, &first);

	return net && headway_int8_generation(net) ? net : 0;
}

static __always_inline void apply_rate(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 mss = wire_mss(sk), rtt_us = f->srtt_us >> 3, cwnd = 100, rate;

	if (!mss)
		return;
	/* At most 2^37 bytes a second (settings) times 2^26 us. */
	if (rtt_us)
		cwnd = 10 +
		       2 * (f->pacing_rate * (rtt_us < 1 << 26 ? rtt_us : 1 << 26) / 1000000) / mss;
	set_cwnd(tp, cwnd < 100000 ? cwnd : 100000);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	/* The kernel paces payload; the application may have set a limit. */
	rate = f->pacing_rate * tp->mss_cache / mss;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

static __always_inline __u64 within(const struct headway_settings *set, __u64 rate)
{
	return rate < set->min_rate ? set->min_rate : rate > set->max_rate ? set->max_rate : rate;
}

/* What a window brings, in bytes a second on the wire. */
static __always_inline __u64 rate_of(struct sock *sk, const struct headway_settings *set,
				     __u32 cwnd, __u32 srtt_us)
{
	return within(set,
		      srtt_us ? (__u64)cwnd * wire_mss(sk) * 1000000 / srtt_us : set->initial_rate);
}

/*
 * What the window that Cubic leaves brings. During a reduction, and after a timeout, that is
 * ssthresh. A smaller path MTU enters TCP_CA_Loss too, without a timeout or a reduction.
 */
static __always_inline __u64 cubic_rate(struct sock *sk, const struct flow *f,
					const struct headway_settings *set, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_reduced = state == TCP_CA_Loss
				  ? tp->undo_marker || tp->inet_conn.icsk_retransmits
				  : state >= TCP_CA_CWR;
	bool has_ssthresh = is_reduced && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH;

	return rate_of(sk, set, has_ssthresh ? tp->snd_ssthresh : tp->snd_cwnd, f->srtt_us >> 3);
}

/* The policy that is evaluated here takes a record, and may change the rate. */
static __always_inline void decide(struct sock *sk, struct flow *f,
				   const struct headway_settings *set,
				   const struct headway_int8 *net, const struct headway_record *r)
{
	struct headway_rate_agent *agent =
		bpf_sk_storage_get(&rate_agents, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	__u32 decisions;
	__u64 rate;

	if (!agent)
		return;
	/*
	 * All that a new flow sends is this policy's doing. In any other flow the policy takes over
	 * what others began.
	 */
	if (f->is_new) {
		__builtin_memset(agent, 0, sizeof(*agent));
		headway_rate_agent_open(agent, net, r->now_ns);
	}
	decisions = agent->decisions;
	agent->rate = f->in_fallback ? within(set, sk->sk_pacing_rate) : f->pacing_rate;
	rate = headway_rate_agent_record(agent, net, r);
	/* Between reports to the agent the next record would have the sample again. */
	f->rtt_us = -1;
	if (agent->decisions == decisions)
		return;
	headway_guard_ask(&f->guard, r->now_ns);
	if (!headway_guard_answer(&f->guard, limits_of(f, set), r->now_ns, r->now_ns, r->now_ns) ||
	    f->in_fallback)
		return;
	f->pacing_rate = headway_guard_rate(&f->guard, limits_of(f, set), rate);
}

/* The flow is Cubic's from now on. */
static __attribute__((noinline)) int give_up(struct sock *sk, struct flow *f, __u8 state)
{
	give_to_cubic(sk, f, state);
	fill_window(sk, f, state);
	f->pacing_rate = 0;
	stop_pacing(sk, f);
	return 0;
}

static __always_inline void tell(struct sock *sk, struct flow *f,
				 const struct headway_settings *set, __u32 acks, __u8 state)
{
	struct headway_int8 *net = the_int8();
	struct headway_report told;
	int verdict;

	/*
	 * This is a timeout before an acknowledgement has found that its own policy is gone. There
	 * is no agent to be asked.
	 */
	if (!net && f->slot >= HEADWAY_FLOWS)
		return;
	/*
	 * This policy leaves no flow to Cubic. The agent's before it may have, and is not asked
	 * again.
	 */
	if (net)
		f->is_left = 0;
	verdict = report(sk, f, set, &told, acks, !net, state);
	if (verdict == HEADWAY_TRIP) {
		give_up(sk, f, state);
	} else if (verdict == HEADWAY_RESUME) {
		f->pacing_rate = cubic_rate(sk, f, set, state);
	}
	if (net)
		decide(sk, f, set, net, &told.record);
	f->is_new = 0;
	/* After a timeout one packet may be in flight until it is acknowledged (RFC 5681, 3.1). */
	if (!f->in_fallback && acks)
		apply_rate(sk, f);
}

/* A rate is paced anyway. */
static __always_inline void resume(struct sock *sk, struct flow *f)
{
}

static __always_inline void answer_marks(struct sock *sk, struct flow *f,
					 const struct headway_settings *set)
{
	if (f->pacing_rate)
		f->pacing_rate = within(set, after_marks(f->pacing_rate));
}

SEC("struct_ops")
void rate_init(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct headway_rate_agent *agent = bpf_sk_storage_get(&rate_agents, sk, 0, 0);

	cubictcp_init(sk);
	open_flow(sk);
	/*
	 * A socket may come here again. What it did under another controller was not this policy's.
	 */
	if (agent)
		agent->generation = 0;
}

SEC("struct_ops")
void rate_cong_control(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct headway_settings *set = the_settings();
	const struct rate_sample *rs;
	struct headway_action action;
	struct flow *f = kept_of(sk);

	/* Both loads have to stand in the program; which one is run is known when it is loaded. */
	if (__builtin_preserve_type_info(*(struct tcp_congestion_ops___with_ack *)0, TYPE_MATCHES))
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(ctx));
	if (f)
		sample_rtt(f, rs->rtt_us);
	if (!f || !set || !is_served(sk, f, set, the_int8() != 0)) {
		/* The policy was evaluated here. Another, the agent's, has taken its place. */
		if (f && f->pacing_rate)
			give_up(sk, f, ca_state(sk));
		cubic_control(sk, tcp_sk(sk)->snd_una, rs);
		return;
	}
	if (!f->pacing_rate && !f->in_fallback)
		f->pacing_rate = f->is_new ? within(set, set->initial_rate)
					   : cubic_rate(sk, f, set, ca_state(sk));
	answer_marks_in_recovery(sk, f, set);
	if (find_action(f, set, &action) && action.kind == HEADWAY_SCALE_RATE) {
		__u64 factor = action.values[0] < 0	    ? 0
			       : action.values[0] > 1 << 24 ? 1 << 24
							    : action.values[0];

		f->pacing_rate = headway_guard_rate(&f->guard, limits_of(f, set),
						    within(set, (f->pacing_rate * factor) >> 16));
	}
	if (f->in_fallback)
		cubic_control(sk, tcp_sk(sk)->snd_una, rs);
	tell(sk, f, set, 1, ca_state(sk));
}

/*
 * By default the kernel paces at least two packets together. The second waits for the first at the
 * bottleneck, and a policy that looks at RTTs takes this for a queue. So a packet goes by itself,
 * as in the simulator. The kernel sends more together than this asks for from 24 Mbit/s on, and on
 * paths of a few milliseconds. A flow of Cubic has the kernel's usual two.
 */
SEC("struct_ops")
__u32 rate_min_tso_segs(__u64 *ctx)
{
	struct flow *f = kept_of((void *)ctx[0]);

	return f && f->pacing_rate ? 1 : 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headway_rate = {
	.init = (void *)rate_init,
	.min_tso_segs = (void *)rate_min_tso_segs,
	.cong_control = (void *)rate_cong_control,
	WITH_CONG_CONTROL,
	.name = "headway_rate",
};
