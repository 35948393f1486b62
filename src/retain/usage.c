#include "retain/retain_private.h"

#include "base/file.h"
#include "store/space.h"

#include <inttypes.h>
#include <stdio.h>

// clang-format off
static const struct weir_field usage_fields[] = {
    WEIR_FIELD(weir_retain_usage, kind,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "What grows"),
    WEIR_FIELD(weir_retain_usage, what,       TEXT, WEIR_FIELD_READ_ONLY, "", "What it is"),
    WEIR_FIELD(weir_retain_usage, rule,       TEXT, WEIR_FIELD_READ_ONLY, "", "What of it goes, and in which order"),
    WEIR_FIELD(weir_retain_usage, unit,       TEXT, WEIR_FIELD_READ_ONLY, "", "What is counted: rows (they lie in the database) or files"),
    WEIR_FIELD(weir_retain_usage, n,          INT,  WEIR_FIELD_READ_ONLY, "", "How many"),
    WEIR_FIELD(weir_retain_usage, n_needed,   INT,  WEIR_FIELD_READ_ONLY, "", "Of the files, those that stay whatever the limits say"),
    WEIR_FIELD(weir_retain_usage, used_bytes, INT,  WEIR_FIELD_READ_ONLY, "bytes", "Size; of rows reckoned"),
    WEIR_FIELD(weir_retain_usage, limit,      TEXT, WEIR_FIELD_READ_ONLY, "", "Age and size it may reach, as weir store retain takes them"),
    WEIR_FIELD(weir_retain_usage, oldest_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "Of what may go, the oldest"),
    WEIR_FIELD(weir_retain_usage, next,       TEXT, WEIR_FIELD_READ_ONLY, "", "What goes next"),
};
// clang-format on

const struct weir_resource weir_retain_usage_resource =
    WEIR_RESOURCE("usage", "usages", weir_retain_usage, usage_fields);

/** What no rule takes, but a person wants to know the size of. */
static const struct plain {
    const char *kind, *path, *what, *rule;
} plains[] = {
    {"datasets", "datasets", "Files of uploaded datasets", "Yours: they go when you delete them."},
    {"snapshots", "snapshots", "Snapshots of IONs, without models that they only refer to",
     "Yours: they go when you delete them."},
    {"agent", "agent", "Folder of this machine's agent: what its tasks work in",
     "A task's folder goes once its end was reported; agent.log at 16 MiB, with 3 older ones."},
    {"uploads", "uploads", "Uploads in progress",
     "They go with the request, or at the next start."},
};

/* ---- one kind -------------------------------------------------------------------------------- */

static char *next_of(const struct retain_look *look, const struct retain_size *size)
{
    char when[WEIR_TIME_TEXT_BYTES];
    int64_t max_bytes = look->limit.max_bytes;
    if (size->n_going > 0) {
        return weir_arena_printf(look->arena, "%" PRId64 " with the next round", size->n_going);
    }
    if (max_bytes >= 0 && size->bytes > max_bytes) {
        return weir_arena_strdup(look->arena, "nothing: above the bound, but all of it is needed");
    }
    if (size->oldest_ms == 0 || look->limit.keep_ms < 0) {
        return weir_arena_strdup(look->arena, "nothing");
    }
    weir_time_format(size->oldest_ms + look->limit.keep_ms, when);
    return weir_arena_printf(look->arena, "the oldest, on %.10s %.5s UTC", when, when + 11);
}

