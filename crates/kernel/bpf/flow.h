/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A flow as every program keeps it: messages to the agent, the agent's actions, and the guard. */
#ifndef HEADWAY_FLOW_H
#define HEADWAY_FLOW_H

#include "kernel.h"
#include "abi.h"
#include "settings.h"

#define HEADWAY_RING (1 << 22)

/*
 * An array needs no clean-up, and has no races. Users whose numbers are far apart may have the same
 * element. Then they share it.
 */
#define HEADWAY_USERS 65536

#define HEADWAY_NO_SLOT 0xffffffffu
#define FREE_SLOT_TRIES 4
/* The third word of an address in ::ffff:0:0/96, as it is in memory. */
#define V4_MAPPED __builtin_bswap32(0xffff)

/* The fields that each acknowledgement reads stand first, in few cache lines. */
struct flow {
	/* HEADWAY_NO_SLOT before its first acknowledgement, and while all are taken */
	__u32 slot;
	__u32 number;        /* set when it takes a slot */
	__u32 user;          /* whose share the slot counts in; the socket may change hands later */
	__u32 sequence;      /* of the last action that was read */
	__u32 acks;          /* since the last record */
	__s32 rtt_us;        /* the newest sample, until a record has it */
	__u32 srtt_us;       /* times 8, as the kernel keeps it */
	__u32 mdev_us;       /* times 4 */
	__u32 min_rtt_us;
	bool in_fallback;    /* by the guard, for HEADWAY_LEAVE, or under --shadow */
	bool is_left;        /* no policy decides: HEADWAY_LEAVE */
	bool is_pending;     /* an acknowledgement arrived that no record covers yet */
	bool is_asked;       /* the agent was asked and has not answered yet */
	bool is_open;        /* the agent was told of the flow */
	bool is_own;         /* the program evaluates its policy itself, which takes no slot */
	bool is_new;         /* the policy that has it sent all that it ever sent */
	bool is_learners;    /* the newest answer says that its policy learns in use */
	bool has_answered;   /* marks of the present recovery */
	bool stops_pacing;   /* pacing ends once the next packet's time has come */
	__u32 marked;        /* tp->delivered_ce at the last acknowledgement */
	__u32 initial_cwnd;  /* the route's, in packets */
	__u32 una;           /* tp->snd_una when Cubic was asked last */
	__u32 prr_delivered; /* PRR's counter: tp's may not be written */
	/* the largest window that an undo may give Cubic, in packets; 0: no bound */
	__u32 undo_most;
	/* when to ask the agent next; without a slot, when to try for one next */
	__u64 due_ns;
	__u64 reported_ns;   /* the last record */
	__u64 pacing_rate;   /* headway_rate: bytes a second on the wire */
	__u64 asked_ns;      /* when it was asked last */
	/* the acknowledgement with the newest ECN mark that its policy's window or rate answered */
	__u64 marked_ns;
	/* headway_window: the policy's window is paced until then, after an idle period */
	__u64 paced_ns;
	__u64 btlbw;         /* headway_bbr: BBR's model of the path, as in a record */
	__u32 rtprop_us;
	__u16 pacing_gain;
	__u16 cwnd_gain;
	struct headway_guard guard;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HEADWAY_RING);
} messages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HEADWAY_FLOWS);
	__type(key, __u32);
	__type(value, struct headway_action);
} actions SEC(".maps");

/* The free slots. The agent fills it once it serves. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, HEADWAY_FLOWS);
	__type(value, __u32);
} free_slots SEC(".maps");

/* The number of slots that each user's flows have. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HEADWAY_USERS);
	__type(key, __u32);
	__type(value, __u32);
} slots_of_users SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct headway_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct headway_counters);
} counters SEC(".maps");

__u32 flow_number = 0;

HEADWAY_ONCE int judge(struct headway_guard *g, const struct headway_limits *l,
		       const struct headway_record *r)
{
	return g && l && r ? headway_guard_judge(g, l, r) : HEADWAY_POLICY;
}

static __always_inline struct headway_settings *the_settings(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&settings, &first);
}

static __always_inline struct headway_counters *the_counters(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&counters, &first);
}

#define COUNT(what) do { \
	struct headway_counters *the = the_counters(); \
	if (the) \
		__sync_fetch_and_add(&the->what, 1); \
} while (0)

/* The guard's limits for the flow's policy. */
static __always_inline const struct headway_limits *limits_of(const struct flow *f,
							      const struct headway_settings *set)
{
	return f->is_learners ? &set->learner_limits : &set->limits;
}

/*
 * The program's state of a socket, served or not. It is missing only if the host had no memory for
 * it.
 */
