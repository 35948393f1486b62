/**
 * Snapshots: what an ION was and did over a span of time, frozen.
 *
 * A snapshot is one file, STATE/snapshots/ID.tar, and a row that names it. The file holds the ION's
 * document in all its revisions, its pipelines, candidates, policy decisions, events, alerts, health
 * reports, decisions and the truth about them, business figures, runs and their metrics, and the model
 * versions that mattered, as
 *
 *     timeline-export/manifest.json            what it is of; every other file's size and SHA-256
 *     timeline-export/SHA256SUMS               the sums once more, with the manifest's own
 *     timeline-export/rows/TABLE.jsonl         the records, one JSON object a line (capture/rows.h)
 *     timeline-export/ION-events-ID.csv …      the same for people and other programs
 *     timeline-export/ion-details.txt
 *     timeline-export/models/SHA256            the models themselves, if they were asked for
 *
 * Secrets of documents are masked in it, and rows of the audit are left out. Rows older than the span come with it where what holds in
 * the span follows from them: revisions, candidates, policy decisions.
 *
 * It is written beside its name and renamed when it is whole, and only then gets its row: killed at
 * any moment, there is a whole snapshot or a file that weir_snapshots_sweep removes. Rules of
 * retention do not touch it, and the blobs of its models are kept as long as it is. What is exported
 * is this file, and what is imported becomes it once every sum and every line of it was looked at;
 * nothing is unpacked (capture/tar.h).
 */
#ifndef WEIR_CAPTURE_SNAPSHOT_H
#define WEIR_CAPTURE_SNAPSHOT_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

struct weir_blobs;

struct weir_snapshot {
    char *name;
    char *id; /**< UUID; of the file. */
    char *ion;
    char *project; /**< Whose it is here. */
    int64_t from_ms, to_ms;
    int64_t revision; /**< Of the document, at the end of the span or later. */
    int64_t n_rows;
    bool has_models;  /**< The models themselves are in it. */
    bool is_imported; /**< It came as a file. */
    int64_t bytes;    /**< Of the file. */
    char *models;     /**< JSON: [{"model", "version", "id", "blob", "bytes", "is_whole"}]. A
                       deleted one is not whole. */
    char *created_by;
    int64_t created_ms;
    int64_t changed_ms; /**< When forgetting a person changed its rows; 0: never. */
};

extern const struct weir_resource weir_snapshot_resource;

/** Records in one snapshot; more: take a shorter span. */
#define WEIR_SNAPSHOT_ROWS_MAX 500000

/** What a snapshot's file may take. */
#define WEIR_SNAPSHOT_MAX_BYTES ((uint64_t)16 << 30)

/** Model versions that one may refer to. */
#define WEIR_SNAPSHOT_MODELS_MAX 2000

/** Where snapshots lie. Borrowed. */
struct weir_capture {
    const char *state_dir;
    struct weir_blobs *blobs;
};

struct weir_snapshot_wanted {
    const char *name; /**< Has a name's form. */
    const char *ion;
    int64_t from_ms; /**< 0: since the ION was made. */
    int64_t to_ms;   /**< 0: now. */
    bool with_models;
    const char *actor;
    int64_t now_ms;
};

/** A snapshot whose file is being written. In an arena. */
struct weir_snapshot_taking;

/**
 * Write the records of a snapshot into a file beside its name. Inside a read transaction: they are of
 * one moment. `capture` and `wanted` stay until weir_snapshot_seal, which must follow.
 * @return NOT_FOUND (no such ION), INVALID (the span, the name), LIMIT (too many rows), NOSPACE, IO:
 *         then no file is left, and nothing is to be sealed.
 * Cost: about 20 us for each record.
 */
weir_status weir_snapshot_take(struct weir_txn *txn, const struct weir_capture *capture,
                               const struct weir_snapshot_wanted *wanted, struct weir_arena *arena,
                               struct weir_snapshot_taking **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The rest: the models, if they were asked for, but for those that were deleted, and the manifest; then
 * the file gets its name. Outside of any transaction: the models' bytes take long. Insert *out
 * afterwards; on error there, weir_snapshot_discard. The taking is over in any case.
 * @return NOT_FOUND (a model's file is gone), LIMIT, NOSPACE, IO: then no file is left.
 */
weir_status weir_snapshot_seal(struct weir_snapshot_taking *taking, struct weir_snapshot *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make the file of a snapshot from one that was exported: look at all of it, keep its models, and
 * move it to its place. Insert *out afterwards, as above.
 *
 * @param path  Is gone on success.
 * @param name  NULL: the one it has.
 * @return INVALID or CORRUPT with what is wrong with it, LIMIT, NOSPACE, IO: then `path` is as it was.
 */
weir_status weir_snapshot_import(const struct weir_capture *capture, const char *path,
                                 const char *name, const char *project, const char *actor,
                                 int64_t now_ms, struct weir_arena *arena,
                                 struct weir_snapshot *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Its file, in the arena. */
char *weir_snapshot_path(const struct weir_capture *capture, const char *id,
                         struct weir_arena *arena);

/** Remove the file of a snapshot that has no row (any more). */
void weir_snapshot_discard(const struct weir_capture *capture, const char *id);

/** Remove files that no row names: once, when the server starts. */
weir_status weir_snapshots_sweep(struct weir_store *store, const struct weir_capture *capture,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