static weir_status measure_kind(const struct retain_look *look, struct weir_retain_usage *out,
                                struct weir_error *err)
{
    struct retain_size size;
    char limit[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    const struct weir_retain_rule *rule = weir_retain_rule(look->kind);
    WEIR_TRY(retain_kind(look->kind)->ops->measure(look, &size, err));
    weir_retain_limit_text(&look->limit, limit);
    *out = (struct weir_retain_usage){
        .kind = weir_arena_strdup(look->arena, rule->name),
        .what = weir_arena_strdup(look->arena, rule->what),
        .rule = weir_arena_strdup(look->arena, rule->rule),
        .unit = weir_arena_strdup(look->arena, rule->row_bytes > 0 ? "rows" : "files"),
        .n = size.n,
        .n_needed = size.n_needed,
        .used_bytes = size.bytes,
        .limit = weir_arena_strdup(look->arena, limit),
        .oldest_ms = size.oldest_ms,
        .next = next_of(look, &size),
    };
    return WEIR_OK;
}

static struct weir_retain_usage plain_usage(struct weir_arena *arena, const char *kind,
                                            const char *what, const char *rule, int64_t bytes)
{
    return (struct weir_retain_usage){.kind = weir_arena_strdup(arena, kind),
                                      .what = weir_arena_strdup(arena, what),
                                      .rule = weir_arena_strdup(arena, rule),
                                      .unit = weir_arena_strdup(arena, "files"),
                                      .used_bytes = bytes,
                                      .next = weir_arena_strdup(arena, "nothing")};
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct reading {
    struct weir_store_space space;
};

static weir_status read_space(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct reading *reading = context;
    return weir_txn_space(txn, &reading->space, err);
}

static int64_t database_bytes(const char *state_dir, struct weir_arena *arena)
{
    static const char *const files[] = {"weir.db", "weir.db-wal", "weir.db-shm"};
    int64_t bytes = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        bytes += retain_tree_bytes(weir_arena_printf(arena, "%s/%s", state_dir, files[i]));
    }
    return bytes;
}

static void add_plains(struct weir_retainer *retainer, const struct weir_store_space *space,
                       struct weir_arena *arena, struct weir_retain_report *report)
{
    const char *state_dir = retainer->config.state_dir;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plains); i++) {
        int64_t bytes =
            retain_tree_bytes(weir_arena_printf(arena, "%s/%s", state_dir, plains[i].path));
        report->items[report->n++] =
            plain_usage(arena, plains[i].kind, plains[i].what, plains[i].rule, bytes);
    }
    struct weir_retain_usage database =
        plain_usage(arena, "database", "The file that holds all rows, and its log",
                    "Free pages are used again; it shrinks when more than a quarter of it is free.",
                    database_bytes(state_dir, arena));
    database.next =
        weir_arena_printf(arena, "nothing: %" PRId64 " of %" PRId64 " MB are free pages",
                          space->free_bytes / 1000000, space->bytes / 1000000);
    report->items[report->n++] = database;
}

weir_status weir_retainer_usage(struct weir_retainer *retainer, struct weir_arena *arena,
                                struct weir_retain_report *out, struct weir_error *err)
{
    struct reading reading;
    struct retain_look look;
    struct weir_retain_report report = {
        .items = WEIR_ARENA_ARRAY(arena, (size_t)weir_retain_n() + WEIR_ARRAY_LEN(plains) + 1,
                                  struct weir_retain_usage)};
    WEIR_TRY(weir_store_read(retainer->config.store, read_space, &reading, err));
    WEIR_TRY(retain_look_begin(retainer, arena, &look, err));
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        retain_look_at(&look, kind);
        WEIR_TRY(measure_kind(&look, &report.items[report.n++], err));
    }
    add_plains(retainer, &reading.space, arena, &report);
    report.total_bytes = retain_tree_bytes(retainer->config.state_dir);
    WEIR_TRY(weir_disk_space(retainer->config.state_dir, &report.disk_bytes,
                             &report.disk_free_bytes, err));
    pthread_mutex_lock(&retainer->lock);
    report.n_steps = retainer->n_steps;
    report.n_long_steps = retainer->n_long_steps;
    report.longest_step_us = retainer->longest_step_us;
    pthread_mutex_unlock(&retainer->lock);
    *out = report;
    return WEIR_OK;
}
