/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the guard says, and what it allows: guard.h */
#ifndef HEADWAY_LIMITS_H
#define HEADWAY_LIMITS_H

#include "abi.h"

/* Why a flow was taken from its policy. */
enum headway_reason {
	HEADWAY_FINE = 0,
	HEADWAY_TOO_STALE = 1,   /* no answer, or one that came too late */
	HEADWAY_TOO_LOSSY = 2,    /* it loses too much */
	HEADWAY_TOO_SLOW = 3,   /* its queue is too long */
	HEADWAY_TOO_POOR = 4, /* Cubic would do much better */
	HEADWAY_TOO_WILD = 5,  /* it keeps wanting what may not be */
};
#define HEADWAY_REASONS 6

/* Whose the flow is. */
enum headway_judgement {
	HEADWAY_POLICYS = 0,
	HEADWAY_TRIPS = 1, /* Cubic's, just now */
	HEADWAY_CUBICS = 2,
	HEADWAY_RETURNS = 3, /* the policy's again, just now */
};

struct headway_limits {
	__u64 max_rate;       /* bytes a second */
	__u32 min_cwnd;       /* packets */
	__u32 max_cwnd;       /* packets */
	__u32 wild_answers;   /* so many in a row that want other windows or rates */
	__u32 answer_us;      /* an answer may take so long, ... */
	__u32 answer_rtts;    /* ... or so many smoothed RTTs if that is longer, ... */
	__u32 answer_most_us; /* ... but never longer than this */
	__u32 epoch_us;       /* what follows is judged over so long, two least RTTs, and a smoothed one */
	__u32 epochs;         /* so many in a row have to be bad; of delay twice as many */
	__u32 loss;           /* share of packets lost, in 1/65536 */
	__u32 inflation;      /* smoothed over least RTT, in 1/256, ... */
	__u32 inflation_us;   /* ... and so much above it */
	__u32 margin;         /* of utility, log2(rate) - weight * log2(RTT / least RTT), in 1/65536; a sixteenth of long means' */
	__u32 weight;         /* in 1/65536 */
	__u32 share;          /* of what the path carries, in 1/65536: a mean rate below that is too low, ... */
	__u32 long_epochs;    /* ... so many epochs in a row */
	__u32 probation_ms;   /* the first; each further one is twice as long, ... */
	__u32 doublings;      /* ... so many times at most; ... */
	__u32 undoubled;      /* ... but so many after the first are as long as that */
	__u32 pardon_ms;      /* for each such time that it behaves one trip is forgotten */
	__u32 unused;         /* zero */
};

#endif
