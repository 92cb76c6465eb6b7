/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The guard of a flow that a policy steers. It watches how old answers are, what they want, and what becomes of the
 * flow beside a Cubic that saw the same; where that is bad the flow is Cubic's for a probation. Helper-free and in
 * whole numbers: BPF programs include it, so that it works when the agent does not, and crates/fixed compiles it
 * natively for simulated flows. docs/guard.md
 */
#ifndef HEADWAY_GUARD_H
#define HEADWAY_GUARD_H

#include "abi.h"
#include "cubic.h"
#include "fixed.h"
#include "limits.h"

struct headway_guard {
	struct headway_cubic cubic;
	__u64 asked_ns;   /* the question that is open; 0 for none */
	__u64 fresh_ns;   /* when an answer was found last that was not late */
	__u64 until_ns;   /* the end of a probation */
	__u64 since_ns;   /* since when it is the policy's, or Cubic's */
	__u64 epoch_ns;   /* the epoch under way: where it began, ... */
	__u64 peak_ns;    /* ... and the half of the peaks' window */
	__u64 peak;       /* the largest rate of an epoch in this half, in 1/256 packets a second, ... */
	__u64 last_peak;  /* ... and in the half before */
	__u64 mean;       /* of epochs' rates, gain 1/32, ... */
	__u64 capacity;   /* ... and of those that had a queue throughout */
	__u32 rate_delivered;   /* the newest rate sample, ... */
	__u32 rate_interval_us; /* ... which there is none of while this is 0 */
	__u32 delivered;  /* as of the last record, ... */
	__u32 delivered_ce;
	__u32 lost;
	__u32 epoch_delivered; /* ... and as of the epoch's begin */
	__u32 epoch_lost;
	__u32 max_rtt_us; /* the largest smoothed RTT of the flow */
	__u32 full_rtt_us; /* the smoothed RTT where packets were lost or marked last: a queue that is full, or says so early */
	__u32 epoch_rtt_us; /* the least RTT sample of the epoch; 0 for none */
	__u32 mean_rtt_us; /* of the smoothed RTT, gain 1/32 */
	__u32 bounds_us;  /* how long an answer may take, by the last record */
	__u16 lossy;      /* epochs in a row that were bad */
	__u16 slow;
	__u16 poor;
	__u16 hungry;     /* epochs in a row whose mean rate was too low */
	__u16 wild;       /* answers in a row */
	__u16 most_in_flight; /* in this epoch, 65535 at most */
	__u16 reason;     /* enum headway_reason: whose doing it is that it is Cubic's */
	__u16 level;      /* trips that are not forgotten: they say how often the next probation is doubled */
	__u32 trips;      /* so far */
	__u8 overdue;     /* acknowledgements in a row that found the answer overdue */
	__u8 is_recovering; /* as of the last record */
	__u8 is_app_limited; /* in this epoch, by who writes or who reads; as is what follows */
	__u8 is_beyond;      /* more was in flight than the Cubic's that saw the same */
	__u32 mss;
	__u32 late;          /* answers in a row that took too long */
};

/* Rates of the last 10 to 20 s count. */
#define HEADWAY_PEAK_NS 10000000000ull
#define HEADWAY_GUARD_MS 1000000ull
#define HEADWAY_ANSWER_KEEPS_NS 1000000000ull /* however rare acknowledgements are */
/* More than slow start grows from a sample to the next. */
#define HEADWAY_GUARD_HASTE 3
/* So few packets in flight make no queue. */
#define HEADWAY_GUARD_FEW 2
/* What any sender has in its first round trip (RFC 6928): a path carries it until a queue or a loss says otherwise. */
#define HEADWAY_GUARD_FIRST 10
/* Where nothing was lost yet: TCP_INFINITE_SSTHRESH. */
#define HEADWAY_NO_SSTHRESH 0x7fffffffu

/* A flow that begins, or that has sent before: where it is, a Cubic would be. ssthresh is 0 where there is none. */
static inline void headway_guard_open(struct headway_guard *g, __u64 now_ns, __u32 cwnd, __u32 ssthresh)
{
	g->since_ns = g->peak_ns = now_ns;
	/* Only an answer ends a probation. */
	if (!g->reason)
		g->fresh_ns = now_ns;
	g->epoch_ns = 0;
	headway_cubic_open(&g->cubic, cwnd, ssthresh);
}

