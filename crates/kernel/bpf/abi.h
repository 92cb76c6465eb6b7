/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the BPF programs and the agent say to each other.
 *
 * Plain C without helpers: BPF programs include it after kernel.h, and a test of crates/kernel
 * compiles it natively and compares every size and offset with the Rust types
 * (crates/kernel/src/abi.rs, and Record in crates/policy). Both sides run on one machine: numbers
 * are in its byte order. Nothing is padded by the compiler. tp is the socket's tcp_sock, icsk its
 * inet_connection_sock.
 */
#ifndef HEADWAY_ABI_H
#define HEADWAY_ABI_H

#if defined(__bpf__)
/* kernel.h has the types. */
#elif defined(__linux__)
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef int32_t __s32;
typedef uint32_t __u32;
typedef int64_t __s64;
typedef uint64_t __u64;
#endif

#define HEADWAY_MAGIC 0x59574448 /* "HDWY" in little-endian memory */
#define HEADWAY_VERSION 12

/* As many as the agent asks for, up to this: each has a slot. */
#define HEADWAY_FLOWS 16384
/*
 * The agent is asked again after this time without an answer, however far ahead the last one says
 * that the next is due.
 */
#define HEADWAY_LATEST_DUE_NS 1000000000ull
/* A question may have been dropped by an agent that ended. */
#define HEADWAY_ASK_AGAIN_NS 100000000ull
/* A flow that found no slot looks again so much later. */
#define HEADWAY_LOOK_AGAIN_NS 1000000000ull

/* Kinds of messages from the kernel, through a ring buffer. */
enum headway_kind {
	HEADWAY_OPEN = 1,   /* struct headway_open: a flow begins */
	HEADWAY_REPORT = 2, /* struct headway_report: an acknowledgement, a digest, or a timeout */
	HEADWAY_CLOSE = 3,  /* struct headway_report: a flow ends, with its last record */
	/* struct headway_verdict: the guard takes a flow from its policy, or gives it back */
	HEADWAY_VERDICT = 4,
};

/* What an action does to the base controller. */
enum headway_action_kind {
	HEADWAY_NOTHING = 0,
	HEADWAY_ADD_CWND = 1,   /* values[0]: packets, signed */
	HEADWAY_SCALE_CWND = 2, /* values[0]: factor times 65536 */
	HEADWAY_SCALE_RATE = 3, /* values[0]: factor times 65536 */
	/*
	 * values[i] for each parameter i whose bit of which is on: a time in nanoseconds, a rate in
	 * bytes a second, a count, or any other number times 65536
	 */
	HEADWAY_SET = 4,
	HEADWAY_SET_CWND = 5,   /* values[0]: packets */
	/*
	 * no policy decides: the flow is Cubic's until another action comes, and nothing is judged
	 */
	HEADWAY_LEAVE = 6,
};

#define HEADWAY_PARAMETERS 4 /* as many as one action may set */

/* headway_action.flags */
/* the flow's policy learns in use: the guard's limits for learners apply from now on */
#define HEADWAY_LEARNER 1u

/* Record.flags */
#define HEADWAY_APP_LIMITED 1u  /* tp->app_limited != 0 */
#define HEADWAY_CWND_LIMITED 2u /* tp->is_cwnd_limited */
#define HEADWAY_RECOVERING 4u   /* icsk->icsk_ca_state >= TCP_CA_Recovery */
#define HEADWAY_STEERABLE 8u    /* the base controller would apply an action now */
/* the flow is in fallback: by the guard, HEADWAY_LEAVE or --shadow; no answer is carried out */
#define HEADWAY_TRIPPED 16u
/* a request: the guard waits for an answer, even for one that changes nothing */
#define HEADWAY_ASKS 32u
/* tp->chrono_type == TCP_CHRONO_RWND_LIMITED: the receiver has room for no more */
#define HEADWAY_RWND_LIMITED 64u

/* Every message begins with this. */
struct headway_header {
	__u32 magic;   /* HEADWAY_MAGIC */
	__u16 version; /* HEADWAY_VERSION */
	__u16 kind;    /* enum headway_kind */
	__u32 flow;    /* the program numbers flows: socket cookies are refused there */
	/* where the flow's actions are looked for: no other flow has it at the same time */
	__u16 slot;
	__u16 size;    /* of the whole message in bytes */
};

/*
 * A flow's state at an acknowledgement, after loss detection and the rate sample (cong_avoid,
 * cong_control); where cong_avoid is not called (Recovery, CWR) before them (pkts_acked), so that
 * losses and rates come with the next; at a timeout from set_state(TCP_CA_Loss), with acks zero.
 * Counts are of packets and wrap.
 */
