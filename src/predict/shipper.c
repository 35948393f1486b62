#include "predict/shipper.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "client/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_MAX         200
#define IDLE_MS           1000
#define CALL_TIMEOUT_MS   15000
#define PICTURE_MAX_BYTES ((size_t)1 << 20)

/** Pictures of one request, as text; the server takes 4 MiB in all. */
#define PART_PICTURE_BYTES ((size_t)2 << 20)

struct shipper {
    const struct predict_spec *spec;
    struct outbox *outbox;
    struct pictures *pictures;
    struct refused *refused;
    struct outbox_reader *reader;
    json_t *aside; /**< Of the batch in hand, identifiers set aside: object used as set. */
    struct weir_client *client;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_abandoned; /**< Under lock: stop now. */
    bool is_idle;      /**< Under lock: the thread has ended. */
};

/* ---- sending --------------------------------------------------------------------------------- */

/* Put the picture beside what was decided. One that is not there any more is no reason to wait. */
static void add_picture(const struct shipper *shipper, json_t *decision, size_t *out_bytes)
{
    char path[PICTURE_PATH_BYTES];
    char *data;
    size_t len;
    struct weir_arena arena;
    struct weir_error ignored;
    const char *id = json_string_value(json_object_get(decision, "id"));
    *out_bytes = 0;
    if (id == NULL || !json_is_string(json_object_get(decision, "image"))) {
        return;
    }
    weir_arena_init(&arena, 0);
    if (weir_file_read(pictures_path(shipper->pictures, id, path), PICTURE_MAX_BYTES, &arena, &data,
                       &len, &ignored) == WEIR_OK) {
        char *text = weir_arena_alloc(&arena, WEIR_BASE64_TEXT_BYTES(len));
        json_object_set_new(decision, "picture", json_string(weir_base64_encode(data, len, text)));
        *out_bytes = WEIR_BASE64_TEXT_BYTES(len);
    } else {
        json_object_set_new(decision, "image", json_null());
    }
    weir_arena_fini(&arena);
}

static weir_status send_decisions(struct shipper *shipper, json_t *decisions,
                                  struct weir_error *err)
{
    json_t *body = json_pack("{s:s,s:s,s:O}", "ion", shipper->spec->ion, "pipeline",
                             shipper->spec->pipeline, "decisions", decisions);
    weir_status status =
        weir_client_call(shipper->client, "POST", "/api/v1/decisions", body, NULL, err);
    json_decref(body);
    return status;
}

/** The server will say the same of the same request again. */
static bool is_refusal(weir_status status)
{
    return status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT;
}

/* A decision that was refused alone: without its picture, else set aside. */
static weir_status send_refused(struct shipper *shipper, json_t *part, struct weir_error *err)
{
    json_t *decision = json_array_get(part, 0);
    if (json_object_del(decision, "picture") == 0) {
        json_object_set_new(decision, "image", json_null());
        weir_status status = send_decisions(shipper, part, err);
        if (!is_refusal(status)) {
            return status;
        }
    }
    char reason[WEIR_ERROR_MESSAGE_BYTES];
    memcpy(reason, err->message, sizeof reason);
    WEIR_TRY(refused_put(shipper->refused, decision, reason, err));
    const char *id = json_string_value(json_object_get(decision, "id"));
    json_object_set_new(shipper->aside, id != NULL ? id : "", json_true());
    return WEIR_OK;
}

/* In an earlier try of this batch, which was cut short behind it. */
static bool is_aside(const struct shipper *shipper, const json_t *decision)
{
    const char *id = json_string_value(json_object_get(decision, "id"));
    return json_object_get(shipper->aside, id != NULL ? id : "") != NULL;
}

/* A part that is refused is halved until one decision is left: the others go through. */
static weir_status send_part(struct shipper *shipper, json_t *part, struct weir_error *err)
{
    size_t n = json_array_size(part);
    weir_status status = send_decisions(shipper, part, err);
    if (!is_refusal(status)) {
        return status;
    }
    if (n <= 1) {
        return n == 1 ? send_refused(shipper, part, err) : status;
    }
    json_t *halves[2] = {json_array(), json_array()};
    for (size_t i = 0; i < n; i++) {
        json_array_append(halves[i < n / 2 ? 0 : 1], json_array_get(part, i));
    }
    status = send_part(shipper, halves[0], err);
    if (status == WEIR_OK) {
        status = send_part(shipper, halves[1], err);
    }
    json_decref(halves[0]);
    json_decref(halves[1]);
    return status;
}

/* In parts, so that the pictures of each fit into a request. */
static weir_status send_batch(struct shipper *shipper, const json_t *batch, struct weir_error *err)
{
    size_t i, n_bytes, n_part_bytes = 0;
    json_t *decision, *part = json_array();
    weir_status status = WEIR_OK;
    json_array_foreach(batch, i, decision)
    {
        if (is_aside(shipper, decision)) {
            continue;
        }
        add_picture(shipper, decision, &n_bytes);
        if (n_part_bytes > 0 && n_part_bytes + n_bytes > PART_PICTURE_BYTES) {
            status = send_part(shipper, part, err);
            json_array_clear(part);
            n_part_bytes = 0;
        }
        if (status != WEIR_OK) {
            break;
        }
        json_array_append(part, decision);
        n_part_bytes += n_bytes;
    }
    if (status == WEIR_OK && json_array_size(part) > 0) {
        status = send_part(shipper, part, err);
    }
    json_decref(part);
    return status;
}

