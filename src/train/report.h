/**
 * Report: metrics of a run, sent to the server in the background.
 *
 * Training never waits for it. Ticks wait in a queue of TRAIN_REPORT_TICKS_MAX. While the server
 * is down they are kept and retried. When the queue is full every second tick is dropped, so that a
 * long absence leaves a thinner curve without a gap. A refusal that a retry cannot cure (no such
 * run, no such token) is logged once and ends the reporting, not the training.
 */
#ifndef WEIR_TRAIN_REPORT_H
#define WEIR_TRAIN_REPORT_H

#include "base/status.h"
#include "client/client.h"

#include <stddef.h>
#include <stdint.h>

#define TRAIN_REPORT_TICKS_MAX  2048
#define TRAIN_REPORT_VALUES_MAX 10

/** Values of one step. Keys are static texts. */
struct train_tick {
    uint64_t step;
    int64_t time_ms;
    size_t n;
    const char *keys[TRAIN_REPORT_VALUES_MAX];
    double values[TRAIN_REPORT_VALUES_MAX];
};

/** Append a value; asserts that there is room. */
void train_tick_add(struct train_tick *tick, const char *key, double value);

struct train_report;

/** Start the thread. `run` and the client's configuration are copied. @return NOMEM, IO. */
weir_status train_report_start(const struct weir_client_config *client, const char *run,
                               struct train_report **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Queue a tick. Any thread; it never waits for the network. NULL report: nothing. */
void train_report_add(struct train_report *report, const struct train_tick *tick);

/** The number of ticks that wait; and of those that were dropped. */
size_t train_report_n_waiting(struct train_report *report, size_t *out_n_dropped);

/** Send what waits, for at most so long, then stop. NULL is accepted. */
void train_report_stop(struct train_report *report, int64_t timeout_ms);

#endif
