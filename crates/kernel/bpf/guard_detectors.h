/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The detectors of bad policies. The guard's third part (guard.h). The comment above each detector
 * is its row of the table in docs/guard.md. Enough bad epochs in a row trip the guard.
 */
#ifndef HEADWAY_GUARD_DETECTORS_H
#define HEADWAY_GUARD_DETECTORS_H

#include "guard_path.h"

/* The number of bad epochs, or answers, in a row. */
struct headway_bad {
	__u16 lossy;
	__u16 slow;
	__u16 poor;
	__u16 hungry;
	__u16 wild; /* answers */
	__u16 unused[3];
};

/* `bounds`: the policy asks again and again for a window or a rate out of bounds. */
static inline void headway_bad_count_wild(struct headway_bad *bad, int is_wild)
{
	if (!is_wild)
		bad->wild = 0;
	else
		bad->wild = headway_count_up(bad->wild);
}

/*
 * `loss`: too large a share of what was sent is lost, and more is in flight than the shadow Cubic
 * would have.
 */
static inline int headway_is_lossy(const struct headway_path *p, const struct headway_limits *l,
				   const struct headway_epoch *epoch)
{
	return p->is_beyond && epoch->packets >= l->loss_packets &&
	       epoch->lost << 16 > epoch->packets * l->loss;
}

/*
 * `delay`: the smoothed RTT is far above the minimum RTT, and above what it is where losses or
 * marks occur: there Cubic's queue is as long. And the window in use is much larger than the shadow
 * Cubic's: where the path became slower, Cubic's queue would be as long.
 */
static inline int headway_is_slow(const struct headway_path *p, const struct headway_limits *l,
				  const struct headway_record *r)
{
	__u64 least = r->min_rtt_us, srtt = r->srtt_us;
	__u64 window = r->cwnd < r->in_flight ? r->cwnd : r->in_flight;

	return srtt << 8 > least * l->inflation && srtt > least + l->inflation_us &&
	       srtt > (__u64)l->full_rtts * p->full_rtt_us &&
	       window * HEADWAY_CUBIC_ONE > l->ahead * p->cubic.cwnd;
}

/* log2(rate) - weight * log2(rtt / least), in 1/65536. */
static inline __s64 headway_utility(const struct headway_limits *l, __u64 rate, __u64 rtt_us,
				    __u64 least_us)
{
	__s64 inflation = (__s64)headway_log2(rtt_us) - headway_log2(least_us);

	return (__s64)headway_log2(rate) -
	       (inflation > 0 ? (__s64)((__u64)inflation * l->weight >> 16) : 0);
}

/*
 * The same of the shadow Cubic: what its window brings, at most the largest rate of the recent
 * epochs. If the flow has starved since it began, that rate says nothing of the path, and an
 * initial window in a minimum RTT stands for it.
 */
static inline __s64 headway_cubic_utility(const struct headway_path *p,
					  const struct headway_limits *l,
					  const struct headway_record *r)
{
	__u64 peak = headway_path_peak(p), rtt_us = r->min_rtt_us,
	      rate = headway_path_cubic_rate(p, r), first;

	if (!peak || !rtt_us)
		return 0;
	first = 1000000ull * HEADWAY_CUBIC_ONE * l->initial_window / rtt_us;
	if (!p->full_rtt_us && !p->capacity && peak < first)
		peak = first;
	if (rate > peak) {
		rtt_us = p->cubic.cwnd * 1000000 / peak;
		if (rtt_us > p->max_rtt_us)
			rtt_us = p->max_rtt_us;
		rate = peak;
	}
	return headway_utility(l, rate, rtt_us, r->min_rtt_us);
}

/*
 * `utility`, of one epoch: it is below the shadow Cubic's by a margin, there is data to send, and
 * no queue is the flow's. With a queue of others it is the path that is slow, and not the sender.
 */
static inline int headway_is_poor(const struct headway_path *p, const struct headway_limits *l,
				  const struct headway_record *r, const struct headway_epoch *epoch)
{
	if (p->is_app_limited ||
	    (!epoch->is_thin && headway_has_queue(l, r->srtt_us, r->min_rtt_us)))
		return 0;
	return headway_utility(l, epoch->rate, r->srtt_us, r->min_rtt_us) + (__s64)l->margin <
	       headway_cubic_utility(p, l, r);
}

/*
 * `utility`, by means over many epochs: the mean rate is below a share of what the path carried
 * while a queue stood, and the utility is below the shadow Cubic's. What Cubic would pay for that
 * rate is the RTT where losses come, or the longest so far: a policy may give rate for delay, at
 * utility's price. Long means vary little, so their margin is small.
 */
static inline int headway_is_hungry(const struct headway_path *p, const struct headway_limits *l,
				    const struct headway_record *r)
{
	__u64 rtt_us = p->full_rtt_us ? p->full_rtt_us : p->max_rtt_us,
	      rate = headway_path_cubic_rate(p, r);

	if (p->is_app_limited)
		return 0;
	if (rate > p->capacity)
		rate = p->capacity;
	/* Below 2^40 times 2^17. */
	if (p->mean >= rate * (l->share & 0x1ffff) >> 16)
		return 0;
	return headway_utility(l, p->mean, p->mean_rtt_us, r->min_rtt_us) + (__s64)l->long_margin <
	       headway_utility(l, rate, rtt_us, r->min_rtt_us);
}

/* Counts an epoch that has ended. Returns why the policy loses the flow, or HEADWAY_FINE. */
static inline __u32 headway_bad_count_epoch(struct headway_bad *bad, const struct headway_path *p,
					    const struct headway_limits *l,
					    const struct headway_record *r,
					    const struct headway_epoch *epoch)
{
	/*
	 * Losses come in bursts, a round trip apart. An epoch without them undoes one bad one, not
	 * all.
	 */
	if (headway_is_lossy(p, l, epoch))
		bad->lossy = headway_count_up(bad->lossy);
	else if (bad->lossy)
		bad->lossy--;
	bad->slow = headway_is_slow(p, l, r) ? headway_count_up(bad->slow) : 0;
	bad->poor = headway_is_poor(p, l, r, epoch) ? headway_count_up(bad->poor) : 0;
	bad->hungry = headway_is_hungry(p, l, r) ? headway_count_up(bad->hungry) : 0;
	if (bad->lossy >= l->epochs)
		return HEADWAY_TOO_LOSSY;
	if (bad->slow >= l->slow_epochs)
		return HEADWAY_TOO_SLOW;
	if (bad->poor >= l->epochs || bad->hungry >= l->long_epochs)
		return HEADWAY_TOO_POOR;
	return HEADWAY_FINE;
}

#endif
