/** What lies in a folder that is carried, what of it the server has, and what is to be brought. */
#ifndef WEIR_AGENT_CARRY_LOOK_H
#define WEIR_AGENT_CARRY_LOOK_H

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define CARRY_FILES_MAX 20000
#define CARRY_DEPTH_MAX 64

/** One regular file; which bytes it has is known by the rest. */
struct carry_file {
    const char *path;
    int64_t bytes, changed_ns, number;
};

struct carry_view {
    struct carry_file *files; /**< By path. */
    size_t n, n_room;
    int64_t folders_changed_ns; /**< When a name last came or went, in any folder. */
};

/** FOLDER.json. */
struct carry_record {
    char version[WEIR_SHA256_TEXT_BYTES]; /**< The server's, when it had these; "": never. */
    struct carry_view view;
};

/** What differs between a record and the folder; borrowed from both. */
struct carry_change {
    struct carry_file *puts; /**< The one that was written first is first. */
    size_t n_puts;
    const char **removed;
    size_t n_removed;
};

/** @param is_atomic  What is being written has a name that ends with ".tmp": it is left out.
 *  @return LIMIT for more than CARRY_FILES_MAX files; IO. */
weir_status carry_look(int folder_fd, bool is_atomic, struct weir_arena *arena,
                       struct carry_view *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Pure. */
void carry_compare(const struct carry_record *record, const struct carry_view *view,
                   struct weir_arena *arena, struct carry_change *out);

/** Later than `since_ns`? A time to come (a clock that was set back) is as old as it can be. */
bool carry_is_young(int64_t time_ns, int64_t since_ns, int64_t now_ns);

/** Leave out what was written after `since_ns`. @return how many that were. */
size_t carry_leave_young(struct carry_change *change, int64_t since_ns, int64_t now_ns);

/** What the record is when the change was brought. Pure. */
void carry_record_apply(struct carry_record *record, const struct carry_change *change,
                        struct weir_arena *arena);

/** A record that is not there, or damaged, is empty: all is brought, or fetched, again. */
void carry_record_read(const char *folder, struct weir_arena *arena, struct carry_record *out);
weir_status carry_record_write(const char *folder, const struct carry_record *record,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