static void forget_pictures(struct shipper *shipper, const json_t *batch)
{
    size_t i;
    const json_t *decision;
    json_array_foreach(batch, i, decision)
    {
        const char *id = json_string_value(json_object_get(decision, "id"));
        if (id != NULL) {
            pictures_remove(shipper->pictures, id);
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_abandoned(struct shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    bool is_over = shipper->is_abandoned;
    pthread_mutex_unlock(&shipper->lock);
    return is_over;
}

static void pause_for(struct shipper *shipper, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&shipper->lock);
    int rc = 0;
    while (!shipper->is_abandoned && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&shipper->changed, &shipper->lock, &deadline);
    }
    pthread_mutex_unlock(&shipper->lock);
}

/* @return CANCELLED when there is nothing left and the shipper is to stop. */
static weir_status ship_once(struct shipper *shipper, struct weir_error *err)
{
    json_t *batch;
    weir_status status = outbox_reader_next(shipper->reader, BATCH_MAX, IDLE_MS, &batch, err);
    if (status != WEIR_OK) {
        if (outbox_reader_is_due(shipper->reader)) {
            outbox_reader_save(shipper->reader, 0);
        }
        return status == WEIR_ERR_TIMEOUT ? WEIR_OK : status;
    }
    status = json_array_size(batch) > 0 ? send_batch(shipper, batch, err) : WEIR_OK;
    if (status == WEIR_OK) {
        outbox_reader_done(shipper->reader);
        json_object_clear(shipper->aside);
        forget_pictures(shipper, batch);
        if (outbox_reader_is_due(shipper->reader)) {
            outbox_reader_save(shipper->reader, 0);
        }
    } else if (status == WEIR_ERR_CANCELLED) {
        status = WEIR_ERR_UNAVAILABLE; /* Of the call, by abandon; not of the reader. */
    }
    json_decref(batch);
    return status;
}

static void *shipper_main(void *context)
{
    struct shipper *shipper = context;
    struct weir_backoff backoff = {.base_ms = 200, .max_ms = 30000};
    while (!is_abandoned(shipper)) {
        struct weir_error err = {0};
        weir_status status = ship_once(shipper, &err);
        if (status == WEIR_OK) {
            weir_backoff_reset(&backoff);
        } else if (status == WEIR_ERR_CANCELLED) {
            break;
        } else if (!is_abandoned(shipper)) {
            weir_log(WEIR_LOG_WARN, "shipping_waits", WEIR_KV_STR("reason", err.message));
            pause_for(shipper, weir_backoff_next_ms(&backoff));
        }
    }
    outbox_reader_save(shipper->reader, 0);
    pthread_mutex_lock(&shipper->lock);
    shipper->is_idle = true;
    pthread_cond_broadcast(&shipper->changed);
    pthread_mutex_unlock(&shipper->lock);
    return NULL;
}

static void shipper_free(struct shipper *shipper)
{
    outbox_reader_close(shipper->reader);
    json_decref(shipper->aside);
    if (shipper->client != NULL) {
        weir_client_close(shipper->client);
    }
    pthread_cond_destroy(&shipper->changed);
    pthread_mutex_destroy(&shipper->lock);
    free(shipper);
}

weir_status shipper_start(const struct predict_spec *spec, struct outbox *outbox,
                          struct pictures *pictures, struct refused *refused, struct shipper **out,
                          struct weir_error *err)
{
    struct shipper *shipper = weir_xalloc(sizeof *shipper);
    *shipper =
        (struct shipper){.spec = spec, .outbox = outbox, .pictures = pictures, .refused = refused};
    shipper->aside = json_object();
    pthread_mutex_init(&shipper->lock, NULL);
    pthread_cond_init(&shipper->changed, NULL);
    weir_status status = outbox_reader_open(outbox, "server", &shipper->reader, err);
    if (status == WEIR_OK) {
        status = weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                               .token_file = spec->token_file,
                                                               .ca_file = spec->ca_file,
                                                               .timeout_ms = CALL_TIMEOUT_MS},
                                  &shipper->client, err);
    }
    if (status == WEIR_OK) {
        int failed = pthread_create(&shipper->thread, NULL, shipper_main, shipper);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        shipper_free(shipper);
        return status;
    }
    *out = shipper;
    return WEIR_OK;
}

void shipper_stop(struct shipper *shipper, int64_t grace_ms)
{
    if (shipper == NULL) {
        return;
    }
    struct timespec deadline = weir_deadline_after(grace_ms);
    outbox_reader_cancel(shipper->reader);
    pthread_mutex_lock(&shipper->lock);
    int rc = 0;
    while (!shipper->is_idle && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&shipper->changed, &shipper->lock, &deadline);
    }
    shipper->is_abandoned = true;
    pthread_cond_broadcast(&shipper->changed);
    pthread_mutex_unlock(&shipper->lock);
    weir_client_cancel(shipper->client);
    pthread_join(shipper->thread, NULL);
    shipper_free(shipper);
}