struct headway_record {
	__u64 now_ns;           /* tp->tcp_clock_cache: when it arrived, by bpf_ktime_get_ns() */
	/* sk->sk_pacing_rate, bytes a second; 0 if sk->sk_pacing_status is SK_PACING_NONE */
	__u64 pacing_rate;
	__u32 sent;             /* tp->data_segs_out */
	__u32 retransmitted;    /* tp->total_retrans */
	__u32 delivered;        /* tp->delivered */
	__u32 delivered_ce;     /* tp->delivered_ce */
	__u32 lost;             /* tp->lost: never falls, also if a packet arrives after all */
	/* tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out */
	__u32 in_flight;
	__u32 cwnd;             /* tp->snd_cwnd; in Recovery that is PRR's */
	/* tp->mss_cache + tp->tcp_header_len + the IP header's 20 or 40 bytes */
	__u32 mss;
	__u32 rtt_us;           /* ack_sample->rtt_us; 0 where it is negative: no sample */
	/*
	 * kept by the program over rtt_us, gain 1/8: tp->srtt_us takes another packet's sample
	 * where acknowledgements are delayed
	 */
	__u32 srtt_us;
	/* kept by the program, gain 1/4: tp->mdev_us has gain 1/32 where the RTT falls */
	__u32 rttvar_us;
	__u32 min_rtt_us;       /* kept by the program: tp->rtt_min forgets after 300 s */
	__u32 rate_delivered;   /* tp->rate_delivered */
	__u32 rate_interval_us; /* tp->rate_interval_us; 0 before the first sample */
	__u32 acks;             /* acknowledgements that this stands for; 0 at a timeout */
	__u32 flags;            /* HEADWAY_APP_LIMITED and so on */
	/* of headway_bbr, while BBR has the flow: bbr->bw in bytes a second, else 0 */
	__u64 btlbw;
	__u32 rtprop_us;        /* as btlbw: bbr->min_rtt_us */
	__u16 pacing_gain;      /* as btlbw: bbr->pacing_gain, times 256 */
	__u16 cwnd_gain;        /* as btlbw: bbr->cwnd_gain, times 256 */
};

/* A flow begins. Addresses are IPv6, or IPv4 mapped into it. */
struct headway_open {
	struct headway_header header;
	__u64 start_ns;           /* bpf_ktime_get_ns() */
	__u8 local_address[16];   /* sk->__sk_common.skc_rcv_saddr or skc_v6_rcv_saddr */
	__u8 remote_address[16];  /* sk->__sk_common.skc_daddr or skc_v6_daddr */
	__u16 local_port;         /* sk->__sk_common.skc_num, host byte order */
	__u16 remote_port;        /* bpf_ntohs(sk->__sk_common.skc_dport) */
	__u32 mss;                /* as in a record */
	__u32 initial_cwnd;       /* tp->snd_cwnd */
	__u32 user;               /* whose socket it is: sk->sk_uid */
};

/* A flow's state, or its last. */
struct headway_report {
	struct headway_header header;
	struct headway_record record;
};

/* The guard has judged. */
struct headway_verdict {
	struct headway_header header;
	__u64 now_ns;
	__u32 reason; /* enum headway_reason; 0 where the flow goes back to its policy */
	__u32 trips;  /* of this flow, so far */
};

/*
 * What the agent wants of a flow: a slot for each in an array map that the agent maps into its
 * memory. The agent makes sequence odd, writes the rest, and makes it even and larger: the program
 * takes an action whose sequence is even, new, and the same after reading as before. It is applied
 * at the flow's next acknowledgement, unless it has expired or is another flow's: slots are used
 * again. headway_owl drops what it finds while losses are repaired.
 */
struct headway_action {
	__u64 decided_ns;  /* now_ns of the record that it answers, or when a clock decided */
	__u64 answered_ns; /* when the agent wrote this: as what follows by bpf_ktime_get_ns() */
	__u64 expires_ns;
	/* the first record from then on is a request, which wakes the agent if it sleeps */
	__u64 due_ns;
	__s64 values[HEADWAY_PARAMETERS];
	__u16 kind;       /* enum headway_action_kind */
	__u16 flags;      /* HEADWAY_LEARNER or 0 */
	__u32 which;      /* HEADWAY_SET only, else 0 */
	__u32 sequence;
	__u32 flow;
};

/* What the programs count, in an array map of one that the agent maps into its memory. */
struct headway_counters {
	__u64 flows;        /* flows that took a slot so far */
	/*
	 * requests for a slot that failed; the flow asks again each second, and Cubic or BBR
	 * controls it meanwhile
	 */
	__u64 slots_full;
	__u64 user_full;    /* the same, because its user's flows had their share already */
	__u64 ring_dropped; /* messages for which the ring had no room */
	__u64 returns;      /* times that the guard gave a flow back to its policy */
	__u64 wakes;        /* times that a request woke the agent */
	__u64 trips[8];     /* times that the guard took a flow, by enum headway_reason */
	/* records without a request, for which less than half of the ring was free */
	__u64 held_back;
};

#endif