/* What was counted against the policy is forgotten: it has been judged, or another has the flow. */
static inline void headway_guard_acquit(struct headway_guard *g)
{
	g->lossy = g->slow = g->poor = g->hungry = g->wild = 0;
}

/*
 * The policy that had the flow is gone. What it was asked, and what was counted against it, is not the next one's: until
 * that begins, nothing is. That the flow is Cubic's, until when, and how often it was, stays.
 */
static inline void headway_guard_forget(struct headway_guard *g)
{
	g->asked_ns = g->fresh_ns = g->epoch_ns = 0;
	g->mean = g->capacity;
	headway_guard_acquit(g);
	g->epoch_rtt_us = g->late = 0;
	g->most_in_flight = 0;
	g->overdue = g->is_app_limited = g->is_beyond = 0;
}

/* A record went out that wants an answer, or found no room. */
static inline void headway_guard_ask(struct headway_guard *g, __u64 now_ns)
{
	if (!g->asked_ns)
		g->asked_ns = now_ns;
}

/* How long an answer may take. */
static inline __u32 headway_guard_patience(const struct headway_limits *l, __u32 srtt_us)
{
	__u64 patience = (__u64)srtt_us * l->answer_rtts;

	if (patience < l->answer_us)
		patience = l->answer_us;
	return patience < l->answer_most_us ? patience : l->answer_most_us;
}

/*
 * An answer was found, given at answered_ns to what was seen at decided_ns: may it be carried out? Who gives it is late by
 * the time that took; that it then waits for an acknowledgement is the path's doing, or the application's.
 */
static inline int headway_guard_answer(struct headway_guard *g, const struct headway_limits *l, __u64 decided_ns,
				       __u64 answered_ns, __u64 now_ns)
{
	__u64 patience = (__u64)(g->bounds_us ? g->bounds_us : l->answer_us) * 1000;

	if (decided_ns > answered_ns || answered_ns > now_ns)
		return 0;
	if (answered_ns >= g->asked_ns) {
		g->asked_ns = 0;
		g->overdue = 0;
	}
	if (headway_since(answered_ns, decided_ns) > patience) {
		if (g->late < 2)
			g->late++;
		return 0;
	}
	g->late = 0;
	/* Who was prompt minutes ago may have died since. */
	if (headway_since(now_ns, decided_ns) > HEADWAY_ANSWER_KEEPS_NS)
		return 0;
	g->fresh_ns = now_ns;
	return !g->reason;
}

static inline void headway_guard_count_wild(struct headway_guard *g, int is_wild)
{
	if (!is_wild)
		g->wild = 0;
	else if (g->wild < 0xffff)
		g->wild++;
}

/* The window that a policy may have, in packets. */
static inline __u32 headway_guard_cwnd(struct headway_guard *g, const struct headway_limits *l, __s64 wanted)
{
	__s64 least = l->min_cwnd, most = l->max_cwnd;

	/* The least window is where many steps end that are meant: only what is far beyond is wild. */
	headway_guard_count_wild(g, wanted > most);
	if (wanted < least)
		return l->min_cwnd;
	return wanted > most ? l->max_cwnd : (__u32)wanted;
}

static inline __u64 headway_guard_peak(const struct headway_guard *g)
{
	return g->peak > g->last_peak ? g->peak : g->last_peak;
}

/*
 * The rate that a policy may have, in bytes a second: some times the most that was delivered of late, over an epoch or
 * by the newest sample.
 */
static inline __u64 headway_guard_rate(struct headway_guard *g, const struct headway_limits *l, __u64 wanted)
{
	__u64 rate = headway_guard_peak(g), newest = 0, most;

	/* In 1/256 packets a second, as the peak: below one packet a second there is a bound, too. */
	if (g->rate_interval_us)
		newest = g->rate_delivered * 256000000ull / g->rate_interval_us;
	if (rate < newest)
		rate = newest;
	/* 2^44 of 2^16 bytes, times three: below 2^62. */
	if (rate > 1ull << 44)
		rate = 1ull << 44;
	most = rate * HEADWAY_GUARD_HASTE * g->mss >> 8;
	if (!most || most > l->max_rate)
		most = l->max_rate;
	headway_guard_count_wild(g, wanted > l->max_rate);
	return wanted > most ? most : wanted;
}

