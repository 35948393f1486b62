/* Any records in a snapshot's file, as an import would let in: lines "@TABLE" begin a table, the others
 * are its records. Refused with a sentence, or shown and replayed, twice to the same bytes. */
#include "capture/replay.h"
#include "capture/state.h"
#include "capture/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FROM_MS ((int64_t)1700000000000)

static const char manifest[] =
    "{\"format\":\"weir-snapshot\",\"version\":1,\"name\":\"a\",\"ion\":\"x\",\"models\":[],"
    "\"from\":\"2023-11-14T22:13:20Z\",\"to\":\"2023-11-15T22:13:20Z\",\"files\":[]}";
static const char document[] =
    "{\"name\":\"x\",\"pipelines\":[{\"name\":\"t\",\"type\":\"training\",\"dataset\":\"d\","
    "\"model\":\"lenet\"},{\"name\":\"p\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"}}],"
    "\"links\":[{\"from\":\"t\",\"to\":\"p\",\"policy\":[{\"kind\":\"rate-limit\","
    "\"min_interval_s\":60},\"manual\"]}]}";

static void must(weir_status status)
{
    if (status != WEIR_OK) {
        abort();
    }
}

static void put(struct tar_writer *writer, const char *name, const char *bytes, size_t len)
{
    struct tar_made made;
    struct weir_error err;
    must(tar_begin(writer, name, &err));
    must(tar_write(writer, bytes, len, &err));
    must(tar_end(writer, &made, &err));
}

/* The tables of the input, each once. */
static void put_tables(struct tar_writer *writer, const char *text, size_t size)
{
    char name[128];
    const char *end = text + size;
    const struct weir_noun *table;
    for (size_t i = 0; (table = weir_captured_at(i)) != NULL; i++) {
        const char *wanted = table->captured->name;
        size_t len = strlen(wanted);
        for (const char *at = text; at < end;) {
            const char *line_end = memchr(at, '\n', (size_t)(end - at));
            if (line_end == NULL) {
                break;
            }
            if (*at == '@' && (size_t)(line_end - at) == len + 1 &&
                memcmp(at + 1, wanted, len) == 0) {
                const char *from = line_end + 1, *to = from;
                while (to < end && *to != '@') {
                    const char *next = memchr(to, '\n', (size_t)(end - to));
                    to = next != NULL ? next + 1 : end;
                }
                (void)snprintf(name, sizeof name, WEIR_SNAPSHOT_FOLDER "rows/%s.jsonl", wanted);
                put(writer, name, from, (size_t)(to - from));
                break;
            }
            at = line_end + 1;
        }
    }
}

static char *replayed(const struct weir_snapshot_file *file, const struct weir_ion_doc *doc,
                      struct weir_arena *arena)
{
    json_t *out;
    struct weir_error err = {0};
    const struct weir_replay_rules rules = {.doc = doc};
    if (weir_snapshot_replay(file, &rules, arena, &out, &err) != WEIR_OK) {
        return err.message[0] != '\0' ? weir_arena_strdup(arena, err.message) : NULL;
    }
    char *text = weir_json_text(out, arena);
    json_decref(out);
    return text;
}

static void look(const struct weir_snapshot_file *file, struct weir_arena *arena)
{
    struct weir_error err = {0};
    struct weir_ion_doc doc;
    json_t *json = json_loads(document, 0, NULL), *state;
    must(weir_ion_doc_parse(json, arena, &doc, &err));
    json_decref(json);
    for (int i = 0; i < 2; i++) {
        if (weir_snapshot_state(file, FROM_MS + i * (int64_t)80000000, arena, &state, &err) ==
            WEIR_OK) {
            (void)weir_json_text(state, arena);
            json_decref(state);
        } else if (err.message[0] == '\0') {
            abort();
        }
        const struct weir_ion_doc *rules = i == 0 ? NULL : &doc;
        char *once = replayed(file, rules, arena), *again = replayed(file, rules, arena);
        if (once == NULL || again == NULL || strcmp(once, again) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err;
    struct tar_writer writer;
    struct weir_snapshot_file *file;
    char half[128], whole[128];
    (void)snprintf(half, sizeof half, "/tmp/weir-file-fuzz-%ld.tmp", (long)getpid());
    (void)snprintf(whole, sizeof whole, "/tmp/weir-file-fuzz-%ld.tar", (long)getpid());
    weir_arena_init(&arena, 0);
    must(tar_create(&writer, half, (uint64_t)64 << 20, FROM_MS, &err));
    put_tables(&writer, (const char *)data, size);
    put(&writer, WEIR_SNAPSHOT_MANIFEST, manifest, strlen(manifest));
    must(tar_finish(&writer, whole, &err));
    tar_abandon(&writer);
    must(weir_snapshot_open(whole, &arena, &file, &err));
    look(file, &arena);
    weir_snapshot_close(file);
    (void)unlink(whole);
    weir_arena_fini(&arena);
    return 0;
}
