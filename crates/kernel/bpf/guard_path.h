/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of the path over epochs, and the shadow Cubic, which is fed the flow's
 * acknowledgements. The guard's second part (guard.h). It judges nothing.
 */
#ifndef HEADWAY_GUARD_PATH_H
#define HEADWAY_GUARD_PATH_H

#include "abi.h"
#include "cubic.h"
#include "fixed.h"
#include "limits.h"

/* Rates are in 1/256 packets a second. The largest, times the longest RTT in us, is below 2^64. */
#define HEADWAY_RATE_MOST ((1ull << 40) - 1)
#define HEADWAY_RTT_MOST (1ull << 24)

struct headway_path {
	struct headway_cubic cubic;
	__u64 epoch_ns;         /* when the epoch under way began; 0 before the first */
	__u64 peak_ns;          /* when the half of the peaks' window under way began */
	__u64 peak;             /* the largest rate of an epoch in this half */
	__u64 last_peak;        /* the largest rate of an epoch in the half before */
	__u64 mean;             /* the mean rate of epochs */
	/* the mean rate of epochs with a queue throughout, which the path carries; 0: unknown */
	__u64 capacity;
	__u32 rate_delivered;   /* the newest rate sample: packets, ... */
	__u32 rate_interval_us; /* in this time; 0 before the first sample */
	__u32 delivered;        /* the flow's counters as of the last record ... */
	__u32 delivered_ce;
	__u32 lost;
	__u32 epoch_delivered;  /* ... and at the begin of the epoch */
	__u32 epoch_lost;
	__u32 max_rtt_us;       /* the largest smoothed RTT of the flow */
	__u32 full_rtt_us;      /* the smoothed RTT where packets were lost or marked last */
	__u32 epoch_rtt_us;     /* the minimum RTT sample of the epoch; 0 without one */
	__u32 mean_rtt_us;      /* the mean smoothed RTT of epochs */
	__u32 mss;
	__u16 most_in_flight;   /* in this epoch, 65535 at most */
	__u8 is_recovering;     /* as of the last record */
	/* in this epoch the application wrote too little, or the receiver had no room */
	__u8 is_app_limited;
	/* in this epoch more was in flight than the shadow Cubic's window allows */
	__u8 is_beyond;
	__u8 unused[3];
};

/* An epoch that has ended. */
struct headway_epoch {
	__u64 rate;
	__u64 packets; /* delivered and lost */
	__u64 lost;
	int is_full;   /* a queue stood throughout, so the path carries this rate */
	int is_thin;   /* too few packets were in flight for a queue of the flow's own */
};

static inline __u64 headway_path_peak(const struct headway_path *p)
{
	return p->peak > p->last_peak ? p->peak : p->last_peak;
}

static inline __u64 headway_at_most(__u64 value, __u64 most)
{
	return value < most ? value : most;
}

/* Does an RTT show a queue? */
static inline int headway_has_queue(const struct headway_limits *l, __u64 rtt_us, __u64 least_us)
{
	return rtt_us > least_us + (least_us * l->queue_share >> 8) + l->queue_us;
}

/* The rate of the shadow Cubic's window without a queue; 0 if unknown. */
static inline __u64 headway_path_cubic_rate(const struct headway_path *p,
					    const struct headway_record *r)
{
	/* A window of 2^28 at most, in 1/256 packets, times 10^6: below 2^48. */
	return r->min_rtt_us ? p->cubic.cwnd * 1000000 / r->min_rtt_us : 0;
}

static inline void headway_path_run_cubic(struct headway_path *p, const struct headway_limits *l,
					  const struct headway_record *r)
{
	__u64 rtt_ns = (__u64)r->srtt_us * 1000;
	__u32 acked = r->delivered - p->delivered;

	if (!r->acks) {
		headway_cubic_time_out(&p->cubic, r->now_ns, p->is_recovering);
		return;
	}
	/*
	 * Losses reduce it once an episode, however long they come in. Marks count once a round
	 * trip.
	 */
	if (r->delivered_ce != p->delivered_ce || (r->lost != p->lost && !p->is_recovering)) {
		headway_cubic_lose(&p->cubic, r->now_ns, rtt_ns);
		p->full_rtt_us = r->srtt_us;
	} else if (acked && r->lost == p->lost) {
		headway_cubic_acked(&p->cubic, acked, r->now_ns, rtt_ns);
	}
	if (headway_has_queue(l, r->srtt_us, r->min_rtt_us))
		headway_cubic_leave_slow_start(&p->cubic);
}

/* The means begin with the first full epoch: slow start before it is not the policy's fault. */
static inline void headway_path_average(struct headway_path *p, const struct headway_limits *l,
					__u64 rate, __u32 srtt_us, int is_full)
{
	__u32 shift = l->mean_shift & 31;

	rate = headway_at_most(rate, HEADWAY_RATE_MOST);
	if (is_full && !p->capacity) {
		p->mean = p->capacity = rate;
		p->mean_rtt_us = srtt_us;
	} else if (is_full) {
		p->capacity = p->capacity - (p->capacity >> shift) + (rate >> shift);
	}
	p->mean = p->mean - (p->mean >> shift) + (rate >> shift);
	p->mean_rtt_us = p->mean_rtt_us - (p->mean_rtt_us >> shift) + (srtt_us >> shift);
}