/*
 * Where Cubic takes over: the ssthresh in packets. After a policy that sent too much that is near what the path
 * carries. After one that sent too little nobody knows that: it is where the Cubic that saw the same is, if not more.
 * Who leaves a flow (HEADWAY_LEAVE) does not say which: its window does, beside that Cubic's.
 */
static inline __u32 headway_guard_restart(const struct headway_guard *g, const struct headway_record *r)
{
	/* At most 2^32 packets a second times 256, and RTTs below 2^24 us: below 2^64. */
	__u64 peak = headway_guard_peak(g) < 1ull << 40 ? headway_guard_peak(g) : 1ull << 40;
	__u64 rtt_us = r->min_rtt_us < 1u << 24 ? r->min_rtt_us : 1u << 24;
	/* Cubic's next loss leaves it what the path carries. */
	__u64 bdp = (peak * rtt_us >> 8) / 700000 + 1;
	int is_too_large = g->reason == HEADWAY_TOO_LOSSY || g->reason == HEADWAY_TOO_SLOW || g->reason == HEADWAY_TOO_WILD;

	if (!g->reason)
		is_too_large = (__u64)r->cwnd * HEADWAY_CUBIC_ONE > 2 * g->cubic.cwnd;
	if (!is_too_large && !g->cubic.reduced_ns)
		return HEADWAY_NO_SSTHRESH;
	if (!peak || !rtt_us)
		return r->cwnd > 4 ? r->cwnd : 4;
	if (!is_too_large && bdp < r->cwnd)
		bdp = r->cwnd;
	if (!is_too_large && bdp < g->cubic.cwnd / HEADWAY_CUBIC_ONE)
		bdp = g->cubic.cwnd / HEADWAY_CUBIC_ONE;
	/* Beside others Cubic holds more than the path alone needs. */
	if (is_too_large && bdp < g->cubic.cwnd / HEADWAY_CUBIC_ONE)
		bdp = g->cubic.cwnd / HEADWAY_CUBIC_ONE;
	if (is_too_large && bdp > r->cwnd)
		bdp = r->cwnd;
	return bdp > 4 ? (__u32)bdp : 4;
}

/*
 * Cubic has the flow so newly that what is lost now the policy sent: two round trips. Its window began low enough, and
 * is not lowered for that again.
 */
static inline int headway_guard_spares(const struct headway_guard *g, __u64 now_ns, __u32 srtt_us)
{
	return g->reason && headway_since(now_ns, g->since_ns) < 2000ull * srtt_us;
}

/* What was counted in the epoch that ends with a record. */
struct headway_epoch {
	__u64 rate;    /* 1/256 packets a second */
	__u64 packets; /* delivered and lost */
	__u64 lost;
	int is_full;  /* a queue stood all along: what was delivered is what the path carries */
	int is_thin;  /* so few packets were in flight that no queue is the flow's */
};

/* Is an RTT one with a queue? */
static inline int headway_guard_has_queue(__u64 rtt_us, __u64 least_us)
{
	return rtt_us > least_us + least_us / 8 + 2000;
}

/* The averages begin with the first full epoch: what slow start had before is nobody's fault. */
static inline void headway_guard_average(struct headway_guard *g, __u64 rate, __u32 srtt_us, int is_full)
{
	if (rate > 1ull << 40)
		rate = 1ull << 40;
	if (is_full && !g->capacity) {
		g->mean = g->capacity = rate;
		g->mean_rtt_us = srtt_us;
	} else if (is_full) {
		g->capacity += rate / 32 - g->capacity / 32;
	}
	g->mean += rate / 32 - g->mean / 32;
	g->mean_rtt_us += srtt_us / 32 - g->mean_rtt_us / 32;
}

