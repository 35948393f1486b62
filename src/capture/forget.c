#include "capture/forget.h"

#include "base/clock.h"
#include "base/json.h"
#include "capture/rows.h"
#include "capture/tar.h"
#include "track/forgotten.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)256 << 10)

/* One snapshot. */
struct forgetting {
    struct weir_snapshot_file *file;
    const char *person;
    int64_t now_ms;
    struct weir_arena *arena;
    json_t *told; /* decisions that feedback says were the person */
    struct weir_snapshot_forgotten result;
    struct tar_writer *tar; /* NULL: only looking */
    json_t *files;
    const struct weir_noun *table; /* being read */
    int64_t n_in_table;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static bool says(const struct forgetting *forgetting, const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));
    return text != NULL && strcmp(text, forgetting->person) == 0;
}

static bool rename_in(const struct forgetting *forgetting, json_t *row, const char *member)
{
    bool is_named = says(forgetting, row, member);
    if (is_named) {
        json_object_set_new(row, member, json_string(WEIR_FORGOTTEN_NAME));
    }
    return is_named;
}

/* The same of all objects in it. */
static bool rename_within(const struct forgetting *forgetting, json_t *value)
{
    bool is_named = json_is_object(value) && rename_in(forgetting, value, "person");
    const char *member;
    json_t *one;
    size_t i;
    json_object_foreach(value, member, one)
    {
        is_named = rename_within(forgetting, one) || is_named;
    }
    json_array_foreach(value, i, one)
    {
        is_named = rename_within(forgetting, one) || is_named;
    }
    return is_named;
}

/* Does a snapshot have its rows, and do they name people? */
static bool names_people(const struct weir_noun *table)
{
    return table->forgets != NULL && table->captured != NULL;
}

/* The picture of a person goes: of a decision that says the person, or whose feedback does. */
static bool drop_picture(const struct forgetting *forgetting, json_t *row, bool is_named)
{
    const struct weir_forgets *forgets = forgetting->table->forgets;
    if (forgets->picture == NULL || !json_is_string(json_object_get(row, forgets->picture))) {
        return false;
    }
    const char *key = json_string_value(json_object_get(row, forgets->key));
    bool goes = is_named || (key != NULL && json_object_get(forgetting->told, key) != NULL);
    if (goes) {
        json_object_set_new(row, forgets->picture, json_null());
    }
    return goes;
}

/* Change a row. *out_goes: it is left out. */
static bool change_row(const struct forgetting *forgetting, json_t *row, bool *out_goes)
{
    const struct weir_forgets *forgets = forgetting->table->forgets;
    *out_goes = forgets->frozen_goes != NULL && says(forgetting, row, forgets->frozen_goes);
    bool is_named =
        forgets->frozen_rename != NULL && rename_in(forgetting, row, forgets->frozen_rename);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(forgets->renamed) && forgets->renamed[i] != NULL; i++) {
        is_named = rename_in(forgetting, row, forgets->renamed[i]) || is_named;
    }
    bool is_changed = drop_picture(forgetting, row, is_named) || is_named || *out_goes;
    return (forgets->frozen_within != NULL &&
            rename_within(forgetting, json_object_get(row, forgets->frozen_within))) ||
           is_changed;
}

