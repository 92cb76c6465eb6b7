/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A learned controller of a sending rate, whole: what it sees, when it decides, what it does
 * (Aurora). In whole numbers and helper-free: BPF programs include it, and crates/fixed compiles it
 * natively, so that what a simulated flow does is what the kernel's would, bit for bit.
 * docs/int8.md
 *
 * Nothing overflows, whatever the records and the policy say: the bound of each multiplication
 * stands next to it.
 */
#ifndef HEADWAY_RATE_AGENT_H
#define HEADWAY_RATE_AGENT_H

#include "abi.h"
#include "fixed.h"
#include "nets.h"

/* What it sees of an interval, in this order. */
enum headway_rate_feature {
	HEADWAY_RTT_SLOPE = 0, /* rise of the RTT, least squares, in 1/65536 */
	HEADWAY_RTT_RATIO,     /* log2(1 + mean RTT / minimum RTT), in 1/65536 */
	HEADWAY_SEND_RATIO,    /* log2(1 + sent / delivered), in 1/65536 */
	HEADWAY_LOSS,          /* lost / (lost + delivered), in 1/65536 */
	HEADWAY_DELIVERED,     /* log2(1 + delivered packets), in 1/65536 */
	HEADWAY_RATE_FEATURES,
};

/* It sees this number of intervals: the newest, the oldest of them first. */
#define HEADWAY_RATE_HISTORY (HEADWAY_MLP_INPUTS / HEADWAY_RATE_FEATURES)

/*
 * A policy: in an array map that user space maps into its memory, to be replaced while flows run.
 * The agent makes generation odd, writes the rest, and makes it even and larger. While it is odd
 * nothing is decided; where it changes during a decision, that one is forgotten.
 */
struct headway_int8 {
	__u32 generation; /* odd: being written; 0: none there */
	/* the time between decisions in mean RTTs, in 1/65536; the lowest 20 bits count */
	__u32 interval;
	__u64 initial_rate; /* bytes a second, as the next two; at most 2^40 */
	__u64 min_rate;
	__u64 max_rate;
	__u32 limit; /* of an output on either side, in 1/65536; the lowest 20 bits count */
	/*
	 * the rate is multiplied by 1 + delta * output, or divided; in 1/65536; the lowest 16 bits
	 * count
	 */
	__u32 delta;
	/* A feature x in that unit becomes (x - offset) * steps / 2^32, rounded, in 0 to 255. */
	__s32 offsets[HEADWAY_RATE_FEATURES];
	__u32 steps[HEADWAY_RATE_FEATURES]; /* the lowest 30 bits count */
	/* the input of each feature for an interval before the first */
	__u8 blank[HEADWAY_RATE_FEATURES];
	__u8 unused[3]; /* zero */
	struct headway_mlp net;
};

/* A flow's state; zeroed and opened it is valid. */
struct headway_rate_agent {
	__u64 rate;   /* bytes a second */
	__u64 due_ns; /* when the next decision is to be made */
	/* RTT samples of the interval under way. Times and RTTs count from its first sample. */
	__u64 first_ns;
	__u64 sum_us;
	__s64 sum_t;
	__s64 sum_rise;
	__s64 sum_t_t;
	__s64 sum_t_rise;
	__u64 mean_us; /* of the last interval that had a sample, in 1/256; 0 before that */
	__u32 samples;
	__u32 first_us;
	__u32 shift;
	/* What the newest record said, and how much of it the intervals before had. */
	__u32 sent;
	__u32 delivered;
	__u32 lost;
	__u32 min_rtt_us;
	__u32 sent_before;
	__u32 delivered_before;
	__u32 lost_before;
	__u32 has_news;  /* has there been a record in the interval under way? */
	__u32 decisions; /* so far; wraps */
	__u32 generation; /* of the policy whose history this is */
	__u32 unused;     /* zero */
	struct headway_mlp_values values;
};

/*
 * Further samples of an interval do not count. With times and rises of 15 bits, sums of a time
 * times a rise are then below 2^45, and such sums times samples below 2^60.
 */