static inline struct headway_epoch headway_guard_close_epoch(struct headway_guard *g, const struct headway_record *r)
{
	__u64 us = headway_since(r->now_ns, g->epoch_ns) / 1000;
	__u64 delivered = (__u32)(r->delivered - g->epoch_delivered);
	struct headway_epoch epoch;
	__u64 peak, rtt_us;

	epoch.lost = (__u32)(r->lost - g->epoch_lost);
	epoch.packets = delivered + epoch.lost;
	/* 2^32 times 256 times 10^6: below 2^60. */
	epoch.rate = us ? delivered * 256000000 / us : 0;
	epoch.is_full = headway_guard_has_queue(g->epoch_rtt_us, r->min_rtt_us);
	epoch.is_thin = g->most_in_flight <= HEADWAY_GUARD_FEW;
	if (!g->is_app_limited)
		headway_guard_average(g, epoch.rate, r->srtt_us, epoch.is_full);
	if (headway_since(r->now_ns, g->peak_ns) > HEADWAY_PEAK_NS) {
		g->last_peak = headway_since(r->now_ns, g->peak_ns) > 2 * HEADWAY_PEAK_NS ? 0 : g->peak;
		g->peak = 0;
		g->peak_ns = r->now_ns;
	}
	if (epoch.rate > g->peak)
		g->peak = epoch.rate;
	/* Twice what the path was seen to hold, and ten packets: Cubic would have met its end there. Below 2^59. */
	peak = headway_guard_peak(g) < 1ull << 34 ? headway_guard_peak(g) : 1ull << 34;
	rtt_us = g->max_rtt_us < 1u << 24 ? g->max_rtt_us : 1u << 24;
	headway_cubic_bound(&g->cubic, 2 * peak * rtt_us / 1000000 + 10 * HEADWAY_CUBIC_ONE);
	g->epoch_ns = r->now_ns;
	g->epoch_delivered = r->delivered;
	g->epoch_lost = r->lost;
	g->epoch_rtt_us = g->most_in_flight = 0;
	return epoch;
}

/* log2(rate) - weight * log2(rtt / least), in 1/65536. */
static inline __s64 headway_utility(const struct headway_limits *l, __u64 rate, __u64 rtt_us, __u64 least_us)
{
	__s64 inflation = (__s64)headway_log2(rtt_us) - headway_log2(least_us);

	return (__s64)headway_log2(rate) - (inflation > 0 ? (__s64)((__u64)inflation * l->weight >> 16) : 0);
}

/* What the window of the Cubic that saw the same brings without a queue, in 1/256 packets a second; 0 if unknown. */
static inline __u64 headway_guard_cubics_rate(const struct headway_guard *g, const struct headway_record *r)
{
	/* A window of 2^28 at most, in 1/256 packets, times 10^6: below 2^48. */
	return r->min_rtt_us ? g->cubic.cwnd * 1000000 / r->min_rtt_us : 0;
}

/*
 * The same of the Cubic that saw the same: what its window brings, by what the path has carried of late. Where the flow
 * has starved since it began that is nothing to go by.
 */
static inline __s64 headway_cubics_utility(struct headway_guard *g, const struct headway_limits *l,
					   const struct headway_record *r)
{
	__u64 peak = headway_guard_peak(g), rtt_us = r->min_rtt_us, rate = headway_guard_cubics_rate(g, r), first;

	if (!peak || !rtt_us)
		return 0;
	first = HEADWAY_GUARD_FIRST * HEADWAY_CUBIC_ONE * 1000000ull / rtt_us;
	if (!g->full_rtt_us && !g->capacity && peak < first)
		peak = first;
	if (rate > peak) {
		rtt_us = g->cubic.cwnd * 1000000 / peak;
		if (rtt_us > g->max_rtt_us)
			rtt_us = g->max_rtt_us;
		rate = peak;
	}
	return headway_utility(l, rate, rtt_us, r->min_rtt_us);
}

/*
 * Has the flow had too little for long? What the path carries was seen where a queue stood, and what Cubic would pay
 * for it is the RTT where losses come, or the longest so far: a policy may give rate for delay, at utility's price.
 */
