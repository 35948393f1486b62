/**
 * Complaint: trouble that goes on is logged once in WEIR_COMPLAINT_MS, and not each time.
 *
 *     static struct weir_complaint full;                    // zeroed: nothing was said yet
 *     if (weir_complaint_is_due(&full, &n_unsaid)) {
 *         weir_log(WEIR_LOG_WARN, "disk_full", WEIR_KV_INT("others_before", n_unsaid));
 *     }
 *     …
 *     if (weir_complaint_end(&full)) { weir_log_event(WEIR_LOG_INFO, "disk_writable_again"); }
 *
 * Any thread.
 */
#ifndef WEIR_BASE_COMPLAINT_H
#define WEIR_BASE_COMPLAINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEIR_COMPLAINT_MS 10000

struct weir_complaint {
    _Atomic int64_t said_ms;  /**< Monotonic; 0: not since the trouble began. */
    _Atomic int64_t n_unsaid; /**< Since it was said last. */
};

/**
 * Is it to be said now? Of several threads that ask at once one is told so.
 * @param out_n_unsaid  How often it was not said since the last time; NULL: nobody asks. Written on true.
 */
bool weir_complaint_is_due(struct weir_complaint *complaint, int64_t *out_n_unsaid);

/** The trouble is over: the next is said at once. @return It had been said. */
bool weir_complaint_end(struct weir_complaint *complaint);

#endif