static __always_inline struct flow *kept_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

/* The flow of a socket whose policy decides: it has a slot, or needs none. */
static __always_inline struct flow *flow_of(struct sock *sk)
{
	struct flow *f = kept_of(sk);

	return f && (f->slot < HEADWAY_FLOWS || f->is_own) ? f : 0;
}

/* A socket of IPv6 may carry IPv4, to ::ffff:0:0/96. */
static __always_inline bool is_ipv6(struct sock *sk)
{
	const __u32 *remote = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;

	return sk->__sk_common.skc_family == AF_INET6 &&
	       (remote[0] || remote[1] || remote[2] != V4_MAPPED);
}

static __always_inline __u32 ip_header(struct sock *sk)
{
	return is_ipv6(sk) ? 40 : 20;
}

/*
 * Does a flow end where it begins? Every address of a host's, and so ::1, is reached from that
 * address itself, unless the program binds another of them. Such a flow is treated as any other.
 */
static __always_inline bool is_loopback(struct sock *sk)
{
	const __u32 *remote = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;
	const __u32 *local = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32;
	__u32 to = sk->__sk_common.skc_daddr;

	if (is_ipv6(sk))
		return remote[0] == local[0] && remote[1] == local[1] && remote[2] == local[2] &&
		       remote[3] == local[3];
	return to == sk->__sk_common.skc_rcv_saddr || *(__u8 *)&to == 127;
}

/* A full packet on the wire. */
static __always_inline __u32 wire_mss(struct sock *sk)
{
	return tcp_sk(sk)->mss_cache + tcp_sk(sk)->tcp_header_len + ip_header(sk);
}

static __always_inline void write_header(struct headway_header *header, const struct flow *f,
					 __u16 kind, __u16 size)
{
	header->magic = HEADWAY_MAGIC;
	header->version = HEADWAY_VERSION;
	header->kind = kind;
	header->flow = f->number;
	header->slot = f->slot;
	header->size = size;
}

/* Sends a message to the agent, which may wake it. Returns whether the ring had room. */
static __always_inline bool send_with(void *message, __u16 size, __u64 flags)
{
	bool is_sent = !bpf_ringbuf_output(&messages, message, size, flags);

	if (!is_sent)
		COUNT(ring_dropped);
	else if (flags == BPF_RB_FORCE_WAKEUP)
		COUNT(wakes);
	return is_sent;
}

static __always_inline bool send(void *message, __u16 size)
{
	return send_with(message, size, BPF_RB_NO_WAKEUP);
}

/* Is less than half of the ring free? That is for all but reports without a request. */
static __always_inline bool is_half_full(const struct headway_settings *set)
{
	return bpf_ringbuf_query(&messages, BPF_RB_AVAIL_DATA) > set->most_waiting_bytes;
}

static __always_inline void map_address(__u8 *to, __u32 address)
{
	__u32 *words = (__u32 *)to;

	words[0] = words[1] = 0;
	words[2] = V4_MAPPED;
	words[3] = address;
}

