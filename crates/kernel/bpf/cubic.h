/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cubic's window in whole numbers (RFC 9438), on what happens to a flow that somebody else steers:
 * what the guard compares with. Helper-free: BPF programs include it, and crates/fixed compiles it
 * natively.
 */
#ifndef HEADWAY_CUBIC_H
#define HEADWAY_CUBIC_H

#include "abi.h"
#include "fixed.h"

/* Windows are in 1/256 packets. */
#define HEADWAY_CUBIC_ONE 256
#define HEADWAY_CUBIC_BETA 7 /* a loss leaves seven tenths of the window (RFC 9438, section 4.6) */
#define HEADWAY_CUBIC_MOST (1000000ull * HEADWAY_CUBIC_ONE)

struct headway_cubic {
	__u64 cwnd;
	__u64 ssthresh;   /* 0: none yet */
	__u64 w_max;      /* RFC 9438, section 4.1.2: before the last reduction */
	__u64 epoch_ns;   /* when congestion avoidance began; 0 before that */
	__u64 reduced_ns; /* the last reduction: one a round trip at most */
	__u64 k_ms;       /* K, until the window is w_max again */
	__u64 w_est;      /* section 4.3: what a Reno flow would have; in 1/65536 packets */
	__u64 w_prior;    /* the window at the last reduction */
};

/*
 * The cube root of x below 2^48, off by one at most. Newton's steps come from above, without
 * branches. The root of 0 would become 0, and the next step would divide by it: `| !x` makes it 1.
 */
static inline __u64 headway_cbrt(__u64 x)
{
	__u64 root = 1ull << ((headway_log2(x) >> 16) / 3 + 1);
	int i;

	for (i = 0; i < 6; i++)
		root = (2 * root + x / (root * root)) / 3 | !x;
	return root;
}

/* From a window in packets on; in slow start below ssthresh, which 0 stands for none. */
static inline void headway_cubic_open(struct headway_cubic *c, __u32 cwnd, __u32 ssthresh)
{
	c->cwnd = (__u64)cwnd * HEADWAY_CUBIC_ONE;
	if (c->cwnd > HEADWAY_CUBIC_MOST)
		c->cwnd = HEADWAY_CUBIC_MOST;
	c->ssthresh = (__u64)ssthresh * HEADWAY_CUBIC_ONE;
	c->w_max = c->epoch_ns = c->reduced_ns = c->k_ms = c->w_est = c->w_prior = 0;
}

/* Section 4.2: K = cbrt(w_max * (1 - beta) / C), with beta = 0.7 and C = 0.4. */
static inline void headway_cubic_begin_epoch(struct headway_cubic *c, __u64 now_ns)
{
	/* headway_cbrt() takes less than 2^48. Above 333,000 packets K is that of 333,000, 63 s. */
	__u64 gap = c->w_max > c->cwnd ? (c->w_max - c->cwnd) / HEADWAY_CUBIC_ONE : 0;

	if (gap > 100000)
		gap = 100000;
	c->epoch_ns = now_ns;
	c->w_est = c->cwnd << 8;
	c->k_ms = headway_cbrt(gap * 2500000000ull);
	if (c->w_max < c->cwnd)
		c->w_max = c->cwnd;
}

/* Sections 4.6 and 4.7: a loss, or a mark (RFC 3168); at most one reduction a round trip. */
static inline void headway_cubic_lose(struct headway_cubic *c, __u64 now_ns, __u64 rtt_ns)
{
	if (c->reduced_ns && headway_since(now_ns, c->reduced_ns) < rtt_ns)
		return;
	c->reduced_ns = now_ns;
	c->w_max = c->cwnd < c->w_max ? c->cwnd * 17 / 20 : c->cwnd;
	c->w_prior = c->cwnd;
	c->cwnd = c->cwnd * HEADWAY_CUBIC_BETA / 10;
	if (c->cwnd < 2 * HEADWAY_CUBIC_ONE)
		c->cwnd = 2 * HEADWAY_CUBIC_ONE;
	c->ssthresh = c->cwnd;
	headway_cubic_begin_epoch(c, now_ns);
}

