/**
 * Feed: the newest changes, for live streams. A bounded ring in memory; a reader that falls behind
 * is told so ("resync") and reads the records again through the API. A change too large for the
 * feed is a "resync" too. Any thread.
 */
#ifndef WEIR_API_FEED_H
#define WEIR_API_FEED_H

#include "base/buf.h"
#include "base/status.h"

#include <stdint.h>

#define FEED_MAX_ENTRIES     2048
#define FEED_MAX_ENTRY_BYTES ((size_t)16 << 10) /* 32 MiB in all */

enum feed_topic {
    FEED_RUNS,
    FEED_JOBS,
    FEED_ALERTS,
    FEED_IONS,
    FEED_MODELS,
    FEED_NODES,
    FEED_DEPLOYMENTS,
    FEED_SWEEPS,
    FEED_N_TOPICS,
};

/** "runs" …; -1 for any other text. */
int feed_topic_from_text(const char *text);
const char *feed_topic_text(enum feed_topic topic);

struct feed;

struct feed *feed_create(void);
void feed_destroy(struct feed *feed);

/** Append; the oldest entry makes room. `data` is copied, if it has at most FEED_MAX_ENTRY_BYTES;
 *  else the topic's readers get "resync" in its place. */
void feed_publish(struct feed *feed, enum feed_topic topic, const char *data);

/** Where a new reader starts: behind the newest entry. */
uint64_t feed_position(struct feed *feed);

/**
 * Append the entries of the topics in `mask` (1 << topic) from *position on as server-sent events,
 * at most `max_events`, and move *position behind them. A lost entry gives one "resync" event.
 */
weir_status feed_read(struct feed *feed, uint64_t *position, unsigned mask, int max_events,
                      struct weir_buf *out);

/** The same for who may not see all records: one "resync" event stands for all entries. */
weir_status feed_read_hidden(struct feed *feed, uint64_t *position, unsigned mask,
                             struct weir_buf *out);

#endif