static __always_inline void say_open(struct sock *sk, struct flow *f, __u64 now_ns)
{
	struct headway_open open = {};

	write_header(&open.header, f, HEADWAY_OPEN, sizeof(open));
	open.start_ns = now_ns;
	if (sk->__sk_common.skc_family == AF_INET6) {
		__u32 *local = (__u32 *)open.local_address, *remote = (__u32 *)open.remote_address;

		for (int i = 0; i < 4; i++) {
			local[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			remote[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		map_address(open.local_address, sk->__sk_common.skc_rcv_saddr);
		map_address(open.remote_address, sk->__sk_common.skc_daddr);
	}
	open.local_port = sk->__sk_common.skc_num;
	open.remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	open.mss = wire_mss(sk);
	open.initial_cwnd = tcp_sk(sk)->snd_cwnd;
	open.user = f->user;
	f->is_open = send(&open, sizeof(open));
}

/*
 * A socket takes this controller. It has no slot before its first acknowledgement, because many
 * only receive, or wait.
 */
static __always_inline struct flow *open_flow(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct headway_settings *set = the_settings();

	if (!f)
		return 0;
	/* A socket may come here again, by another setsockopt(). */
	__builtin_memset(f, 0, sizeof(*f));
	f->slot = HEADWAY_NO_SLOT;
	f->rtt_us = -1;
	f->is_new = !tp->data_segs_out;
	f->in_fallback = set && set->is_shadow;
	/* The route's, but for the window of 1 that lost SYNs leave. */
	f->initial_cwnd = tp->data_segs_out || (tp->snd_cwnd == 1 && tp->total_retrans)
				  ? TCP_INIT_CWND
				  : tp->snd_cwnd;
	/* A socket that has sent knows its path. */
	if (tp->data_segs_out && tp->srtt_us) {
		f->srtt_us = tp->srtt_us;
		f->mdev_us = tp->mdev_us;
		f->min_rtt_us = tp->srtt_us >> 3;
	}
	return f;
}

static __always_inline void open_guard(struct sock *sk, struct flow *f, __u64 now_ns)
{
	struct tcp_sock *tp = tcp_sk(sk);

	headway_guard_open(&f->guard, now_ns, tp->snd_cwnd,
			   tp->snd_ssthresh < TCP_INFINITE_SSTHRESH ? tp->snd_ssthresh : 0);
}

/*
 * The number of slots that a user's flows have. Root has no share, because root may take all.
 * Multiplying by 2^32 over the golden ratio spreads numbers that are close, and numbers that differ
 * by a multiple of 65,536, as blocks of /etc/subuid do.
 */
static __always_inline __u32 *slots_of(__u32 user)
{
	__u32 index = (user * 0x9e3779b1u) >> 16;

	return user ? bpf_map_lookup_elem(&slots_of_users, &index) : 0;
}

/* Takes a slot for the flow if one is free and its user may have one more. */
static __always_inline bool take_slot(struct flow *f, __u32 user)
{
	const struct headway_settings *set = the_settings();
	__u32 *taken = slots_of(user), slot;

	if (!set)
		return 0;
	if (taken && __sync_fetch_and_add(taken, 1) >= set->flows_of_user) {
		COUNT(user_full);
	} else if (bpf_map_pop_elem(&free_slots, &slot)) {
		COUNT(slots_full);
	} else {
		f->slot = slot;
		f->user = user;
		return 1;
	}
	if (taken)
		__sync_fetch_and_add(taken, -1);
	return 0;
}

static __always_inline void free_slot(struct flow *f)
{
	__u32 *taken = slots_of(f->user), slot = f->slot;

	f->slot = HEADWAY_NO_SLOT;
	/*
	 * Since Linux 6.15 the queue's lock is resilient: it may be refused. A slot that is not put
	 * back would be lost for good.
	 */
	for (int i = 0; i < FREE_SLOT_TRIES && bpf_map_push_elem(&free_slots, &slot, 0); i++)
		;
	if (taken)
		__sync_fetch_and_add(taken, -1);
}

/* Takes a slot, if it may, at an acknowledgement of a flow without one. */
static __attribute__((noinline)) int enter(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now_ns = tp->tcp_clock_cache;

	/* The acknowledgement of a FIN alone needs no policy. */
	if (!tp->data_segs_out)
		return 0;
	/* A policy of the program's own was judged without a slot. */
	if (!headway_guard_has_begun(&f->guard))
		open_guard(sk, f, now_ns);
	if (!take_slot(f, sk->sk_uid.val)) {
		f->due_ns = now_ns + HEADWAY_LOOK_AGAIN_NS;
		return 0;
	}
	f->due_ns = 0;
	f->number = __sync_fetch_and_add(&flow_number, 1) + 1;
	COUNT(flows);
	say_open(sk, f, now_ns);
	return 1;
}

/* At an acknowledgement: has the flow a policy, the agent's or the program's own? */
static __always_inline bool is_served(struct sock *sk, struct flow *f,
				      const struct headway_settings *set, bool is_own)
{
	bool is_apart = f->slot >= HEADWAY_FLOWS && !set->serves_loopback && is_loopback(sk);
	__u64 now_ns = tcp_sk(sk)->tcp_clock_cache;

	if (is_apart)
		is_own = 0;
	if (f->is_own && !is_own) {
		f->is_own = 0;
		headway_guard_forget(&f->guard);
	}
	if (f->slot < HEADWAY_FLOWS)
		return 1;
	/*
	 * Without an agent a slot is of no use: no request would be answered until the guard
	 * trips. During a reduction the window is PRR's, which no policy should start from.
	 */
	if (!is_apart && now_ns >= f->due_ns && now_ns < VOLATILE(set->served_until_ns) &&
	    ca_state(sk) < TCP_CA_CWR && enter(sk, f))
		return 1;
	f->is_own = is_own;
	f->is_new &= is_own;
	return is_own;
}

/* Fills in a record (abi.h). In set_state `state` is the one that the kernel enters. */
static __always_inline void write_record(struct sock *sk, struct flow *f, struct headway_record *r,
					 __u64 now_ns, __u32 acks, __u32 flags, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 pacing_rate = f->pacing_rate;

	if (!pacing_rate && sk->sk_pacing_status != SK_PACING_NONE)
		pacing_rate = sk->sk_pacing_rate;
	r->now_ns = now_ns;
	r->pacing_rate = pacing_rate;
	r->btlbw = f->btlbw;
	r->sent = tp->data_segs_out;
	r->retransmitted = tp->total_retrans;
	r->delivered = tp->delivered;
	r->delivered_ce = tp->delivered_ce;
	r->lost = tp->lost;
	r->in_flight = in_flight(tp);
	r->cwnd = tp->snd_cwnd;
	r->mss = wire_mss(sk);
	r->rtt_us = f->rtt_us > 0 ? f->rtt_us : 0;
	r->srtt_us = f->srtt_us >> 3;
	r->rttvar_us = f->mdev_us >> 2;
	r->min_rtt_us = f->min_rtt_us;
	r->rate_delivered = tp->rate_delivered;
	r->rate_interval_us = tp->rate_interval_us;
	r->acks = acks;
	r->rtprop_us = f->rtprop_us;
	r->pacing_gain = f->pacing_gain;
	r->cwnd_gain = f->cwnd_gain;
	r->flags = flags;
	if (tp->app_limited)
		r->flags |= HEADWAY_APP_LIMITED;
	if (BITS(tp, is_cwnd_limited))
		r->flags |= HEADWAY_CWND_LIMITED;
	if (BITS(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED)
		r->flags |= HEADWAY_RWND_LIMITED;
	if (state >= TCP_CA_Recovery)
		r->flags |= HEADWAY_RECOVERING;
}

/* RFC 6298 in whole numbers, as tcp_rtt_estimator(), but with gain 1/4 in both directions. */
static __always_inline void sample_rtt(struct flow *f, __s32 rtt_us)
{
	__s32 error;

	if (rtt_us <= 0)
		return;
	f->rtt_us = rtt_us;
	if (!f->srtt_us) {
		f->srtt_us = rtt_us << 3;
		f->mdev_us = rtt_us << 1;
		f->min_rtt_us = rtt_us;
		return;
	}
	error = rtt_us - (__s32)(f->srtt_us >> 3);
	f->mdev_us += (error < 0 ? -error : error) - (__s32)(f->mdev_us >> 2);
	f->srtt_us += error;
	if ((__u32)rtt_us < f->min_rtt_us)
		f->min_rtt_us = rtt_us;
}

static __always_inline void say_verdict(const struct flow *f, __u64 now_ns, __u32 reason)
{
	struct headway_verdict verdict = { .now_ns = now_ns,
					   .reason = reason,
					   .trips = f->guard.trips };

	if (f->slot >= HEADWAY_FLOWS)
		return;
	write_header(&verdict.header, f, HEADWAY_VERDICT, sizeof(verdict));
	send(&verdict, sizeof(verdict));
}

/*
 * Sends a request, and wakes the agent if it sleeps. Waking it takes tens of microseconds if its
 * processor sleeps too: far longer than the rest of an acknowledgement. So the agent says in
 * is_awake whether it reads anyway. Before it sleeps it clears is_awake and reads once more. The
 * program reads is_awake again after it has sent the request, and sending is a full barrier. So
 * either the agent reads the request, or the program sees that it sleeps, and wakes it with a
 * record that is discarded.
 */
static __always_inline bool ask(const struct headway_settings *set, void *request, __u16 size)
{
	void *discarded;

	if (!VOLATILE(set->is_awake))
		return send_with(request, size, BPF_RB_FORCE_WAKEUP);
	if (!send(request, size))
		return 0;
	if (VOLATILE(set->is_awake))
		return 1;
	discarded = bpf_ringbuf_reserve(&messages, 8, 0);
	if (discarded) {
		COUNT(wakes);
		bpf_ringbuf_discard(discarded, BPF_RB_FORCE_WAKEUP);
	}
	return 1;
}

/* Carries out the guard's verdict, counts it and tells the agent. */
static __always_inline void carry_out(struct flow *f, int verdict, __u64 now_ns)
{
	struct headway_counters *count = the_counters();
	__u32 reason = f->guard.reason & 7;

	if (verdict != HEADWAY_TRIP && verdict != HEADWAY_RESUME)
		return;
	f->in_fallback = verdict == HEADWAY_TRIP;
	if (count)
		__sync_fetch_and_add(f->in_fallback ? &count->trips[reason] : &count->returns, 1);
	say_verdict(f, now_ns, f->in_fallback ? reason : 0);
}

/*
 * Gives a flow to Cubic without a trip, because its policy left it or is only a shadow, or gives it
 * back. The agent knows already.
 */
static __always_inline int leave(struct sock *sk, struct flow *f, bool is_left, __u64 now_ns)
{
	if (is_left == f->in_fallback)
		return HEADWAY_FALLBACK;
	f->in_fallback = is_left;
	headway_guard_forget(&f->guard);
	if (f->in_fallback)
		return HEADWAY_TRIP;
	open_guard(sk, f, now_ns);
	return HEADWAY_RESUME;
}

/* Who controls the flow from now on. */
static __always_inline int verdict_of(struct sock *sk, struct flow *f,
				      const struct headway_settings *set,
				      const struct headway_record *r)
{
	/* An agent in shadow may adopt flows that an earlier agent's policy had. */
	bool is_left = f->is_left || set->is_shadow;
	int verdict;

	if (is_left || (f->in_fallback && !f->guard.reason))
		return leave(sk, f, is_left, r->now_ns);
	verdict = judge(&f->guard, limits_of(f, set), r);
	carry_out(f, verdict, r->now_ns);
	return verdict;
}

/*
 * The kernel has undone a reduction from before the guard took the flow, and with it ssthresh. Or
 * that reduction can no longer be undone.
 */
static __always_inline void end_undo(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_ssthresh > f->undo_most)
		tp->snd_ssthresh = f->undo_most;
	f->undo_most = 0;
}

/*
 * Writes the flow's record after an acknowledgement (acks 1) or a timeout (0) into `told`, lets the
 * guard judge it, and sends it to the agent. `is_steerable`: an action would be carried out now.
 * Returns enum headway_guard_verdict.
 */
static __always_inline int report(struct sock *sk, struct flow *f,
				  const struct headway_settings *set, struct headway_report *told,
				  __u32 acks, bool is_steerable, __u8 state)
{
	__u64 now_ns = tcp_sk(sk)->tcp_clock_cache;
	struct headway_record *r = &told->record;
	bool asks = 0, is_sent;
	int verdict;

	f->is_pending = 0;
	f->acks += acks;
	if (f->undo_most && state < TCP_CA_CWR && !tcp_sk(sk)->undo_marker)
		end_undo(sk, f);
	write_record(sk, f, r, now_ns, acks, is_steerable ? HEADWAY_STEERABLE : 0, state);
	if (is_steerable && now_ns >= f->due_ns &&
	    (!f->is_asked || now_ns - f->asked_ns > HEADWAY_ASK_AGAIN_NS)) {
		/* The guard waits for the answer even if the ring has no room for the request. */
		f->is_asked = asks = 1;
		f->asked_ns = now_ns;
		headway_guard_ask(&f->guard, now_ns);
	}
	verdict = verdict_of(sk, f, set, r);
	if (verdict == HEADWAY_RESUME)
		f->undo_most = 0;
	if (f->in_fallback)
		r->flags |= HEADWAY_TRIPPED;
	/* Without a request, acknowledgements add up until the next report is due. */
	if (f->slot >= HEADWAY_FLOWS)
		return verdict;
	if (acks && !asks && now_ns - f->reported_ns < (__u64)set->report_interval_us * 1000)
		return verdict;
	/* A flow's next report counts the acknowledgements of one that is held back. */
	if (acks && !asks && is_half_full(set)) {
		COUNT(held_back);
		return verdict;
	}
	if (asks)
		r->flags |= HEADWAY_ASKS;
	/* A timeout's record counts no acknowledgement. The next report counts those before it. */
	r->acks = acks ? f->acks : 0;
	f->reported_ns = now_ns;
	if (!f->is_open)
		say_open(sk, f, now_ns);
	write_header(&told->header, f, HEADWAY_REPORT, sizeof(*told));
	is_sent = asks ? ask(set, told, sizeof(*told)) : send(told, sizeof(*told));
	if (is_sent) {
		f->acks -= r->acks;
		f->rtt_us = -1;
	} else if (asks) {
		/* The next acknowledgement asks again. The guard counts from this one. */
		f->is_asked = 0;
	}
	return verdict;
}

/* The socket closes, or takes another controller. */
static __always_inline void close_flow(struct sock *sk)
{
	struct flow *f = kept_of(sk);
	struct headway_report last;

	if (!f || f->slot >= HEADWAY_FLOWS)
		return;
	write_header(&last.header, f, HEADWAY_CLOSE, sizeof(last));
	write_record(sk, f, &last.record, bpf_ktime_get_ns(), f->acks, 0, ca_state(sk));
	/* CLOSE has to be sent before another flow takes the slot and sends OPEN. */
	send(&last, sizeof(last));
	free_slot(f);
}

#endif
