/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The guard of a flow that a policy steers: docs/guard.md. It checks the age of answers
 * (guard_age.h), the windows and rates that they ask for, and how the flow does (guard_path.h)
 * compared with a shadow Cubic that is fed the same acknowledgements (cubic.h). After a violation
 * (guard_detectors.h) the flow falls back to Cubic for a probation. Every threshold is in limits.h.
 *
 * Helper-free and in whole numbers: BPF programs include it, so that it works when the agent does
 * not, and crates/fixed compiles it natively for simulated flows.
 */
#ifndef HEADWAY_GUARD_H
#define HEADWAY_GUARD_H

#include "guard_age.h"
#include "guard_detectors.h"
#include "guard_path.h"

struct headway_guard {
	struct headway_path path;
	struct headway_age age;
	struct headway_bad bad;
	__u64 until_ns; /* the end of a probation */
	/* when the flow last changed hands, or when the last trip was forgotten */
	__u64 since_ns;
	__u32 trips;    /* so far */
	__u16 reason;   /* enum headway_reason: why the flow is in fallback */
	/* trips that are not forgotten, at most undoubled + doublings; sets the next probation */
	__u16 level;
};

/* Where nothing was lost yet: TCP_INFINITE_SSTHRESH. */
#define HEADWAY_NO_SSTHRESH 0x7fffffffu

/*
 * Begins to judge a flow, which may have sent before. The shadow Cubic starts from the flow's
 * window. ssthresh is 0 if none is set.
 */
static inline void headway_guard_open(struct headway_guard *g, __u64 now_ns, __u32 cwnd,
				      __u32 ssthresh)
{
	g->since_ns = g->path.peak_ns = now_ns;
	/* Only an answer ends a probation. */
	if (!g->reason)
		g->age.fresh_ns = now_ns;
	g->path.epoch_ns = 0;
	headway_cubic_open(&g->path.cubic, cwnd, ssthresh);
}

/* Has the guard judged the flow since headway_guard_open()? */
static inline int headway_guard_has_begun(const struct headway_guard *g)
{
	return g->path.epoch_ns != 0;
}

/* Clears the counts of bad epochs and answers, after a verdict or for another policy. */
static inline void headway_guard_acquit(struct headway_guard *g)
{
	g->bad.lossy = g->bad.slow = g->bad.poor = g->bad.hungry = g->bad.wild = 0;
}

/*
 * The flow's policy is gone. The next one does not inherit its requests or its bad epochs. The
 * guard keeps the fallback, the end of its probation and the number of trips.
 */
static inline void headway_guard_forget(struct headway_guard *g)
{
	g->age.asked_ns = g->age.fresh_ns = 0;
	g->age.late = g->age.overdue = 0;
	headway_guard_acquit(g);
	g->path.epoch_ns = 0;
	g->path.mean = g->path.capacity;
	g->path.epoch_rtt_us = g->path.most_in_flight = 0;
	g->path.is_app_limited = g->path.is_beyond = 0;
}

/* A record asked for an answer, whether the ring had room for it or not. */
static inline void headway_guard_ask(struct headway_guard *g, __u64 now_ns)
{
	headway_age_ask(&g->age, now_ns);
}

/* May the answer of answered_ns, to the record of decided_ns, be carried out? */
static inline int headway_guard_answer(struct headway_guard *g, const struct headway_limits *l,
				       __u64 decided_ns, __u64 answered_ns, __u64 now_ns)
{
	return headway_age_answer(&g->age, l, decided_ns, answered_ns, now_ns) && !g->reason;
}

/* Clamps the window that a policy asks for, in packets. */
static inline __u32 headway_guard_cwnd(struct headway_guard *g, const struct headway_limits *l,
				       __s64 wanted)
{
	__s64 least = l->min_cwnd, most = l->max_cwnd;

	/* Steps down may pass the minimum on purpose, so only windows above the maximum count. */
	headway_bad_count_wild(&g->bad, wanted > most);
	if (wanted < least)
		return l->min_cwnd;
	return wanted > most ? l->max_cwnd : (__u32)wanted;
}

/*
 * Clamps the rate that a policy asks for, in bytes a second, to rate_gain times the recent delivery
 * rate. That is the largest of the recent epochs' rates and the newest rate sample.
 */
static inline __u64 headway_guard_rate(struct headway_guard *g, const struct headway_limits *l,
				       __u64 wanted)
{
	__u64 rate = headway_path_peak(&g->path), newest = 0, most;

	/* In 1/256 packets a second, as the peak: rates below one have a bound too. */
	if (g->path.rate_interval_us)
		newest = g->path.rate_delivered * 256000000ull / g->path.rate_interval_us;
	if (rate < newest)
		rate = newest;
	/* 2^44 of 2^16 bytes, times 15: below 2^64. */
	rate = headway_at_most(rate, 1ull << 44);
	most = rate * (l->rate_gain & 15) * g->path.mss >> 8;
	if (!most || most > l->max_rate)
		most = l->max_rate;
	headway_bad_count_wild(&g->bad, wanted > l->max_rate);
	return wanted > most ? most : wanted;
}

/* Has the guard taken the flow because the policy sent more than the path carries? */
static inline int headway_guard_has_sent_too_much(const struct headway_guard *g)
{
	return g->reason == HEADWAY_TOO_LOSSY || g->reason == HEADWAY_TOO_SLOW ||
	       g->reason == HEADWAY_TOO_WILD;
}

