/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the agent sets for all flows of a program. It maps this array map of one into its memory. */
#ifndef HEADWAY_SETTINGS_H
#define HEADWAY_SETTINGS_H

#include "guard.h"

struct headway_settings {
	__u64 initial_rate;       /* headway_rate: bytes a second on the wire */
	__u64 min_rate;
	__u64 max_rate;
	/* then no flow takes a slot any more: an agent that runs moves it on */
	__u64 served_until_ns;
	/*
	 * the least time between two records of a flow, unless it asks; 0: one record for each
	 * acknowledgement
	 */
	__u32 report_interval_us;
	/* headway_owl: does Cubic's window grow where the policy may act? */
	__u32 grows;
	/* Cubic decides, and the agent is asked what it would have done */
	__u32 is_shadow;
	/* the agent reads messages now, or very soon: no question needs to wake it */
	__u32 is_awake;
	/* the number of slots that one user's flows may have; root's may have all */
	__u32 flows_of_user;
	__u32 serves_loopback;    /* flows from an address to itself are served too */
	/* reports without a request wait while more bytes than this are in the ring: half of it */
	__u32 most_waiting_bytes;
	__u32 unused;             /* the limits begin at a multiple of 8 bytes */
	struct headway_limits limits;
	/* of flows whose policies learn in use: HEADWAY_LEARNER */
	struct headway_limits learner_limits;
};

#endif
