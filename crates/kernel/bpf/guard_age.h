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
	__u64 asked_ns;    /* when the oldest question was asked that has no answer; 0 for none */
	__u64 fresh_ns;    /* when an answer was found last that was not late */
	/* how long an answer may take, as of the last record; 0 before the first */
	__u32 patience_us;
	__u16 late;        /* answers in a row that took longer */
	/* acknowledgements in a row that found the oldest question waiting for longer */
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

/* A record went out that wants an answer, or found no room. */
static inline void headway_age_ask(struct headway_age *a, __u64 now_ns)
{
	if (!a->asked_ns)
		a->asked_ns = now_ns;
}

/*
 * An answer was found, given at answered_ns to what was seen at decided_ns: is it in time? Who
 * gives it is late by the time that took; that it then waits for an acknowledgement is the path's
 * doing, or the application's.
 */
static inline int headway_age_answer(struct headway_age *a, const struct headway_limits *l,
				     __u64 decided_ns, __u64 answered_ns, __u64 now_ns)
{
	__u64 patience = (__u64)(a->patience_us ? a->patience_us : l->answer_us) * 1000;

	if (decided_ns > answered_ns || answered_ns > now_ns)
		return 0;
	/* It answers all that was asked before it was written. */
	if (answered_ns >= a->asked_ns) {
		a->asked_ns = 0;
		a->overdue = 0;
	}
	if (headway_since(answered_ns, decided_ns) > patience) {
		a->late = headway_count_up(a->late);
		return 0;
	}
	a->late = 0;
	/* Who was prompt minutes ago may have died since. */
	if (headway_since(now_ns, decided_ns) > l->answer_keeps_ms * HEADWAY_MS)
		return 0;
	a->fresh_ns = now_ns;
	return 1;
}

/*
 * At an acknowledgement or a timeout while the policy has the flow. `stale`: no answer comes, or
 * each is late.
 */
static inline int headway_age_is_stale(struct headway_age *a, const struct headway_limits *l,
				       const struct headway_record *r)
{
	/*
	 * Answers are looked for at acknowledgements. One may have waited for the first after an
	 * outage.
	 */
	if (!a->asked_ns || headway_since(r->now_ns, a->asked_ns) <= (__u64)a->patience_us * 1000)
		a->overdue = 0;
	else if (r->acks)
		a->overdue = headway_count_up(a->overdue);
	return a->overdue >= l->stale_answers || a->late >= l->stale_answers;
}

/* Only a policy that answers may have another chance. */
static inline int headway_age_answers(const struct headway_age *a, const struct headway_limits *l,
				      __u64 now_ns)
{
	return headway_since(now_ns, a->fresh_ns) <=
	       (__u64)l->answer_most_us * 1000 * l->return_patiences;
}

#endif
