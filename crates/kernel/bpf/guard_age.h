/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How old answers are: the row `stale` of docs/guard.md. The guard's first part (guard.h).
 */
#ifndef HEADWAY_GUARD_AGE_H
#define HEADWAY_GUARD_AGE_H

#include "abi.h"
#include "fixed.h"
#include "limits.h"

struct headway_age {
	__u64 asked_ns;    /* when the oldest request without an answer was sent; 0: none */
	__u64 fresh_ns;    /* when the program last read an answer that was in time */
	/* how long an answer may take, as of the last record; 0 before the first */
	__u32 patience_us;
	__u16 late;        /* answers in a row that took longer than that */
	/* acknowledgements in a row at which the oldest request had waited longer than that */
	__u16 overdue;
};

/* How long an answer may take. */
static inline __u32 headway_age_patience(const struct headway_limits *l, __u32 srtt_us)
{
	__u64 patience = (__u64)srtt_us * l->answer_rtts;

	if (patience < l->answer_us)
		patience = l->answer_us;
	return patience < l->answer_most_us ? patience : l->answer_most_us;
}

/* A record asked for an answer, whether the ring had room for it or not. */
static inline void headway_age_ask(struct headway_age *a, __u64 now_ns)
{
	if (!a->asked_ns)
		a->asked_ns = now_ns;
}

/*
 * An answer of answered_ns to the record of decided_ns was read: was it in time? Only the time
 * until the agent wrote it counts. The wait for the next acknowledgement after that is not the
 * agent's.
 */
static inline int headway_age_answer(struct headway_age *a, const struct headway_limits *l,
				     __u64 decided_ns, __u64 answered_ns, __u64 now_ns)
{
	__u64 patience = (__u64)(a->patience_us ? a->patience_us : l->answer_us) * 1000;

	if (decided_ns > answered_ns || answered_ns > now_ns)
		return 0;
	/* It answers all requests that were sent before it was written. */
	if (answered_ns >= a->asked_ns) {
		a->asked_ns = 0;
		a->overdue = 0;
	}
	if (headway_since(answered_ns, decided_ns) > patience) {
		a->late = headway_count_up(a->late);
		return 0;
	}
	a->late = 0;
	/* An agent that was prompt minutes ago may have died since. */
	if (headway_since(now_ns, decided_ns) > l->answer_keeps_ms * HEADWAY_MS)
		return 0;
	a->fresh_ns = now_ns;
	return 1;
}

/*
 * `stale`: no answer comes, or each is late. Called at an acknowledgement or a timeout while the
 * policy has the flow.
 */
static inline int headway_age_is_stale(struct headway_age *a, const struct headway_limits *l,
				       const struct headway_record *r)
{
	/*
	 * Answers are read at acknowledgements, so after an outage one may wait for the first of
	 * them. A single overdue acknowledgement proves nothing.
	 */
	if (!a->asked_ns || headway_since(r->now_ns, a->asked_ns) <= (__u64)a->patience_us * 1000)
		a->overdue = 0;
	else if (r->acks)
		a->overdue = headway_count_up(a->overdue);
	return a->overdue >= l->stale_answers || a->late >= l->stale_answers;
}

/* Does the policy still answer? Only then may it have the flow again. */
static inline int headway_age_answers(const struct headway_age *a, const struct headway_limits *l,
				      __u64 now_ns)
{
	return headway_since(now_ns, a->fresh_ns) <=
	       (__u64)l->answer_most_us * 1000 * l->return_patiences;
}

#endif
