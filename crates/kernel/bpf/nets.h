/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A small network in whole numbers, to be evaluated inside BPF. Helper-free: BPF programs include
 * it, and crates/fixed compiles it natively, so that both compute the same bits.
 */
#ifndef HEADWAY_NETS_H
#define HEADWAY_NETS_H

#include "abi.h"

#define HEADWAY_MLP_INPUTS 30
#define HEADWAY_MLP_HIDDEN1 32
#define HEADWAY_MLP_HIDDEN2 16
#define HEADWAY_MLP_LAYERS 3

/*
 * A multilayer perceptron 30-32-16-1. What goes in and what the hidden layers hold is 0 to 255; a
 * zero point other than 0 is the biases' affair. A layer's sum becomes what the next one sees by
 *
 *	clip(round(sum * multiplier / 2^shift)), a half rounded up, clipped to 0 to 255
 *
 * and the output is that without the clip. Weights stand row by row, a row for each unit.
 */
struct headway_mlp {
	__u32 multipliers[HEADWAY_MLP_LAYERS]; /* the lowest 24 bits count */
	__u32 shifts[HEADWAY_MLP_LAYERS];      /* the lowest 6 bits count */
	__s32 biases1[HEADWAY_MLP_HIDDEN1];
	__s32 biases2[HEADWAY_MLP_HIDDEN2];
	__s32 bias3;
	__u32 unused; /* zero */
	__s8 weights1[HEADWAY_MLP_HIDDEN1][HEADWAY_MLP_INPUTS];
	__s8 weights2[HEADWAY_MLP_HIDDEN2][HEADWAY_MLP_HIDDEN1];
	__s8 weights3[HEADWAY_MLP_HIDDEN2];
};

/*
 * What goes in, and room for what the hidden layers hold. It is in a map, because the verifier
 * follows what is on the stack.
 */
struct headway_mlp_values {
	__u8 inputs[HEADWAY_MLP_INPUTS];
	__u8 unused[2]; /* zero */
	__u8 hidden1[HEADWAY_MLP_HIDDEN1];
	__u8 hidden2[HEADWAY_MLP_HIDDEN2];
};

/*
 * In BPF loops of known length are written out. A sum is finished term by term, and what it is made
 * of is read again for each unit: what the compiler would rather keep for later would fill the
 * stack.
 */
#if defined(__bpf__)
#define HEADWAY_UNROLL _Pragma("unroll")
#define HEADWAY_IN_ORDER(sum) __asm__ volatile("" : "+r"(sum) : : "memory")
#else
#define HEADWAY_UNROLL
#define HEADWAY_IN_ORDER(sum)
#endif

/* At most 32 terms of 255 * 128: below 2^20. */
#define HEADWAY_DOT(sum, weights, values, length)                   \
	do {                                                        \
		HEADWAY_UNROLL                                      \
		for (int j = 0; j < (length); j++) {                \
			(sum) += (__s32)(weights)[j] * (values)[j]; \
			HEADWAY_IN_ORDER(sum);                      \
		}                                                   \
	} while (0)

/*
 * sum is below 2^31 + 2^20 on either side, so that with a multiplier of 24 bits and the half, of
 * 2^62 at most, nothing overflows. A shift of a negative number rounds down, here as in BPF.
 */
static inline __s64 headway_mlp_scaled(const struct headway_mlp *net, int layer, __s64 sum)
{
	__u32 shift = net->shifts[layer] & 63;
	__s64 half = (__s64)(1ull << shift >> 1);

	return (sum * (__s64)(net->multipliers[layer] & 0xffffff) + half) >> shift;
}

/* Without branches, each of which the verifier would follow. */
static inline __u8 headway_mlp_clip(__s64 value)
{
	value &= ~(value >> 63);
	return (__u8)(value | (255 - value) >> 63);
}

/* The output for values->inputs: below 2^56 on either side. */
static inline __s64 headway_mlp_run(const struct headway_mlp *net,
				    struct headway_mlp_values *values)
{
	__s32 sum;
	int i;

	for (i = 0; i < HEADWAY_MLP_HIDDEN1; i++) {
		sum = 0;
		HEADWAY_DOT(sum, net->weights1[i], values->inputs, HEADWAY_MLP_INPUTS);
		values->hidden1[i] =
			headway_mlp_clip(headway_mlp_scaled(net, 0, (__s64)sum + net->biases1[i]));
	}
	for (i = 0; i < HEADWAY_MLP_HIDDEN2; i++) {
		sum = 0;
		HEADWAY_DOT(sum, net->weights2[i], values->hidden1, HEADWAY_MLP_HIDDEN1);
		values->hidden2[i] =
			headway_mlp_clip(headway_mlp_scaled(net, 1, (__s64)sum + net->biases2[i]));
	}
	sum = 0;
	HEADWAY_DOT(sum, net->weights3, values->hidden2, HEADWAY_MLP_HIDDEN2);
	return headway_mlp_scaled(net, 2, (__s64)sum + net->bias3);
}

#endif