#define HEADWAY_MOST_SAMPLES 32767
#define HEADWAY_MOST_TIME 32767
#define HEADWAY_MOST_RTT_US (1u << 26) /* 67 s: larger samples count as this */
#define HEADWAY_LEAST_INTERVAL_NS 100000ull
#define HEADWAY_MOST_RATE (1ull << 40)
#define HEADWAY_MOST_SLOPE 8 /* s/s */

static inline __s64 headway_within(__s64 x, __s64 least, __s64 most)
{
	if (x < least)
		return least;
	return x > most ? most : x;
}

/*
 * The mean RTT of the interval under way, or of the last that had a sample, in 1/256 us: at most
 * 2^34.
 */
static inline __u64 headway_rate_agent_mean(const struct headway_rate_agent *a)
{
	/* 32767 samples of 2^26: shifted by 8 below 2^49. */
	return a->samples ? (a->sum_us << 8) / a->samples : a->mean_us;
}

/*
 * When an interval ends that begins now. It also sets the unit of its times: 2^-11 to 2^-12 of its
 * length.
 */
static inline void headway_rate_agent_restart(struct headway_rate_agent *a,
					      const struct headway_int8 *net, __u64 now_ns)
{
	/* 2^34 times 2^20: below 2^54. In 1/256 us; times 1000 below 2^48. */
	__u64 length = headway_rate_agent_mean(a) * (net->interval & 0xfffff) >> 16;
	__u64 length_ns = length * 1000 >> 8;
	__u32 whole = headway_log2(length >> 8) >> 16;

	a->due_ns = now_ns +
		    (length_ns > HEADWAY_LEAST_INTERVAL_NS ? length_ns : HEADWAY_LEAST_INTERVAL_NS);
	a->shift = whole > 11 ? whole - 11 : 0;
}

/* A sample is folded into the interval under way. */
static inline void headway_rate_agent_sample(struct headway_rate_agent *a,
					     const struct headway_int8 *net, __u64 now_ns,
					     __u32 rtt_us)
{
	__u32 shift = a->shift & 31;
	__u64 t = 0;
	__s64 rise;

	if (a->samples >= HEADWAY_MOST_SAMPLES)
		return;
	if (rtt_us > HEADWAY_MOST_RTT_US)
		rtt_us = HEADWAY_MOST_RTT_US;
	a->sum_us += rtt_us;
	if (!a->samples++) {
		a->first_ns = now_ns;
		a->first_us = rtt_us;
		/* The flow's first: now an interval's length is known. */
		if (!a->mean_us)
			headway_rate_agent_restart(a, net, now_ns);
		return;
	}
	if (now_ns > a->first_ns)
		t = (now_ns - a->first_ns) / 1000 >> shift;
	if (t > HEADWAY_MOST_TIME)
		t = HEADWAY_MOST_TIME;
	rise = headway_within(((__s64)rtt_us - a->first_us) >> shift, -HEADWAY_MOST_TIME,
			      HEADWAY_MOST_TIME);
	a->sum_t += (__s64)t;
	a->sum_rise += rise;
	a->sum_t_t += (__s64)(t * t);
	a->sum_t_rise += (__s64)t * rise;
}

/* The least-squares slope of the samples, in 1/65536 s/s. */
static inline __s64 headway_rate_agent_slope(const struct headway_rate_agent *a)
{
	/* Both below 2^61: see HEADWAY_MOST_SAMPLES. */
	__u64 spread = (__u64)(a->samples * a->sum_t_t - a->sum_t * a->sum_t);
	__s64 rise = a->samples * a->sum_t_rise - a->sum_t * a->sum_rise;
	__u64 size = (__u64)(rise < 0 ? -rise : rise);
	__u64 slope;

	/* Samples of one moment have no slope. */
	if (!spread)
		return 0;
	if (spread >> 40) {
		spread >>= 20;
		size >>= 20;
	}
	/* spread is at most 2^40; size, less than 8 times that, shifted by 16 is below 2^60. */
	if (size >= spread * HEADWAY_MOST_SLOPE)
		slope = HEADWAY_MOST_SLOPE << 16;
	else
		slope = (size << 16) / spread;
	return rise < 0 ? -(__s64)slope : (__s64)slope;
}

