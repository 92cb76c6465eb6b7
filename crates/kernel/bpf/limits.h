/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The guard's verdicts and limits: guard.h */
#ifndef HEADWAY_LIMITS_H
#define HEADWAY_LIMITS_H

#include "abi.h"

/* Why a flow was taken from its policy. */
enum headway_reason {
	HEADWAY_FINE = 0,
	HEADWAY_TOO_STALE = 1, /* no answer, or one that came too late */
	HEADWAY_TOO_LOSSY = 2,    /* it loses too much */
	HEADWAY_TOO_SLOW = 3,   /* its queue is too long */
	HEADWAY_TOO_POOR = 4, /* Cubic would do much better */
	HEADWAY_TOO_WILD = 5,  /* it asks again and again for a window or a rate out of bounds */
};
#define HEADWAY_REASONS 6

/* Who controls the flow. */
enum headway_guard_verdict {
	HEADWAY_POLICY = 0, /* the policy */
	HEADWAY_TRIP = 1, /* Cubic, from now on */
	HEADWAY_FALLBACK = 2, /* Cubic */
	HEADWAY_RESUME = 3, /* the policy, from now on */
};

/*
 * Every number that decides. crates/fixed/src/limits.rs has the default and the range of each, and
 * checks the ranges where limits are set: within them no multiplication or sum wraps. What they are
 * for: docs/guard.md.
 */
struct headway_limits {
	/* What an answer may ask for. */
	__u64 max_rate;         /* A rate is at most this, in bytes a second, ... */
	__u32 rate_gain;        /* and at most this many times the recent delivery rate. */
	__u32 min_cwnd;         /* A window is at least this, in packets, ... */
	__u32 max_cwnd;         /* and at most this. */
	/* The policy loses the flow after this many answers in a row beyond the largest. */
	__u32 wild_answers;
	/* When an answer is late. */
	__u32 answer_us;        /* An answer may take this long, ... */
	__u32 answer_rtts;      /* or this many smoothed RTTs if that is longer, ... */
	__u32 answer_most_us;   /* and never longer than this. */
	__u32 answer_keeps_ms;  /* An answer that is older is not carried out. */
	/* The policy loses the flow after this many late answers in a row. */
	__u32 stale_answers;
	/* It returns if the newest answer is at most this many times answer_most_us old. */
	__u32 return_patiences;
	/* What the path has shown. */
	__u32 epoch_us;         /* An epoch is at least this long, ... */
	__u32 epoch_min_rtts;   /* and this many minimum RTTs, ... */
	__u32 epoch_srtts;      /* and this many smoothed RTTs. */
	/* An RTT shows a queue if it is above the minimum by this share, in 1/256, ... */
	__u32 queue_share;
	__u32 queue_us;         /* and by this much more. */
	__u32 few_packets;      /* This many packets in flight make no queue. */
	__u32 peak_ms;          /* The largest rate is remembered for one to two times this long. */
	__u32 mean_shift;       /* Means over epochs have the gain 1 / 2^mean_shift. */
	/* A path carries this many packets a round trip until a queue or a loss says otherwise. */
	__u32 initial_window;
	/* The shadow Cubic. */
	/* Its window is at most this many times what the path was seen to hold, ... */
	__u32 shadow_gain;
	__u32 shadow_packets;   /* and this many packets more. */
	/* More in flight than its window by this share, in 1/256, is more than a Cubic's. */
	__u32 beyond;
	/* A window that is this many times the shadow Cubic's is too large. */
	__u32 ahead;
	/* When an epoch is bad, and how many of them in a row are too many. */
	__u32 loss;             /* This share of the packets is lost, in 1/65536, ... */
	__u32 loss_packets;     /* of at least this many packets. */
	__u32 epochs;           /* Bad epochs for losses, and for the utility of single epochs. */
	__u32 inflation;        /* The smoothed RTT is this many times the minimum, in 1/256, ... */
	__u32 inflation_us;     /* and above it by this much, ... */
	/* and this many times the RTT at which packets were lost or marked. */
	__u32 full_rtts;
	__u32 slow_epochs;      /* Bad epochs for delay. */
	/* Utility is log2(rate) - weight * log2(RTT / minimum RTT), in 1/65536. */
	__u32 weight;
	/* The epoch's utility is below the shadow Cubic's by this, in 1/65536. */
	__u32 margin;
	/* The mean rate is below this share of what the path carries, in 1/65536, ... */
	__u32 share;
	/* and the utility of the means is below the shadow Cubic's by this, in 1/65536. */
	__u32 long_margin;
	__u32 long_epochs;      /* Bad epochs for the means. */
	/* After a trip. */
	__u32 probation_ms;     /* The first probation. */
	/* This many further ones are as long; each after them is twice as long as the last, ... */
	__u32 undoubled;
	__u32 doublings;        /* at most this many times. */
	__u32 pardon_ms;        /* One trip is forgotten after each such time without another. */
	/* Losses in this many smoothed RTTs after a trip do not lower Cubic's window. */
	__u32 spared_rtts;
	__u32 least_ssthresh;   /* Cubic begins with at least this ssthresh, in packets. */
	__u32 unused;           /* Zero. */
};

#endif
