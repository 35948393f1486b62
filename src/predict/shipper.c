#include "predict/shipper.h"

#include "base/base64.h"
#include "base/file.h"
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#define CALL_TIMEOUT_MS   15000
#define PICTURE_MAX_BYTES ((size_t)1 << 20)

/** Pictures of one request, as text; the server takes 4 MiB in all. */
#define PART_PICTURE_BYTES ((size_t)2 << 20)

struct sink {
    const struct predict_spec *spec;
    struct pictures *pictures;
    struct weir_client *client;
};

/* How many of a file's bytes are a film, behind the picture. */
static size_t film_of(const json_t *decision, size_t len)
{
    const json_t *frame, *frames = json_object_get(json_object_get(decision, "passage"), "frames");
    size_t i, n = 0;
    json_array_foreach(frames, i, frame)
    {
        json_int_t bytes = json_integer_value(json_object_get(frame, "bytes"));
        n += bytes > 0 ? WEIR_MIN((size_t)bytes, len) : 0;
    }
    return n < len ? n : 0;
}

/* Bytes as text, as a member. Returns the text's length. */
static size_t add_bytes(json_t *decision, const char *member, const char *data, size_t len,
                        struct weir_arena *arena)
{
    char *text = weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(len));
    json_object_set_new(decision, member, json_string(weir_base64_encode(data, len, text)));
    return WEIR_BASE64_TEXT_BYTES(len);
}

/* Put the pictures beside what was decided. What is not there any more is no reason to wait. */
static void add_picture(const struct sink *sink, json_t *decision, size_t *out_bytes)
{
    char path[PICTURE_PATH_BYTES];
    char *data;
    size_t len;
    struct weir_arena arena;
    struct weir_error ignored;
    const char *id = json_string_value(json_object_get(decision, "id"));
    const char *there = json_string_value(json_object_get(decision, "picture"));
    const char *film_there = json_string_value(json_object_get(decision, "film"));
    *out_bytes = there != NULL ? strlen(there) : 0;
    *out_bytes += film_there != NULL ? strlen(film_there) : 0;
    if (there != NULL || id == NULL || !json_is_string(json_object_get(decision, "image"))) {
        return;
    }
    weir_arena_init(&arena, 0);
    if (weir_file_read(pictures_path(sink->pictures, id, path), PICTURE_MAX_BYTES, &arena, &data,
                       &len, &ignored) == WEIR_OK) {
        size_t n_film = film_of(decision, len), n_picture = len - n_film;
        *out_bytes = add_bytes(decision, "picture", data, n_picture, &arena);
        if (n_film > 0) {
            *out_bytes += add_bytes(decision, "film", data + n_picture, n_film, &arena);
        }
    } else {
        json_object_set_new(decision, "image", json_null());
    }
    weir_arena_fini(&arena);
}

static weir_status send_decisions(struct sink *sink, json_t *decisions, struct weir_error *err)
{
    json_t *body = json_pack("{s:s,s:s,s:O}", "ion", sink->spec->ion, "pipeline",
                             sink->spec->pipeline, "decisions", decisions);
    weir_status status =
        weir_client_call(sink->client, "POST", "/api/v1/decisions", body, NULL, err);
    json_decref(body);
    return status;
}

static bool is_refusal(weir_status status)
{
    return status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT;
}

/* The first decision always goes; others as long as there is room for their pictures. */
static json_t *with_pictures(const struct sink *sink, const json_t *decisions)
{
    size_t i, n_bytes, n_all = 0;
    json_t *decision, *part = json_array();
    json_array_foreach(decisions, i, decision)
    {
        add_picture(sink, decision, &n_bytes);
        if (n_all > 0 && n_all + n_bytes > PART_PICTURE_BYTES) {
            break;
        }
        json_array_append(part, decision);
        n_all += n_bytes;
    }
    return part;
}

static void forget_pictures(struct sink *sink, const json_t *decisions)
{
    size_t i;
    const json_t *decision;
    json_array_foreach(decisions, i, decision)
    {
        const char *id = json_string_value(json_object_get(decision, "id"));
        if (id != NULL) {
            pictures_remove(sink->pictures, id);
        }
    }
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *part = with_pictures(sink, decisions);
    outcome->n = json_array_size(part);
    weir_status status = send_decisions(sink, part, err);
    json_t *first = json_array_get(part, 0);
    if (is_refusal(status) && outcome->n == 1 && json_object_del(first, "picture") == 0) {
        json_object_del(first, "film");
        json_object_set_new(first, "image", json_null());
        status = send_decisions(sink, part, err);
    }
    if (status == WEIR_OK || (is_refusal(status) && outcome->n == 1)) {
        forget_pictures(sink, part);
    }
    return status;
}

static weir_status open_client(const struct sink_config *config, struct sink **out,
                               struct weir_error *err)
{
    struct weir_client *client;
    WEIR_TRY(weir_host_client_open(&config->spec->host, CALL_TIMEOUT_MS, &client, err));
    *out = weir_xalloc(sizeof **out);
    **out = (struct sink){config->spec, config->pictures, client};
    return WEIR_OK;
}

static void cancel(struct sink *sink)
{
    weir_client_cancel(sink->client);
}

static void close_client(struct sink *sink)
{
    weir_client_close(sink->client);
    free(sink);
}

static const struct sink_ops ops = {.open = open_client,
                                    .deliver = deliver,
                                    .cancel = cancel,
                                    .close = close_client,
                                    .waits_event = "shipping_waits"};

weir_status shipper_start(const struct predict_spec *spec, struct outbox *outbox,
                          struct pictures *pictures, struct refused *refused, struct consumer **out,
                          struct weir_error *err)
{
    const struct consumer_config config = {.name = "server",
                                           .ops = &ops,
                                           .spec = spec,
                                           .outbox = outbox,
                                           .pictures = pictures,
                                           .refused = refused};
    return consumer_start(&config, out, err);
}