/*
 * Returns the ssthresh from which Cubic takes over, in packets. After a policy that sent too much
 * it is near what the path carries. After a policy that sent too little that is unknown, so
 * ssthresh is at least the shadow Cubic's window. A policy that leaves a flow (HEADWAY_LEAVE) sent
 * too much if its window is far above the shadow Cubic's.
 */
static inline __u32 headway_guard_restart(const struct headway_guard *g,
					  const struct headway_limits *l,
					  const struct headway_record *r)
{
	const struct headway_cubic *cubic = &g->path.cubic;
	__u64 peak = headway_at_most(headway_path_peak(&g->path), HEADWAY_RATE_MOST);
	__u64 rtt_us = headway_at_most(r->min_rtt_us, HEADWAY_RTT_MOST);
	/* Below 2^40 times 2^24. Cubic's next loss leaves it what the path carries. */
	__u64 bdp = (peak * rtt_us >> 8) / (1000000 / 10 * HEADWAY_CUBIC_BETA) + 1;
	int is_too_large = headway_guard_has_sent_too_much(g);

	if (!g->reason)
		is_too_large = (__u64)r->cwnd * HEADWAY_CUBIC_ONE > l->ahead * cubic->cwnd;
	if (!is_too_large && !cubic->reduced_ns &&
	    (g->reason || headway_cubic_is_in_slow_start(cubic)))
		return HEADWAY_NO_SSTHRESH;
	if (!peak || !rtt_us)
		return r->cwnd > l->least_ssthresh ? r->cwnd : l->least_ssthresh;
	if (!is_too_large && bdp < r->cwnd)
		bdp = r->cwnd;
	/* With other flows Cubic holds more than the path alone needs. */
	if (bdp < cubic->cwnd / HEADWAY_CUBIC_ONE)
		bdp = cubic->cwnd / HEADWAY_CUBIC_ONE;
	if (is_too_large && bdp > r->cwnd)
		bdp = r->cwnd;
	return bdp > l->least_ssthresh ? (__u32)bdp : l->least_ssthresh;
}

/*
 * Losses shortly after a trip are of packets that the policy sent. If it sent too much, Cubic's
 * window started low enough, and is not reduced for them again.
 */
static inline int headway_guard_ignores_loss(const struct headway_guard *g,
					     const struct headway_limits *l, __u64 now_ns,
					     __u32 srtt_us)
{
	return headway_guard_has_sent_too_much(g) &&
	       headway_since(now_ns, g->since_ns) < 1000ull * l->spared_rtts * srtt_us;
}

static inline int headway_guard_trip(struct headway_guard *g, const struct headway_limits *l,
				     __u64 now_ns, __u32 reason)
{
	__u32 undoubled = l->undoubled & 0xff, most = (l->doublings & 15) + undoubled;
	/* The limits may be a learner's or a newer agent's, and not those of the last trip. */
	__u32 level = g->level < most ? g->level : most,
	      doubled = level > undoubled ? level - undoubled : 0;

	g->reason = reason;
	g->since_ns = now_ns;
	g->trips++;
	/* Not above what the longest probation needs, so that a pardon shortens the next. */
	g->level = level < most ? level + 1 : most;
	g->until_ns = now_ns + l->probation_ms * HEADWAY_MS * (1ull << doubled);
	headway_guard_acquit(g);
	return HEADWAY_TRIP;
}

/* Gives the flow back: the probation is over, and the policy answers. */
static inline int headway_guard_return(struct headway_guard *g, __u64 now_ns)
{
	g->reason = HEADWAY_FINE;
	g->since_ns = now_ns;
	g->age.asked_ns = 0;
	g->age.late = 0;
	g->path.mean = g->path.capacity;
	headway_guard_acquit(g);
	return HEADWAY_RESUME;
}

/*
 * Returns why the flow has to leave its policy, if it has to. `reason` is the finding of the epoch
 * that has just ended.
 */
static inline __u32 headway_guard_detect(struct headway_guard *g, const struct headway_limits *l,
					 const struct headway_record *r, __u32 reason)
{
	if (headway_age_is_stale(&g->age, l, r))
		return HEADWAY_TOO_STALE;
	return g->bad.wild >= l->wild_answers ? HEADWAY_TOO_WILD : reason;
}

/* Decides who controls the flow from now on. */
static inline int headway_guard_decide(struct headway_guard *g, const struct headway_limits *l,
				       const struct headway_record *r, __u32 reason)
{
	__u64 now_ns = r->now_ns;

	if (g->reason)
		return now_ns >= g->until_ns && headway_age_answers(&g->age, l, now_ns)
			       ? headway_guard_return(g, now_ns)
			       : HEADWAY_FALLBACK;
	if (g->level && headway_since(now_ns, g->since_ns) > l->pardon_ms * HEADWAY_MS) {
		g->level--;
		g->since_ns = now_ns;
	}
	reason = headway_guard_detect(g, l, r, reason);
	return reason ? headway_guard_trip(g, l, now_ns, reason) : HEADWAY_POLICY;
}

/*
 * Judges the flow by its record at an acknowledgement or a timeout, after the base controller ran.
 * Returns enum headway_guard_verdict.
 */
static inline int headway_guard_judge(struct headway_guard *g, const struct headway_limits *l,
				      const struct headway_record *r)
{
	struct headway_epoch epoch;
	__u32 reason = HEADWAY_FINE;

	g->age.patience_us = headway_age_patience(l, r->srtt_us);
	if (headway_path_observe(&g->path, l, r, &epoch)) {
		reason = headway_bad_count_epoch(&g->bad, &g->path, l, r, &epoch);
		g->path.is_app_limited = g->path.is_beyond = 0;
	}
	return headway_guard_decide(g, l, r, reason);
}

#endif
