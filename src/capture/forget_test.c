/* A person is forgotten in a snapshot: every file of the archive is compared with what plain replacement of text makes of it. */
#include "capture/forget.h"

#include "base/sha256.h"
#include "capture/capture_fixture.h"
#include "capture/tar.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW_MS  (BEGIN_MS + 200 * HOUR_MS)
#define FOLDER  "timeline-export/"
#define FILES_N 64

static weir_status exec_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void sql(const char *text)
{
    fixture_write(&fixture, exec_in, (void *)text);
}

/* Decision 2 says ada, 4 says nobody though feedback says ada, 6 says bob. */
static void add_people(void)
{
    sql("UPDATE decisions SET person = 'ada', image = 'aa11' WHERE id IN ('d2', 'd3')");
    sql("UPDATE decisions SET image = 'bb22' WHERE id = 'd4'");
    sql("UPDATE decisions SET person = 'bob', image = 'cc33' WHERE id = 'd6'");
    sql("UPDATE decisions SET passage = '{\"nearest\":[{\"person\":\"bob\",\"score\":0.5},"
        "{\"person\":\"ada\",\"score\":0.25}],\"frames\":[{\"person\":\"ada\"},{\"person\":null}]}'"
        " WHERE id IN ('d2', 'd6')");
    sql("INSERT INTO ion_members (id, ion, person, list, actor, time_ms) VALUES"
        " ('x/ada', 'x', 'ada', 'allow', 'ann', 1), ('x/bob', 'x', 'bob', 'deny', 'ann', 1)");
    sql("INSERT INTO feedback (decision, seq, ion, pipeline, camera, model_version, decided, truth,"
        " is_right, decided_ms, time_ms) SELECT id, seq, ion, pipeline, camera, 1,"
        " coalesce(person, 'unknown'), CASE id WHEN 'd3' THEN 'bob' WHEN 'd6' THEN 'bob' ELSE 'ada'"
        " END, coalesce(person, '') = 'bob', time_ms, 1 FROM decisions WHERE id IN ('d2', 'd3', "
        "'d4', 'd6')");
}

/* ---- files of an archive --------------------------------------------------------------------- */

struct archive {
    struct tar_member *members;
    char *texts[FILES_N];
    size_t n;
};

static struct archive read_archive(const struct weir_snapshot *snapshot)
{
    struct archive archive = {.n = 0};
    struct stat facts;
    int fd = open(weir_snapshot_path(&capture, snapshot->id, &fixture.arena), O_RDONLY | O_CLOEXEC);
    ck_assert(fd >= 0 && fstat(fd, &facts) == 0);
    ck_assert_int_eq(
        tar_list(fd, (uint64_t)facts.st_size, &fixture.arena, &archive.members, &archive.n, NULL),
        WEIR_OK);
    ck_assert_uint_le(archive.n, FILES_N);
    for (size_t i = 0; i < archive.n; i++) {
        size_t len = (size_t)archive.members[i].bytes;
        archive.texts[i] = weir_arena_alloc(&fixture.arena, len + 1);
        ck_assert_int_eq(pread(fd, archive.texts[i], len, (off_t)archive.members[i].offset),
                         (ssize_t)len);
        archive.texts[i][len] = '\0';
    }
    (void)close(fd);
    return archive;
}

static const char *text_of(const struct archive *archive, const char *name)
{
    for (size_t i = 0; i < archive->n; i++) {
        if (strcmp(archive->members[i].name + sizeof FOLDER - 1, name) == 0) {
            return archive->texts[i];
        }
    }
    ck_abort_msg("no %s", name);
}

/* Every `from` becomes `to`. */
static char *replaced(const char *text, const char *from, const char *to)
{
    char *out = weir_arena_strdup(&fixture.arena, "");
    for (const char *at; (at = strstr(text, from)) != NULL; text = at + strlen(from)) {
        out = weir_arena_printf(&fixture.arena, "%s%.*s%s", out, (int)(at - text), text, to);
    }
    return weir_arena_printf(&fixture.arena, "%s%s", out, text);
}

/* Without the lines that have a word. */
static char *without(const char *text, const char *word)
{
    char *out = weir_arena_strdup(&fixture.arena, "");
    while (*text != '\0') {
        const char *end = strchr(text, '\n') + 1;
        char *line = weir_arena_printf(&fixture.arena, "%.*s", (int)(end - text), text);
        out =
            strstr(line, word) != NULL ? out : weir_arena_printf(&fixture.arena, "%s%s", out, line);
        text = end;
    }
    return out;
}

static char *expected(const char *name, const char *text)
{
    if (strcmp(name, "rows/members.jsonl") == 0) {
        return without(text, "\"person\":\"ada\"");
    }
    if (strcmp(name, "rows/decisions.jsonl") == 0) {
        text = replaced(text, "\"image\":\"aa11\"", "\"image\":null");
        text = replaced(text, "\"image\":\"bb22\"", "\"image\":null");
        return replaced(text, "\"person\":\"ada\"", "\"person\":\"(forgotten)\"");
    }
    if (strcmp(name, "rows/feedback.jsonl") == 0) {
        text = replaced(text, "\"decided\":\"ada\"", "\"decided\":\"(forgotten)\"");
        return replaced(text, "\"truth\":\"ada\"", "\"truth\":\"(forgotten)\"");
    }
    return (char *)text;
}

