/**
 * Profile: when each operation of a net ran, on which thread, for how long, and how near that is to
 * what the machine can do.
 *
 *     weir_profile_create(net, n_steps, &profile, err);      // from here on the net keeps records
 *     weir_net_step(net, …);  …
 *     weir_profile_write(profile, "trace.json", peak, err);  // chrome://tracing, Perfetto
 *     weir_profile_destroy(profile);                         // before weir_net_destroy
 *
 * Memory for the records of so many steps is taken at once: recording takes none, and two readings
 * of the clock per operation and slice (some 50 ns). Records beyond it are counted, not kept. The
 * trace has one row per thread of the net, and one for what the caller reports itself
 * (weir_profile_span). FLOP are those of convolutions and linear layers, two per multiply-add; all
 * else counts as none. Bytes are what an operation must read and write once: tensors, weights.
 *
 * A profile belongs to the thread that uses the net.
 */
#ifndef WEIR_NN_PROFILE_H
#define WEIR_NN_PROFILE_H

#include "nn/nn.h"

struct weir_profile;

/** @return INVALID (n_steps below 1, a net that has a profile already), LIMIT, NOMEM. */
weir_status weir_profile_create(struct weir_net *net, int32_t n_steps, struct weir_profile **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Ends the recording. NULL is accepted. */
void weir_profile_destroy(struct weir_profile *profile);

/** Forget what was recorded: for what ran before the steps that count. */
void weir_profile_reset(struct weir_profile *profile);

/**
 * Something the caller did meanwhile: a step, waiting for data or for other ranks, the update.
 * @param name  Static. Times are weir_mono_ns(). Beyond 64 a step, spans are counted, not kept.
 */
void weir_profile_span(struct weir_profile *profile, const char *name, uint64_t begin_ns,
                       uint64_t end_ns);

/** What was recorded, added up. */
struct weir_profile_sum {
    uint64_t n_records, n_lost;
    double busy_s;             /**< Time in operations, over all threads. */
    double flop;               /**< Of them. */
    uint64_t begin_ns, end_ns; /**< First begin and last end of an operation. */
};

void weir_profile_sum(const struct weir_profile *profile, struct weir_profile_sum *out);

/**
 * Write the trace: {"traceEvents": […], "otherData": {…}}, each operation with its FLOP, bytes,
 * milliseconds and share of the peak; otherData adds them up by kind of layer and phase.
 * @param pid         Number of the process in the trace: the rank.
 * @param peak_flops  FLOP a second of one thread at its best (peak.h); 0: no shares are given.
 * @return IO, NOSPACE … naming the file; NOMEM.
 */
weir_status weir_profile_write(const struct weir_profile *profile, const char *path, int pid,
                               double peak_flops, struct weir_error *err) WEIR_MUST_CHECK;

#endif