static weir_status put_line(struct forgetting *forgetting, const char *line, size_t len,
                            struct weir_error *err)
{
    if (forgetting->tar == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(tar_write(forgetting->tar, line, len, err));
    return tar_write(forgetting->tar, "\n", 1, err);
}

static weir_status see_line(void *context, const char *line, size_t len, int64_t number,
                            bool *out_is_enough, struct weir_error *err)
{
    struct forgetting *forgetting = context;
    WEIR_AUTO(weir_json_auto_free) json_t *row = NULL;
    bool goes;
    (void)number;
    (void)out_is_enough;
    WEIR_TRY(weir_json_parse(line, len, forgetting->table->captured->name, &row, err));
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    bool is_changed = change_row(forgetting, row, &goes);
    forgetting->result.n_changed += is_changed;
    forgetting->n_in_table += !goes;
    const char *text = is_changed ? weir_json_text(row, &arena) : line;
    return goes ? WEIR_OK : put_line(forgetting, text, is_changed ? strlen(text) : len, err);
}

/* Feedback that says the person. */
static weir_status see_told(void *context, const char *line, size_t len, int64_t number,
                            bool *out_is_enough, struct weir_error *err)
{
    struct forgetting *forgetting = context;
    json_t *row;
    (void)number;
    (void)out_is_enough;
    WEIR_TRY(weir_json_parse(line, len, "feedback", &row, err));
    const char *decision = json_string_value(json_object_get(row, "decision"));
    if (decision != NULL && says(forgetting, row, "truth")) {
        json_object_set_new(forgetting->told, decision, json_true());
    }
    json_decref(row);
    return WEIR_OK;
}

static weir_status look(struct forgetting *forgetting, struct weir_error *err)
{
    const struct weir_noun *table;
    WEIR_TRY(weir_snapshot_lines(forgetting->file, &weir_noun_feedback, see_told, forgetting, err));
    for (size_t i = 0; (table = weir_captured_at(i)) != NULL; i++) {
        if (names_people(table)) {
            forgetting->table = table;
            WEIR_TRY(weir_snapshot_lines(forgetting->file, table, see_line, forgetting, err));
        }
    }
    return WEIR_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static weir_status copy_bytes(struct forgetting *forgetting,
                              const struct weir_snapshot_member *member, struct weir_error *err)
{
    char *chunk = weir_xalloc(COPY_BYTES);
    weir_status status = WEIR_OK;
    for (uint64_t at = 0; at < member->bytes && status == WEIR_OK;) {
        ssize_t n = pread(member->fd, chunk, (size_t)WEIR_MIN(member->bytes - at, COPY_BYTES),
                          (off_t)(member->offset + at));
        status = n > 0 ? tar_write(forgetting->tar, chunk, (size_t)n, err)
                       : weir_error_set_errno(err, n < 0 ? errno : EIO, "reading the snapshot");
        at += n > 0 ? (uint64_t)n : 0;
    }
    free(chunk);
    return status;
}

/* The table whose rows are changed and that lies in this file, or NULL. */
static const struct weir_noun *table_of(struct weir_arena *arena, const char *name)
{
    const struct weir_noun *table;
    for (size_t i = 0; (table = weir_captured_at(i)) != NULL; i++) {
        const char *file =
            weir_arena_printf(arena, WEIR_SNAPSHOT_FOLDER "rows/%s.jsonl", table->captured->name);
        if (names_people(table) && strcmp(file, name) == 0) {
            return table;
        }
    }
    return NULL;
}

static weir_status put_member(struct forgetting *forgetting, json_t *rows,
                              const struct weir_snapshot_member *member, struct weir_error *err)
{
    struct tar_made made;
    const struct weir_noun *table = table_of(forgetting->arena, member->name);
    WEIR_TRY(tar_begin(forgetting->tar, member->name, err));
    if (table != NULL) {
        forgetting->table = table;
        forgetting->n_in_table = 0;
        WEIR_TRY(
            weir_snapshot_lines(forgetting->file, forgetting->table, see_line, forgetting, err));
        json_object_set_new(rows, table->captured->name,
                            json_integer((json_int_t)forgetting->n_in_table));
    } else {
        WEIR_TRY(copy_bytes(forgetting, member, err));
    }
    WEIR_TRY(tar_end(forgetting->tar, &made, err));
    json_array_append_new(forgetting->files,
                          json_pack("{s:s,s:I,s:s}", "name",
                                    member->name + sizeof WEIR_SNAPSHOT_FOLDER - 1, "bytes",
                                    (json_int_t)made.bytes, "sha256", made.sha256));
    return WEIR_OK;
}

static weir_status put_text(struct forgetting *forgetting, const char *name, const char *text,
                            struct tar_made *out, struct weir_error *err)
{
    WEIR_TRY(tar_begin(forgetting->tar, name, err));
    WEIR_TRY(tar_write(forgetting->tar, text, strlen(text), err));
    return tar_end(forgetting->tar, out, err);
}

/* The manifest as it was, with what has changed and that it has. */
static weir_status put_manifest(struct forgetting *forgetting, json_t *manifest,
                                struct weir_error *err)
{
    char when[WEIR_TIME_TEXT_BYTES];
    struct tar_made made, ignored;
    json_t *marks = json_object_get(manifest, "forgotten");
    weir_time_format(forgetting->now_ms, when);
    if (!json_is_array(marks)) {
        marks = json_array();
        json_object_set_new(manifest, "forgotten", marks);
    }
    json_array_append_new(marks, json_pack("{s:s,s:I}", "time", when, "rows",
                                           (json_int_t)forgetting->result.n_changed));
    json_object_set(manifest, "files", forgetting->files);
    char *text = json_dumps(manifest, JSON_INDENT(1));
    weir_status status = put_text(forgetting, WEIR_SNAPSHOT_MANIFEST, text, &made, err);
    free(text);
    WEIR_TRY(status);
    return put_text(forgetting, WEIR_SNAPSHOT_SUMS,
                    weir_snapshot_sums(forgetting->files, made.sha256, forgetting->arena), &ignored,
                    err);
}

static weir_status put_all(struct forgetting *forgetting, json_t *manifest, struct weir_error *err)
{
    struct weir_snapshot_member member;
    json_t *rows = json_object_get(manifest, "rows");
    for (size_t i = 0; weir_snapshot_member(forgetting->file, i, &member); i++) {
        if (strcmp(member.name, WEIR_SNAPSHOT_MANIFEST) != 0 &&
            strcmp(member.name, WEIR_SNAPSHOT_SUMS) != 0) {
            WEIR_TRY(put_member(forgetting, rows, &member, err));
        }
    }
    return put_manifest(forgetting, manifest, err);
}

/* A file that was changed by somebody else would get right sums: look first. */
static weir_status rewrite(struct forgetting *forgetting, const char *path, struct weir_error *err)
{
    struct tar_writer tar;
    WEIR_TRY(weir_snapshot_verify(forgetting->file, err));
    WEIR_TRY(tar_create(&tar, weir_arena_printf(forgetting->arena, "%s.tmp", path),
                        WEIR_SNAPSHOT_MAX_BYTES, forgetting->now_ms, err));
    json_t *manifest = json_deep_copy(weir_snapshot_manifest(forgetting->file));
    forgetting->files = json_array();
    forgetting->tar = &tar;
    forgetting->result.n_changed = 0;
    weir_status status = put_all(forgetting, manifest, err);
    status = status == WEIR_OK ? tar_finish(&tar, path, err) : status;
    tar_abandon(&tar);
    json_decref(forgetting->files);
    json_decref(manifest);
    return status;
}

static weir_status measure(struct forgetting *forgetting, const char *path, struct weir_error *err)
{
    struct stat facts;
    const char *name;
    json_t *n;
    struct weir_snapshot_file *file;
    WEIR_TRY(weir_snapshot_open(path, forgetting->arena, &file, err));
    const json_t *marks = json_object_get(weir_snapshot_manifest(file), "forgotten");
    const char *last = json_string_value(
        json_object_get(json_array_get(marks, json_array_size(marks) - 1), "time"));
    if (last == NULL || weir_time_parse(last, &forgetting->result.changed_ms) != WEIR_OK) {
        forgetting->result.changed_ms = 0;
    }
    json_object_foreach(json_object_get(weir_snapshot_manifest(file), "rows"), name, n)
    {
        forgetting->result.n_rows += json_integer_value(n);
    }
    weir_snapshot_close(file);
    if (stat(path, &facts) != 0) {
        return weir_error_set_errno(err, errno, "the snapshot's file");
    }
    forgetting->result.bytes = (int64_t)facts.st_size;
    return WEIR_OK;
}

static weir_status run(struct forgetting *forgetting, const char *path, struct weir_error *err)
{
    WEIR_TRY(weir_snapshot_open(path, forgetting->arena, &forgetting->file, err));
    forgetting->told = json_object();
    weir_status status = look(forgetting, err);
    if (status == WEIR_OK && forgetting->result.n_changed > 0) {
        status = rewrite(forgetting, path, err);
    }
    json_decref(forgetting->told);
    weir_snapshot_close(forgetting->file);
    return status == WEIR_OK ? measure(forgetting, path, err) : status;
}

weir_status weir_snapshot_forget(const struct weir_capture *capture, const char *id,
                                 const char *person, int64_t now_ms,
                                 struct weir_snapshot_forgotten *out, struct weir_error *err)
{
    struct weir_arena arena;
    struct stat facts;
    weir_arena_init(&arena, 0);
    struct forgetting forgetting = {.person = person, .now_ms = now_ms, .arena = &arena};
    const char *path = weir_snapshot_path(capture, id, &arena);
    weir_status status =
        stat(path, &facts) != 0 && errno == ENOENT
            ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "snapshot %s has no file", id)
            : run(&forgetting, path, err);
    weir_arena_fini(&arena);
    if (status == WEIR_OK) {
        *out = forgetting.result;
    }
    return status;
}