static inline int headway_guard_is_hungry(const struct headway_guard *g, const struct headway_limits *l,
					  const struct headway_record *r)
{
	__u64 rtt_us = g->full_rtt_us ? g->full_rtt_us : g->max_rtt_us, rate = headway_guard_cubics_rate(g, r);

	if (rate > g->capacity)
		rate = g->capacity;
	/* 2^41 times 2^17. */
	if (g->mean >= rate * (l->share & 0x1ffff) >> 16)
		return 0;
	/* Long means vary little: a sixteenth of the margin will do. */
	return headway_utility(l, g->mean, g->mean_rtt_us, r->min_rtt_us) + (__s64)(l->margin >> 4) <
	       headway_utility(l, rate, rtt_us, r->min_rtt_us);
}

/* What an epoch says against the policy. */
static inline __u32 headway_guard_judge_epoch(struct headway_guard *g, const struct headway_limits *l,
					      const struct headway_record *r, const struct headway_epoch *epoch)
{
	__u64 least = r->min_rtt_us, srtt = r->srtt_us;
	int is_lossy = epoch->packets >= 50 && epoch->lost << 16 > epoch->packets * l->loss;
	/* Where losses come at such an RTT, Cubic's queue is as long. */
	int is_slow = srtt << 8 > least * l->inflation && srtt > least + l->inflation_us && srtt > 2ull * g->full_rtt_us;
	__u64 window = r->cwnd < r->in_flight ? r->cwnd : r->in_flight;
	/* Without a queue of its own it is the sender that is slow, and not the path. */
	int is_idle = epoch->is_thin || !headway_guard_has_queue(srtt, least);
	int is_poor = !g->is_app_limited && is_idle &&
		      headway_utility(l, epoch->rate, srtt, least) + (__s64)l->margin < headway_cubics_utility(g, l, r);

	/* Losses come in bursts, a round trip apart: an epoch without takes one with them back, not all. */
	if (is_lossy && g->is_beyond)
		g->lossy++;
	else if (g->lossy)
		g->lossy--;
	/* Where the path became slower its window counts that is left: Cubic's queue would be as long. */
	g->slow = is_slow && window * HEADWAY_CUBIC_ONE > 2 * g->cubic.cwnd ? g->slow + 1 : 0;
	g->poor = is_poor ? g->poor + 1 : 0;
	g->hungry = !g->is_app_limited && headway_guard_is_hungry(g, l, r) ? g->hungry + 1 : 0;
	g->is_app_limited = g->is_beyond = 0;
	if (g->lossy >= l->epochs)
		return HEADWAY_TOO_LOSSY;
	if (g->slow >= 2 * l->epochs)
		return HEADWAY_TOO_SLOW;
	if (g->poor >= l->epochs || g->hungry >= l->long_epochs)
		return HEADWAY_TOO_POOR;
	return HEADWAY_FINE;
}

static inline void headway_guard_run_cubic(struct headway_guard *g, const struct headway_record *r)
{
	__u64 rtt_ns = (__u64)r->srtt_us * 1000;
	__u32 acked = r->delivered - g->delivered;

	if (!r->acks) {
		headway_cubic_time_out(&g->cubic, r->now_ns, g->is_recovering);
		return;
	}
	/* One reduction an episode, however long its losses come in; marks are heard once a round trip. */
	if (r->delivered_ce != g->delivered_ce || (r->lost != g->lost && !g->is_recovering)) {
		headway_cubic_lose(&g->cubic, r->now_ns, rtt_ns);
		g->full_rtt_us = r->srtt_us;
	} else if (acked && r->lost == g->lost) {
		headway_cubic_acked(&g->cubic, acked, r->now_ns, rtt_ns);
	}
	if (r->srtt_us > r->min_rtt_us + r->min_rtt_us / 8 + 2000)
		headway_cubic_leave_slow_start(&g->cubic);
}

static inline int headway_guard_trip(struct headway_guard *g, const struct headway_limits *l, __u64 now_ns, __u32 reason)
{
	__u32 undoubled = l->undoubled & 0xff, most = (l->doublings & 15) + undoubled;
	__u32 level = g->level < most ? g->level : most, doubled = level > undoubled ? level - undoubled : 0;

	g->reason = reason;
	g->since_ns = now_ns;
	g->trips++;
	g->level = level + 1;
	g->until_ns = now_ns + (l->probation_ms * HEADWAY_GUARD_MS << doubled);
	headway_guard_acquit(g);
	return HEADWAY_TRIPS;
}