static inline void headway_path_keep_peak(struct headway_path *p, const struct headway_limits *l,
					  __u64 rate, __u64 now_ns)
{
	__u64 half_ns = l->peak_ms * HEADWAY_MS;

	if (headway_since(now_ns, p->peak_ns) > half_ns) {
		p->last_peak = headway_since(now_ns, p->peak_ns) > 2 * half_ns ? 0 : p->peak;
		p->peak = 0;
		p->peak_ns = now_ns;
	}
	if (rate > p->peak)
		p->peak = rate;
}

/* Bounds the shadow Cubic's window: a real one would lose packets a little above the BDP. */
static inline void headway_path_bound_cubic(struct headway_path *p, const struct headway_limits *l)
{
	__u64 peak = headway_at_most(headway_path_peak(p), 1ull << 34);
	__u64 rtt_us = headway_at_most(p->max_rtt_us, HEADWAY_RTT_MOST);
	/* 15 * 2^58: below 2^62. */
	__u64 most = (l->shadow_gain & 15) * peak * rtt_us / 1000000 +
		     (l->shadow_packets & 0xffff) * HEADWAY_CUBIC_ONE;

	headway_cubic_bound(&p->cubic, most > HEADWAY_CUBIC_ONE ? most : HEADWAY_CUBIC_ONE);
}

static inline void headway_path_begin_epoch(struct headway_path *p, const struct headway_record *r)
{
	p->epoch_ns = r->now_ns;
	p->epoch_delivered = r->delivered;
	p->epoch_lost = r->lost;
}

static inline void headway_path_end_epoch(struct headway_path *p, const struct headway_limits *l,
					  const struct headway_record *r,
					  struct headway_epoch *epoch)
{
	__u64 us = headway_since(r->now_ns, p->epoch_ns) / 1000;
	__u64 delivered = (__u32)(r->delivered - p->epoch_delivered);

	epoch->lost = (__u32)(r->lost - p->epoch_lost);
	epoch->packets = delivered + epoch->lost;
	/* 2^32 times 256 times 10^6: below 2^60. */
	epoch->rate = us ? delivered * 256000000 / us : 0;
	epoch->is_full = headway_has_queue(l, p->epoch_rtt_us, r->min_rtt_us);
	epoch->is_thin = p->most_in_flight <= l->few_packets;
	if (!p->is_app_limited)
		headway_path_average(p, l, epoch->rate, r->srtt_us, epoch->is_full);
	headway_path_keep_peak(p, l, epoch->rate, r->now_ns);
	headway_path_bound_cubic(p, l);
	headway_path_begin_epoch(p, r);
	p->epoch_rtt_us = p->most_in_flight = 0;
}

/*
 * The length of an epoch. Two smoothed RTTs would be too long: a longer queue would get a longer
 * time until it is judged.
 */
static inline __u64 headway_path_epoch_ns(const struct headway_limits *l,
					  const struct headway_record *r)
{
	__u64 epoch_ns = (__u64)l->epoch_us * 1000;
	__u64 of_min_ns = 1000ull * l->epoch_min_rtts * r->min_rtt_us;
	__u64 of_smoothed_ns = 1000ull * l->epoch_srtts * r->srtt_us;

	if (epoch_ns < of_min_ns)
		epoch_ns = of_min_ns;
	return epoch_ns < of_smoothed_ns ? of_smoothed_ns : epoch_ns;
}

/* Takes in a record of an acknowledgement or a timeout. Returns whether it ended an epoch. */
static inline int headway_path_observe(struct headway_path *p, const struct headway_limits *l,
				       const struct headway_record *r, struct headway_epoch *epoch)
{
	if (p->epoch_ns)
		headway_path_run_cubic(p, l, r);
	else
		headway_path_begin_epoch(p, r);
	p->delivered = r->delivered;
	p->delivered_ce = r->delivered_ce;
	p->lost = r->lost;
	p->rate_delivered = r->rate_delivered;
	p->rate_interval_us = r->rate_interval_us;
	p->mss = r->mss & 0xffff;
	p->is_recovering = r->flags & HEADWAY_RECOVERING ? 1 : 0;
	if (r->srtt_us > p->max_rtt_us)
		p->max_rtt_us = r->srtt_us;
	if (r->rtt_us && (!p->epoch_rtt_us || r->rtt_us < p->epoch_rtt_us))
		p->epoch_rtt_us = r->rtt_us;
	if (r->in_flight > p->most_in_flight)
		p->most_in_flight = r->in_flight < 0xffff ? r->in_flight : 0xffff;
	if (r->flags & (HEADWAY_APP_LIMITED | HEADWAY_RWND_LIMITED))
		p->is_app_limited = 1;
	/*
	 * Two Cubics with the same acknowledgements differ by less than a quarter. A window may be
	 * only a bound, so the packets in flight count.
	 */
	if ((__u64)r->in_flight * HEADWAY_CUBIC_ONE >
	    p->cubic.cwnd + (p->cubic.cwnd * l->beyond >> 8))
		p->is_beyond = 1;
	if (headway_since(r->now_ns, p->epoch_ns) < headway_path_epoch_ns(l, r))
		return 0;
	headway_path_end_epoch(p, l, r, epoch);
	return 1;
}

#endif