/*
 * log2(1 + a / b) in 1/65536, or that of a ratio of 1 if there is nothing to divide by. Both are
 * below 2^63.
 */
static inline __s64 headway_log2_ratio(__u64 a, __u64 b)
{
	if (!b)
		return 1 << 16;
	return (__s64)headway_log2(a + b) - headway_log2(b);
}

/* The newest interval comes in, the oldest falls out. No feature is beyond 2^22. */
static inline void headway_rate_agent_see(struct headway_rate_agent *a,
					  const struct headway_int8 *net, int feature, __s64 x)
{
	/* 2^22 + 2^31 times 2^30: below 2^62. */
	__s64 step = net->steps[feature] & 0x3fffffff;
	__s64 input = ((x - net->offsets[feature]) * step + (1ll << 31)) >> 32;

	a->values.inputs[HEADWAY_MLP_INPUTS - HEADWAY_RATE_FEATURES + feature] =
		headway_mlp_clip(input);
}

/* Ends the interval under way, and begins the next: what it was stands in values.inputs. */
static inline void headway_rate_agent_close(struct headway_rate_agent *a,
					    const struct headway_int8 *net, __u64 now_ns)
{
	__u64 sent = (__u32)(a->sent - a->sent_before);
	__u64 delivered = (__u32)(a->delivered - a->delivered_before);
	__u64 lost = (__u32)(a->lost - a->lost_before);
	__u64 known = lost + delivered;
	__u64 mean = headway_rate_agent_mean(a);
	int i;

	HEADWAY_UNROLL
	for (i = 0; i < HEADWAY_MLP_INPUTS - HEADWAY_RATE_FEATURES; i++)
		a->values.inputs[i] = a->values.inputs[i + HEADWAY_RATE_FEATURES];
	headway_rate_agent_see(a, net, HEADWAY_RTT_SLOPE, headway_rate_agent_slope(a));
	/* min_rtt_us shifted by 8 is below 2^40. */
	headway_rate_agent_see(a, net, HEADWAY_RTT_RATIO,
			       headway_log2_ratio(mean, (__u64)a->min_rtt_us << 8));
	headway_rate_agent_see(a, net, HEADWAY_SEND_RATIO, headway_log2_ratio(sent, delivered));
	/* lost shifted by 16 is below 2^48. */
	headway_rate_agent_see(a, net, HEADWAY_LOSS, known ? (__s64)((lost << 16) / known) : 0);
	headway_rate_agent_see(a, net, HEADWAY_DELIVERED, headway_log2(1 + delivered));

	headway_rate_agent_restart(a, net, now_ns);
	a->mean_us = mean;
	a->samples = 0;
	a->sum_us = 0;
	a->sum_t = 0;
	a->sum_rise = 0;
	a->sum_t_t = 0;
	a->sum_t_rise = 0;
	a->sent_before = a->sent;
	a->delivered_before = a->delivered;
	a->lost_before = a->lost;
	a->has_news = 0;
}

static inline __u64 headway_rate_agent_clamp(const struct headway_int8 *net, __u64 rate)
{
	__u64 max = net->max_rate < HEADWAY_MOST_RATE ? net->max_rate : HEADWAY_MOST_RATE;

	if (rate < net->min_rate)
		rate = net->min_rate;
	return rate > max ? max : rate;
}

/*
 * Aurora, section 4.1: the rate times 1 + delta * output, or divided by 1 - delta * output. A half
 * is rounded up.
 */