static struct weir_snapshot_forgotten forget(const struct weir_snapshot *snapshot,
                                             const char *person)
{
    struct weir_snapshot_forgotten result;
    weir_status status =
        weir_snapshot_forget(&capture, snapshot->id, person, NOW_MS, &result, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return result;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(the_rows_of_the_person_change_and_all_else_stays_byte_for_byte)
{
    capture_history();
    add_people();
    struct weir_snapshot made = capture_make("monday", true);
    struct archive before = read_archive(&made);
    struct weir_snapshot_forgotten result = forget(&made, "ada");
    struct archive after = read_archive(&made);
    ck_assert_uint_eq(after.n, before.n);
    for (size_t i = 0; i < before.n; i++) {
        const char *name = before.members[i].name + sizeof FOLDER - 1;
        if (strcmp(name, "manifest.json") != 0 && strcmp(name, "SHA256SUMS") != 0) {
            ck_assert_msg(strcmp(text_of(&after, name), expected(name, before.texts[i])) == 0,
                          "%s\n%s\n%s", name, text_of(&after, name),
                          expected(name, before.texts[i]));
        }
        ck_assert_msg(strstr(text_of(&after, name), "\"ada\"") == NULL, "%s", name);
    }
    ck_assert_int_eq(result.n_changed, 8); /* an entry of a list, 4 decisions, 3 of feedback */
    ck_assert_int_eq(result.n_rows, made.n_rows - 1);
    ck_assert_int_eq(result.changed_ms, NOW_MS);
    ck_assert_ptr_nonnull(strstr(text_of(&before, "rows/decisions.jsonl"), "\"ada\""));
}

END_TEST

START_TEST(the_sums_are_right_and_the_manifest_says_that_it_was_changed)
{
    capture_history();
    add_people();
    struct weir_snapshot made = capture_make("monday", true), copy;
    struct weir_snapshot_forgotten result = forget(&made, "ada");
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(weir_snapshot_verify(file, &fixture.err), WEIR_OK);
    const json_t *marks = json_object_get(weir_snapshot_manifest(file), "forgotten");
    ck_assert_uint_eq(json_array_size(marks), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(marks, 0), "rows")), 8);
    weir_snapshot_close(file);
    char *path = weir_snapshot_path(&capture, made.id, &fixture.arena);
    struct stat facts;
    ck_assert(stat(path, &facts) == 0 && facts.st_size == result.bytes);
    ck_assert_int_eq(weir_snapshot_import(&capture, path, "copy", "default", "carl", NOW_MS,
                                          &fixture.arena, &copy, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(copy.n_rows, result.n_rows);
}

END_TEST

START_TEST(a_second_time_and_somebody_who_is_not_in_it_change_nothing)
{
    capture_history();
    add_people();
    struct weir_snapshot made = capture_make("monday", false);
    ck_assert_int_eq(forget(&made, "carl").n_changed, 0);
    ck_assert_int_eq(forget(&made, "carl").changed_ms, 0);
    ck_assert_int_gt(forget(&made, "ada").n_changed, 0);
    char *path = weir_snapshot_path(&capture, made.id, &fixture.arena), *first, *second;
    size_t len, again;
    ck_assert_int_eq(weir_file_read(path, 1 << 24, &fixture.arena, &first, &len, NULL), WEIR_OK);
    struct weir_snapshot_forgotten result = forget(&made, "ada");
    ck_assert_int_eq(result.n_changed, 0);
    ck_assert_int_eq(result.changed_ms, NOW_MS);
    ck_assert_int_eq(weir_file_read(path, 1 << 24, &fixture.arena, &second, &again, NULL), WEIR_OK);
    ck_assert(len == again && memcmp(first, second, len) == 0);
    ck_assert_int_gt(forget(&made, "bob").n_changed, 0);
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_uint_eq(json_array_size(json_object_get(weir_snapshot_manifest(file), "forgotten")),
                      2);
    weir_snapshot_close(file);
}

END_TEST

START_TEST(a_damaged_file_gets_no_right_sums)
{
    struct weir_snapshot_forgotten result;
    capture_history();
    add_people();
    struct weir_snapshot made = capture_make("monday", false);
    char *path = weir_snapshot_path(&capture, made.id, &fixture.arena), *bytes;
    size_t len;
    ck_assert_int_eq(weir_file_read(path, 1 << 24, &fixture.arena, &bytes, &len, NULL), WEIR_OK);
    char *row = strstr(memmem(bytes, len, "rows/decisions.jsonl", 20) + 500, "grant");
    row[0] = 'G';
    ck_assert_int_eq(weir_file_write(path, bytes, len, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_snapshot_forget(&capture, made.id, "ada", NOW_MS, &result, &fixture.err),
                     WEIR_ERR_CORRUPT);
    ck_assert(!weir_path_exists(weir_arena_printf(&fixture.arena, "%s.tmp", path)));
    weir_snapshot_discard(&capture, made.id);
    ck_assert_int_eq(weir_snapshot_forget(&capture, made.id, "ada", NOW_MS, &result, &fixture.err),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

WEIR_TEST_MAIN_WITH("forget", capture_set_up, capture_tear_down,
                    the_rows_of_the_person_change_and_all_else_stays_byte_for_byte,
                    the_sums_are_right_and_the_manifest_says_that_it_was_changed,
                    a_second_time_and_somebody_who_is_not_in_it_change_nothing,
                    a_damaged_file_gets_no_right_sums)
