/**
 * Profile: when each operation of a net ran, on which thread and for how long, and how near that is
 * to the machine's peak.
 *
 *     weir_profile_create(net, n_steps, &profile, err);      // from here on the net keeps records
 *     weir_net_step(net, …);  …
 *     weir_profile_write(profile, "trace.json", 0, peak, err); // chrome://tracing, Perfetto
 *     weir_profile_destroy(profile);                         // before weir_net_destroy
 *
 * create takes the memory for the records of n_steps steps. Recording allocates nothing. It costs
 * two readings of the clock per operation and slice (some 50 ns). Records beyond n_steps are
 * counted, not kept.
 *
 * The trace has one row per thread of the net, and one for what the caller reports
 * (weir_profile_span). FLOP are those of convolutions and linears, two per multiply-add; other
 * layers count as none. Bytes are what an operation must read and write once: tensors and weights.
 *
 * Threads: the thread that uses the net calls these functions.
 */
#ifndef WEIR_NN_PROFILE_H
#define WEIR_NN_PROFILE_H

#include "nn/nn.h"

struct weir_profile;

/** Begins recording. The caller owns *out. @return INVALID (n_steps below 1, or the net has a
 *  profile), LIMIT, NOMEM. */
weir_status weir_profile_create(struct weir_net *net, int32_t n_steps, struct weir_profile **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Ends recording and frees the profile. NULL is accepted. */
void weir_profile_destroy(struct weir_profile *profile);

/**
 * Records something the caller did: a step, waiting for data or for other ranks, the update.
 *
 * @param name  Static.
 * @param begin_ns  weir_mono_ns(), as is end_ns. Spans beyond 64 a step are counted, not kept.
 */
void weir_profile_span(struct weir_profile *profile, const char *name, uint64_t begin_ns,
                       uint64_t end_ns);

/** Sums over all records. */
struct weir_profile_sum {
    uint64_t n_records, n_lost;
    double busy_s;             /**< Time in operations, summed over threads. */
    double flop;               /**< FLOP of these operations. */
    uint64_t begin_ns, end_ns; /**< First begin and last end of an operation. */
};

void weir_profile_sum(const struct weir_profile *profile, struct weir_profile_sum *out);

/**
 * Writes the trace: {"traceEvents": […], "otherData": {…}}. Each operation has its FLOP, bytes,
 * milliseconds and share of the peak. otherData has sums by kind of layer and phase.
 *
 * @param pid  Number of the process in the trace: the rank.
 * @param peak_flops  Peak of one thread in FLOP per second (peak.h); 0: no shares are written.
 * @return IO, NOSPACE … naming the file; NOMEM.
 */
weir_status weir_profile_write(const struct weir_profile *profile, const char *path, int pid,
                               double peak_flops, struct weir_error *err) WEIR_MUST_CHECK;

#endif
