#include "predict/passage_present.h"

#include "base/clock.h"
#include "base/complaint.h"
#include "base/file.h"
#include "base/log.h"
#include "predict/passage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)

struct person {
    char camera[FRAME_CAMERA_BYTES];
    char *name;
    char key[FRAME_KEY_BYTES];
    int64_t last_ms;
    bool is_of_file; /**< Its camera has had no frame yet. */
};

struct present {
    char *path;
    struct person *persons; /**< PRESENT_MAX. */
    size_t n;
    int64_t gone_ms, saved_ms;
    bool has_lost; /**< A person who is still in the file is gone. */
    struct weir_complaint not_writable;
};

static void forget(struct present *present, size_t i)
{
    free(present->persons[i].name);
    present->persons[i] = present->persons[--present->n];
    present->has_lost = true;
}

static struct person *add(struct present *present, const char *camera, const char *name,
                          const char *key, int64_t last_ms)
{
    size_t i_oldest = 0;
    for (size_t i = 0; i < present->n; i++) {
        i_oldest = present->persons[i].last_ms < present->persons[i_oldest].last_ms ? i : i_oldest;
    }
    if (present->n == PRESENT_MAX) {
        forget(present, i_oldest);
    }
    struct person *person = &present->persons[present->n++];
    *person = (struct person){.name = weir_xstrdup(name), .last_ms = last_ms};
    (void)snprintf(person->camera, sizeof person->camera, "%s", camera);
    (void)snprintf(person->key, sizeof person->key, "%s", key);
    return person;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read_person(struct present *present, struct outbox *outbox, const json_t *json,
                        int64_t oldest_ms)
{
    const char *camera = json_string_value(json_object_get(json, "camera"));
    const char *name = json_string_value(json_object_get(json, "person"));
    const char *key = json_string_value(json_object_get(json, "key"));
    int64_t last_ms = json_integer_value(json_object_get(json, "last_ms"));
    if (camera == NULL || name == NULL || key == NULL || last_ms < oldest_ms ||
        present->n == PRESENT_MAX) {
        return;
    }
    json_t *decision = outbox_find(outbox, key);
    if (decision != NULL) {
        add(present, camera, name, key, last_ms)->is_of_file = true;
    }
    json_decref(decision);
}

static void read_file(struct present *present, struct outbox *outbox)
{
    json_t *json = NULL, *person;
    struct weir_error ignored;
    size_t i;
    if (weir_json_load(present->path, FILE_MAX_BYTES, &json, &ignored) != WEIR_OK) {
        return; /* None yet, or half of one: nobody is known. */
    }
    int64_t saved_ms = json_integer_value(json_object_get(json, "saved_ms"));
    int64_t gone_ms = json_integer_value(json_object_get(json, "gone_ms"));
    int64_t away_ms = weir_time_ms() - saved_ms;
    json_array_foreach(json_object_get(json, "persons"), i, person)
    {
        if (llabs(away_ms) <= PASSAGES_AWAY_MAX_MS) {
            read_person(present, outbox, person, saved_ms - gone_ms);
        }
    }
    json_decref(json);
}

/* Renamed when it is whole; not synced: it is for the death of the process, not of the machine. */
static weir_status write_file(const struct present *present, int64_t time_ms,
                              struct weir_error *err)
{
    char temporary[4200];
    json_t *persons = json_array();
    for (size_t i = 0; i < present->n; i++) {
        const struct person *person = &present->persons[i];
        /* The time of one whose camera is still away does not go on. */
        int64_t last_ms = person->is_of_file ? time_ms : person->last_ms;
        json_array_append_new(persons, json_pack("{s:s,s:s,s:s,s:I}", "camera", person->camera,
                                                 "person", person->name, "key", person->key,
                                                 "last_ms", (json_int_t)last_ms));
    }
    json_t *json = json_pack("{s:I,s:I,s:o}", "saved_ms", (json_int_t)time_ms, "gone_ms",
                             (json_int_t)present->gone_ms, "persons", persons);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    (void)snprintf(temporary, sizeof temporary, "%s.new", present->path);
    weir_status status = text != NULL ? weir_file_write(temporary, text, strlen(text), 0600, err)
                                      : weir_error_set(err, WEIR_ERR_INVALID,
                                                       "%s: a name is no text", present->path);
    free(text);
    WEIR_TRY(status);
    return rename(temporary, present->path) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_IO, "%s: cannot be replaced", present->path);
}

static void save(struct present *present, int64_t time_ms)
{
    struct weir_error err;
    present->saved_ms = time_ms;
    present->has_lost = false;
    if (present->path != NULL && write_file(present, time_ms, &err) != WEIR_OK &&
        weir_complaint_is_due(&present->not_writable, NULL)) {
        weir_log(WEIR_LOG_WARN, "passages_not_saved", WEIR_KV_STR("reason", err.message));
    }
}

/* ---- outside --------------------------------------------------------------------------------- */

struct present *present_open(const char *path, struct outbox *outbox)
{
    struct present *present = weir_xalloc(sizeof *present);
    *present = (struct present){.path = path != NULL ? weir_xstrdup(path) : NULL};
    present->persons = weir_xalloc(PRESENT_MAX * sizeof *present->persons);
    if (path != NULL) {
        read_file(present, outbox);
    }
    return present;
}

void present_close(struct present *present)
{
    if (present == NULL) {
        return;
    }
    while (present->n > 0) {
        forget(present, 0);
    }
    free(present->persons);
    free(present->path);
    free(present);
}

void present_begin(struct present *present, const char *camera, const struct present_frame *frame)
{
    present->gone_ms = frame->gone_ms;
    for (size_t i = 0; i < present->n;) {
        struct person *person = &present->persons[i];
        bool is_its = strcmp(person->camera, camera) == 0;
        if (is_its && person->is_of_file) {
            person->is_of_file = false;
            person->last_ms = frame->time_ms;
        } else if (is_its) {
            person->last_ms += frame->blind_ms;
        }
        if (is_its && person->last_ms + frame->gone_ms < frame->time_ms) {
            forget(present, i);
        } else {
            i++;
        }
    }
}

bool present_see(struct present *present, const char *camera, const char *person, int64_t time_ms)
{
    for (size_t i = 0; i < present->n; i++) {
        struct person *one = &present->persons[i];
        if (strcmp(one->camera, camera) == 0 && strcmp(one->name, person) == 0) {
            one->last_ms = WEIR_MAX(one->last_ms, time_ms);
            return true;
        }
    }
    return false;
}

void present_add(struct present *present, const char *camera, const char *person, const char *key,
                 int64_t time_ms)
{
    (void)add(present, camera, person, key, time_ms);
    save(present, time_ms);
}

void present_save(struct present *present, int64_t time_ms)
{
    if ((present->n > 0 || present->has_lost) && time_ms - present->saved_ms >= PRESENT_SAVE_MS) {
        save(present, time_ms);
    }
}