/*
 * The flow's state at an acknowledgement or a time-out, after the controller beneath. Returns enum headway_judgement.
 */
static inline int headway_guard_judge(struct headway_guard *g, const struct headway_limits *l,
				      const struct headway_record *r)
{
	__u64 now_ns = r->now_ns, epoch_ns = (__u64)l->epoch_us * 1000;
	__u32 reason = HEADWAY_FINE;

	g->bounds_us = headway_guard_patience(l, r->srtt_us);
	if (g->epoch_ns) {
		headway_guard_run_cubic(g, r);
	} else {
		g->epoch_ns = now_ns;
		g->epoch_delivered = r->delivered;
		g->epoch_lost = r->lost;
	}
	g->delivered = r->delivered;
	g->delivered_ce = r->delivered_ce;
	g->lost = r->lost;
	g->is_recovering = r->flags & HEADWAY_RECOVERING ? 1 : 0;
	if (r->srtt_us > g->max_rtt_us)
		g->max_rtt_us = r->srtt_us;
	if (r->rtt_us && (!g->epoch_rtt_us || r->rtt_us < g->epoch_rtt_us))
		g->epoch_rtt_us = r->rtt_us;
	if (r->in_flight > g->most_in_flight)
		g->most_in_flight = r->in_flight < 0xffff ? r->in_flight : 0xffff;
	if (r->flags & (HEADWAY_APP_LIMITED | HEADWAY_RWND_LIMITED))
		g->is_app_limited = 1;
	/* Two Cubics that saw the same differ by less than a quarter. A window may be but a bound: what counts is used. */
	if ((__u64)r->in_flight * HEADWAY_CUBIC_ONE > g->cubic.cwnd + g->cubic.cwnd / 4)
		g->is_beyond = 1;
	/* Not two smoothed RTTs: the longer the queue, the longer it would be allowed. */
	if (epoch_ns < 2000ull * r->min_rtt_us)
		epoch_ns = 2000ull * r->min_rtt_us;
	if (epoch_ns < 1000ull * r->srtt_us)
		epoch_ns = 1000ull * r->srtt_us;
	if (headway_since(now_ns, g->epoch_ns) >= epoch_ns) {
		struct headway_epoch epoch = headway_guard_close_epoch(g, r);

		reason = headway_guard_judge_epoch(g, l, r, &epoch);
	}

	g->rate_delivered = r->rate_delivered;
	g->rate_interval_us = r->rate_interval_us;
	g->mss = r->mss & 0xffff;

	if (g->reason) {
		/* Only a policy that answers may have another chance. */
		__u64 patience = (__u64)l->answer_most_us * 2000;

		if (now_ns < g->until_ns || headway_since(now_ns, g->fresh_ns) > patience)
			return HEADWAY_CUBICS;
		g->reason = HEADWAY_FINE;
		g->since_ns = now_ns;
		g->asked_ns = 0;
		g->late = 0;
		g->mean = g->capacity;
		headway_guard_acquit(g);
		return HEADWAY_RETURNS;
	}
	if (g->level && headway_since(now_ns, g->since_ns) > l->pardon_ms * HEADWAY_GUARD_MS) {
		g->level--;
		g->since_ns = now_ns;
	}
	/* Answers are looked for at acknowledgements: after an outage one may have waited for the first. */
	if (!g->asked_ns || headway_since(now_ns, g->asked_ns) <= (__u64)g->bounds_us * 1000)
		g->overdue = 0;
	else if (r->acks && g->overdue < 2)
		g->overdue++;
	if (g->overdue > 1 || g->late > 1)
		reason = HEADWAY_TOO_STALE;
	else if (g->wild >= l->wild_answers)
		reason = HEADWAY_TOO_WILD;
	return reason ? headway_guard_trip(g, l, now_ns, reason) : HEADWAY_POLICYS;
}

#endif