/*
 * Section 4.8: a timeout. The next epoch begins at its plateau. Only the first of an episode lowers
 * ssthresh.
 */
static inline void headway_cubic_time_out(struct headway_cubic *c, __u64 now_ns, int is_recovering)
{
	if (!is_recovering) {
		c->reduced_ns = now_ns;
		c->w_prior = c->cwnd;
		c->ssthresh = c->cwnd * HEADWAY_CUBIC_BETA / 10;
		if (c->ssthresh < 2 * HEADWAY_CUBIC_ONE)
			c->ssthresh = 2 * HEADWAY_CUBIC_ONE;
	}
	c->w_max = 0;
	c->cwnd = HEADWAY_CUBIC_ONE;
	c->epoch_ns = 0;
}

static inline int headway_cubic_is_in_slow_start(const struct headway_cubic *c)
{
	return !c->ssthresh || c->cwnd < c->ssthresh;
}

/* Slow start is over where the delay says so (HyStart). */
static inline void headway_cubic_leave_slow_start(struct headway_cubic *c)
{
	if (headway_cubic_is_in_slow_start(c))
		c->ssthresh = c->cwnd;
}

/* Congestion avoidance from there, if the window is larger. */
static inline void headway_cubic_bound(struct headway_cubic *c, __u64 most)
{
	if (c->cwnd <= most)
		return;
	c->cwnd = c->ssthresh = most;
	c->w_max = c->epoch_ns = 0;
}

/* Packets were acknowledged. */
static inline void headway_cubic_acked(struct headway_cubic *c, __u32 packets, __u64 now_ns,
				       __u64 rtt_ns)
{
	__u64 elapsed, off, cube, delta, target, most;

	if (headway_cubic_is_in_slow_start(c)) {
		c->cwnd += (__u64)packets * HEADWAY_CUBIC_ONE;
		if (c->ssthresh && c->cwnd > c->ssthresh)
			c->cwnd = c->ssthresh;
		if (c->cwnd > HEADWAY_CUBIC_MOST)
			c->cwnd = HEADWAY_CUBIC_MOST;
		return;
	}
	if (!c->epoch_ns)
		headway_cubic_begin_epoch(c, now_ns);
	/*
	 * Section 4.2: W(t + RTT) = C * (t + RTT - K)^3 + w_max. Times are below 100 s, so that
	 * cubes are below 2^50.
	 */
	elapsed = (headway_since(now_ns, c->epoch_ns) + rtt_ns) / 1000000;
	off = elapsed > c->k_ms ? elapsed - c->k_ms : c->k_ms - elapsed;
	if (off > 100000)
		off = 100000;
	cube = off * off * off;
	/* 0.4 * 256 / 10^9 */
	delta = cube / 9765625;
	if (elapsed > c->k_ms)
		target = c->w_max + delta;
	else
		target = c->w_max > delta ? c->w_max - delta : 0;
	/*
	 * Section 4.4: between the window and 1.5 times it, and an RTT to get there:
	 * (target - cwnd) / cwnd a packet.
	 */
	most = c->cwnd + c->cwnd / 2;
	if (target > most)
		target = most;
	if (target > c->cwnd && c->cwnd)
		c->cwnd += (target - c->cwnd) * packets * HEADWAY_CUBIC_ONE / c->cwnd;
	/*
	 * Section 4.3: alpha = 3 * (1 - beta) / (1 + beta) = 9 / 17 packets a round trip, and 1
	 * from the old window on.
	 */
	if (c->cwnd)
		c->w_est += (c->w_est < c->w_prior << 8 ? 34696ull : 65536ull) * packets *
			    HEADWAY_CUBIC_ONE / c->cwnd;
	if (c->w_est >> 8 > c->cwnd)
		c->cwnd = c->w_est >> 8;
	if (c->cwnd > HEADWAY_CUBIC_MOST)
		c->cwnd = HEADWAY_CUBIC_MOST;
}

#endif
