/**
 * The records of a snapshot's file: which tables there are (store/noun.h), and reading them.
 *
 *     struct weir_snapshot_file *file;
 *     WEIR_TRY(weir_snapshot_open(path, arena, &file, err));
 *     WEIR_TRY(weir_snapshot_rows(file, &weir_noun_event, see_event, &context, err));
 *     weir_snapshot_close(file);
 */
#ifndef WEIR_CAPTURE_ROWS_H
#define WEIR_CAPTURE_ROWS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/record.h"
#include "store/noun.h"

/** The nouns of these domains: &weir_noun_event names a table of a snapshot. */
#define WEIR_NOUN(name) extern const struct weir_noun weir_noun_##name;
#define WEIR_TABLE(...)
#include "ion/nouns.def"
#include "store/nouns.def"
#include "track/nouns.def"
#undef WEIR_NOUN
#undef WEIR_TABLE

/** The i-th table of a snapshot, in the file's order; NULL behind the last. */
const struct weir_noun *weir_captured_at(size_t i);

struct weir_snapshot_file;

/** Open a file and read what it is. Lives in the arena until closed.
 *  @return INVALID, CORRUPT, NOT_FOUND, IO. */
weir_status weir_snapshot_open(const char *path, struct weir_arena *arena,
                               struct weir_snapshot_file **out,
                               struct weir_error *err) WEIR_MUST_CHECK;
void weir_snapshot_close(struct weir_snapshot_file *file);

/** manifest.json. Borrowed. */
const json_t *weir_snapshot_manifest(const struct weir_snapshot_file *file);

/** Compare every file with its size and sum. @return CORRUPT with the first that differs. */
weir_status weir_snapshot_verify(const struct weir_snapshot_file *file,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Called for each record, which lives for that call. Another status than WEIR_OK ends the reading. */
typedef weir_status (*weir_snapshot_row_fn)(void *context, const void *record,
                                            struct weir_error *err);

/** Called for each line, which lives for that call; numbers count from 1. *out_is_enough ends the reading
 *  well, another status than WEIR_OK with that error. */
typedef weir_status (*weir_snapshot_line_fn)(void *context, const char *line, size_t len,
                                             int64_t number, bool *out_is_enough,
                                             struct weir_error *err);

/** Read the lines of a table as they stand: about 1 us for each, where a record takes 20. */
weir_status weir_snapshot_lines(const struct weir_snapshot_file *file,
                                const struct weir_noun *table, weir_snapshot_line_fn fn,
                                void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** Read a table, in its order. One that the file does not have has no rows. @return CORRUPT. */
weir_status weir_snapshot_rows(const struct weir_snapshot_file *file, const struct weir_noun *table,
                               weir_snapshot_row_fn fn, void *context,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** What sees the rows of a table. */
struct weir_snapshot_seer {
    const struct weir_noun *table;
    weir_snapshot_row_fn see;
};

/** Read these tables, one after the other. @return CORRUPT. */
weir_status weir_snapshot_see(const struct weir_snapshot_file *file,
                              const struct weir_snapshot_seer *seers, size_t n, void *context,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The span that the manifest says. @return CORRUPT. */
weir_status weir_snapshot_span(const struct weir_snapshot_file *file, int64_t *out_from_ms,
                               int64_t *out_to_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The document of a revision, in the arena. @return NOT_FOUND naming those that the file has. */
weir_status weir_snapshot_revision(const struct weir_snapshot_file *file, int64_t revision,
                                   struct weir_arena *arena, char **out_document,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Where the bytes of a model lie in the file. @return false: it refers to that model only. */
bool weir_snapshot_model(const struct weir_snapshot_file *file, const char *blob, int *out_fd,
                         uint64_t *out_offset, uint64_t *out_bytes);

/** A file of the archive, where it lies. Borrowed. */
struct weir_snapshot_member {
    const char *name; /**< With the folder. */
    int fd;
    uint64_t offset, bytes;
};

/** The i-th file, in the archive's order. @return false: there are fewer. */
bool weir_snapshot_member(const struct weir_snapshot_file *file, size_t i,
                          struct weir_snapshot_member *out);

/** Folder in the archive. */
#define WEIR_SNAPSHOT_FOLDER   "timeline-export/"
#define WEIR_SNAPSHOT_MANIFEST WEIR_SNAPSHOT_FOLDER "manifest.json"
#define WEIR_SNAPSHOT_SUMS     WEIR_SNAPSHOT_FOLDER "SHA256SUMS"
#define WEIR_SNAPSHOT_FORMAT   "weir-snapshot"
#define WEIR_SNAPSHOT_VERSION  1

/** What SHA256SUMS says: a line "SUM  NAME" for each file that the manifest lists and for itself, as
 *  sha256sum -c reads it. In the arena. */
char *weir_snapshot_sums(const json_t *files, const char *manifest_sha256,
                         struct weir_arena *arena);

#endif
