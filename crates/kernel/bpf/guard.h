#ifndef G
#define G
#include "abi.h"
enum { HEADWAY_FINE, HEADWAY_STALE };
enum { HEADWAY_POLICYS, HEADWAY_TRIPS, HEADWAY_CUBICS, HEADWAY_RETURNS };
struct headway_limits { __u32 max_cwnd, pad; };
struct headway_guard { __u64 asked_ns; __u32 reason, trips; };
static inline void headway_guard_open(struct headway_guard *g, __u64 now) {}
static inline void headway_guard_ask(struct headway_guard *g, __u64 now) { g->asked_ns = now; }
static inline int headway_guard_answer(struct headway_guard *g, const struct headway_limits *l, __u64 decided, __u64 now) { g->asked_ns = 0; return 1; }
static inline int headway_guard_judge(struct headway_guard *g, const struct headway_limits *l, const struct headway_record *r) { return 0; }
static inline __u32 headway_guard_cwnd(struct headway_guard *g, const struct headway_limits *l, __s64 w) { return w < 2 ? 2 : w > 100000 ? 100000 : w; }
static inline __u64 headway_guard_rate(struct headway_guard *g, const struct headway_limits *l, __u64 w) { return w; }
static inline __u32 headway_guard_restart(const struct headway_guard *g, const struct headway_record *r) { return r->cwnd; }
#endif
