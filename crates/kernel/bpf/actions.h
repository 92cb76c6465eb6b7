/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the agent wants of a flow. */
#ifndef HEADWAY_ACTIONS_H
#define HEADWAY_ACTIONS_H

#include "flow.h"

/* Reads the agent's new action for the flow. Returns whether it may be carried out. */
static __always_inline bool find_action(struct flow *f, const struct headway_settings *set,
					struct headway_action *action)
{
	__u32 slot = f->slot, sequence;
	struct headway_action *a = bpf_map_lookup_elem(&actions, &slot);
	__u64 now_ns;

	if (!a || VOLATILE(a->sequence) == f->sequence)
		return 0;
	/* Adding 0 orders what is read around it, on every architecture. */
	sequence = __sync_fetch_and_add(&a->sequence, 0);
	*action = *a;
	if (sequence & 1 || __sync_fetch_and_add(&a->sequence, 0) != sequence)
		return 0; /* half written: the next acknowledgement reads it */
	f->sequence = sequence;
	if (action->flow != f->number)
		return 0;
	/* An answer may have been given since the acknowledgement arrived. */
	now_ns = bpf_ktime_get_ns();
	f->is_asked = 0;
	f->is_left = action->kind == HEADWAY_LEAVE;
	f->due_ns = action->due_ns < now_ns + HEADWAY_LATEST_DUE_NS
			    ? action->due_ns
			    : now_ns + HEADWAY_LATEST_DUE_NS;
	if (f->is_learners != (action->flags & HEADWAY_LEARNER)) {
		f->is_learners = !f->is_learners;
		headway_guard_acquit(&f->guard);
	}
	return headway_guard_answer(&f->guard, limits_of(f, set), action->decided_ns,
				    action->answered_ns, now_ns) &&
	       now_ns < action->expires_ns && !f->in_fallback;
}

/*
 * Applies an action to the window, within the guard's bounds. A window that is not full does not
 * grow, because it has not been validated (RFC 7661): the application writes too little, or the
 * receiver has no room. Lost packets that wait for room fill it too. Under the qdisc fq
 * is_cwnd_limited is not set for them, because TCP's own pacing timer, which sets it, does not run.
 */
static __always_inline void steer_cwnd(struct tcp_sock *tp, struct flow *f,
				       const struct headway_settings *set,
				       const struct headway_action *action)
{
	__u32 cwnd = tp->snd_cwnd, bounded;
	__s64 wanted = cwnd, value = action->values[0];

	if (action->kind == HEADWAY_ADD_CWND) {
		/* The bounds keep the sum from wrapping, whatever the agent writes. */
		wanted += value > 1 << 20 ? 1 << 20 : value < -(1 << 20) ? -(1 << 20) : value;
	} else if (action->kind == HEADWAY_SCALE_CWND) {
		__u64 factor = value < 0 ? 0 : value > 1 << 24 ? 1 << 24 : value;

		wanted = (cwnd * factor + (1 << 15)) >> 16;
	} else if (action->kind == HEADWAY_SET_CWND) {
		/*
		 * A decision from before an ECN mark does not raise the window that the mark has
		 * reduced.
		 */
		if (value > cwnd && action->decided_ns < f->marked_ns)
			return;
		wanted = value;
	} else {
		return;
	}
	bounded = headway_guard_cwnd(&f->guard, limits_of(f, set), wanted);
	if (bounded <= cwnd || BITS(tp, is_cwnd_limited) || tp->lost_out > tp->retrans_out)
		set_cwnd(tp, bounded);
}

#endif
