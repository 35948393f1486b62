/**
 * Decisions: what prediction replicas decided about frames, and what their monitors found.
 *
 * A replica ships decisions until they are acknowledged; one about the same frame again is a duplicate and is
 * not stored. A frame is named by camera and number, or by the key that its source has given it. `seq` counts in order of arrival, so "everything after seq" is
 * complete.
 */
#ifndef WEIR_ION_DECISION_H
#define WEIR_ION_DECISION_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

struct weir_decision {
    char *id; /**< Made by the replica. */
    int64_t seq;
    char *ion;
    char *pipeline;
    char *replica;
    char *camera;
    int64_t frame; /**< Below 0: its source has no number for it. */
    char *key;     /**< What names the frame in its ION; NULL: camera and number do. */
    int64_t time_ms;
    char *verdict; /**< "grant", "deny", "unknown", "error", "label" */
    char *person;
    char *label;  /**< A class, or what a number in a place is; NULL: there is none. */
    char *labels; /**< JSON: the likeliest, [{"label","score"}]; NULL: not asked for. */
    double score;
    double threshold;
    int64_t model_version;
    int64_t gallery_version;
    int64_t list_revision;
    int64_t latency_us;
    int64_t durable_us;
    double brightness;
    char *box, *quality, *passage; /**< JSON, or NULL: where, how good, by which frames. */
    char *counted;                 /**< JSON, or NULL: what has happened in a place. */
    char *error;
    bool is_sandbox; /**< The replica only tried it: it had no effect. */
    char *image;     /**< SHA-256 of the face, or NULL. */
    int64_t pack;    /**< Where the face lies (blob/pack.h); 0: in a blob, or nowhere. */
    int64_t pack_offset;
    int64_t pack_bytes;
    int64_t film_bytes; /**< The last so many of these are a passage's film. */
};

struct weir_health_report {
    char *id;
    int64_t seq;
    char *ion;
    char *pipeline;
    char *replica;
    char *signal;    /**< "score", "brightness" */
    char *statistic; /**< "ks", "chi2" … */
    double value;
    double p_value;
    bool drifted;
    int64_t n_samples;
    int64_t model_version;
    char *detail; /**< JSON or NULL. */
    int64_t time_ms;
};

extern const struct weir_resource weir_decision_resource;
extern const struct weir_resource weir_health_report_resource;

/** A picture that lies in a pack (blob/pack.h). */
struct weir_decision_picture {
    char *id; /**< Of the decision. */
    int64_t pack, offset, bytes;
};

/**
 * The pictures of decisions that were only tried, and whose frames these decide with an effect. Erase
 * them, then store: what is dropped takes no picture with it, and nothing would find it any more.
 */
weir_status weir_decisions_replaced(struct weir_txn *txn, const struct weir_decision *decisions,
                                    size_t n, struct weir_arena *arena,
                                    struct weir_decision_picture **out, size_t *out_n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Store decisions about frames that none is there about yet; `seq` is not read. One that had an effect takes
 * the place of one that was only tried. A keyed frame whose number a numbered one of its camera has, or
 * another keyed one, goes without it: `frame` is below 0.
 *
 * @param erased  Of weir_decisions_replaced; their pictures are gone.
 * @return CONFLICT: such a one came meanwhile, with a picture: begin again.
 */
weir_status weir_decisions_store(struct weir_txn *txn, const struct weir_decision *decisions,
                                 size_t n, const struct weir_decision_picture *erased,
                                 size_t n_erased, size_t *out_stored,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Store a report; seq is not read. The same id again: no effect. */
weir_status weir_health_report_store(struct weir_txn *txn, const struct weir_health_report *report,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Does another replica's last report say that the same signal of the pipeline has drifted? Of the
 *  replicas that report now (ion/replica.h); one that is gone says nothing. */
weir_status weir_health_drifts_elsewhere(struct weir_txn *txn,
                                         const struct weir_health_report *report, bool *out,
                                         struct weir_error *err) WEIR_MUST_CHECK;

/** Which of an ION's decisions are summed up: those after a number, not before a time, before
 * another. */
struct weir_decision_window {
    const char *ion;
    int64_t after_seq; /**< 0 = all; or since_ms is 0. */
    int64_t since_ms;  /**< By their own time; 0 = all. */
    int64_t until_ms;  /**< By their own time; 0 = all. */
    size_t n_buckets;  /**< Equal parts of the time from since_ms to until_ms, which are then both
                          needed, to count in one by one; 0 = none. */
};

#define WEIR_DECISION_BUCKETS_MAX 1000

/** The decisions of one part of a window. */
struct weir_decision_bucket {
    int64_t from_ms;
    int64_t n_grant, n_deny, n_unknown, n_error, n_label;
};

/** At most so many are summed up, the newest. */
#define WEIR_DECISION_SUMMARY_MAX 200000

struct weir_decision_summary {
    int64_t n;
    int64_t n_grant, n_deny, n_unknown, n_error, n_label;
    int64_t latency_p50_us, latency_p90_us, latency_p99_us, latency_max_us; /**< -1 if n is 0. */
    int64_t durable_p99_us;
    int64_t last_seq; /**< 0 if n is 0. */
    /** From when on the counts are complete: since_ms, unless the ION's first decision is younger
     * or there are more than can be summed up: then the time of the oldest counted. 0 if n is 0. */
    int64_t from_ms;
    struct weir_decision_bucket *buckets; /**< In the arena; of the window's n_buckets. */
};

/**
 * Counts and latency quantiles (nearest rank) of a window of decisions.
 * Cost: reads them all, about 1 us each: a view that refreshes gives a window that is not long.
 *
 * @param arena  For the time of the call: 16 bytes for each decision, and the buckets.
 */
weir_status weir_decisions_summary(struct weir_txn *txn, const struct weir_decision_window *window,
                                   struct weir_arena *arena, struct weir_decision_summary *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