static inline __u64 headway_rate_agent_scaled(const struct headway_int8 *net, __u64 rate,
					      __s64 output)
{
	__s64 limit = net->limit & 0xfffff;
	__s64 x = headway_within(output, -limit, limit);
	/* 2^20 times 2^16; the factor is at most 2^16 + 2^20. */
	__u64 factor = (1 << 16) + ((__u64)(x < 0 ? -x : x) * (net->delta & 0xffff) >> 16);

	/* The rate is at most 2^40: shifted by 16, or times the factor, below 2^62. */
	if (x < 0)
		rate = ((rate << 16) + factor / 2) / factor;
	else
		rate = (rate * factor + (1 << 15)) >> 16;
	return headway_rate_agent_clamp(net, rate);
}

static inline __u32 headway_int8_generation(const struct headway_int8 *net)
{
	return *(const volatile __u32 *)&net->generation;
}

/* A flow begins. */
static inline void headway_rate_agent_open(struct headway_rate_agent *a,
					   const struct headway_int8 *net, __u64 now_ns)
{
	int i, j;

	a->generation = headway_int8_generation(net);
	a->rate = headway_rate_agent_clamp(net, net->initial_rate);
	a->due_ns = now_ns;
	for (i = 0; i < HEADWAY_RATE_HISTORY; i++) {
		for (j = 0; j < HEADWAY_RATE_FEATURES; j++)
			a->values.inputs[i * HEADWAY_RATE_FEATURES + j] = net->blank[j];
	}
}

/*
 * A policy takes a flow that another had, or none: it goes on from its rate, and sees nothing of
 * what was before. What that one saw has other scales, intervals of other lengths, and its own
 * doing in it.
 */
static inline void headway_rate_agent_take_over(struct headway_rate_agent *a,
						const struct headway_int8 *net,
						const struct headway_record *r)
{
	__u64 rate = a->rate;
	__u32 decisions = a->decisions;

	*a = (struct headway_rate_agent){ .decisions = decisions };
	headway_rate_agent_open(a, net, r->now_ns);
	a->rate = rate;
	a->sent = a->sent_before = r->sent;
	a->delivered = a->delivered_before = r->delivered;
	a->lost = a->lost_before = r->lost;
}

/* Ends the interval under way, and acts on what it was. */
static inline void headway_rate_agent_decide(struct headway_rate_agent *a,
					     const struct headway_int8 *net, __u32 generation,
					     __u64 now_ns)
{
	__s64 output;

	headway_rate_agent_close(a, net, now_ns);
	output = headway_mlp_run(&net->net, &a->values);
	if (headway_int8_generation(net) != generation)
		return;
	a->rate = headway_rate_agent_scaled(net, a->rate, output);
	a->decisions++;
}

/*
 * The flow's state at an acknowledgement or a timeout, in the order of their times. The pacing rate
 * in bytes a second that holds from now on; 0 where there has been no policy yet.
 *
 * There is no timer here. Where one would have gone off since the last record, the decision is made
 * up for, of the records that there were then: only its effect is late. Were this record counted
 * too, intervals of few packets would be others than those of training, and rates would fall
 * without end (docs/int8.md).
 */
static inline __u64 headway_rate_agent_record(struct headway_rate_agent *a,
					      const struct headway_int8 *net,
					      const struct headway_record *r)
{
	__u32 generation = headway_int8_generation(net);
	int is_usable = generation && !(generation & 1);

	if (is_usable && a->generation != generation)
		headway_rate_agent_take_over(a, net, r);
	if (is_usable && a->has_news && r->now_ns > a->due_ns && (a->samples || a->mean_us))
		headway_rate_agent_decide(a, net, generation, a->due_ns);
	if (r->rtt_us)
		headway_rate_agent_sample(a, net, r->now_ns, r->rtt_us);
	a->sent = r->sent;
	a->delivered = r->delivered;
	a->lost = r->lost;
	a->min_rtt_us = r->min_rtt_us;
	a->has_news = 1;
	/* Without an RTT yet no interval has a length. */
	if (is_usable && r->now_ns >= a->due_ns && (a->samples || a->mean_us))
		headway_rate_agent_decide(a, net, generation, r->now_ns);
	return a->rate;
}

#endif
