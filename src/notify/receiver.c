#include "notify/receiver.h"

#include "base/file.h"
#include "base/log.h"
#include "http/post.h"
#include "notify/notify.h"

#include <string.h>

#define SECRET_MAX_BYTES ((size_t)4 << 10)

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_receiver_##name,
#include "notify/receivers.def"
#undef WEIR_KIND
};

const struct weir_registry weir_receiver_kinds = {
    .noun = "receiver",
    .plural = "receivers",
    .doc = "Where messages about alerts go. An admin of the platform defines receivers; rules of "
           "alerts name them.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};

weir_status weir_receiver_read(const char *kind_name, const json_t *options, const char *where,
                               struct weir_arena *arena, struct weir_configured *out,
                               struct weir_error *err)
{
    const struct weir_kind *kind;
    WEIR_TRY(weir_registry_find(&weir_receiver_kinds, kind_name, "$.kind", &kind, err));
    WEIR_TRY(weir_kind_read(kind, options, where, arena, out, err));
    const struct weir_receiver_ops *ops = kind->ops;
    return ops->check != NULL ? ops->check(out->options, err) : WEIR_OK;
}

bool weir_receiver_forgets(const char *kind)
{
    const struct weir_kind *found = weir_registry_get(&weir_receiver_kinds, kind);
    const struct weir_receiver_ops *ops = found != NULL ? found->ops : NULL;
    return ops != NULL && ops->forgets;
}

/* ---- for the kinds --------------------------------------------------------------------------- */

void receiver_log(const struct weir_receiver_send *send, const char *text)
{
    weir_log(WEIR_LOG_DEBUG, "receiver_said", WEIR_KV_STR("delivery", send->delivery),
             WEIR_KV_STR("text", text));
}

weir_status receiver_read_secret(const struct weir_receiver_send *send, const char *path,
                                 char **out, struct weir_error *err)
{
    char *text;
    size_t len;
    weir_status status = weir_file_read(path, SECRET_MAX_BYTES, send->arena, &text, &len, err);
    if (status != WEIR_OK) {
        receiver_log(send, err->message);
        return weir_error_set(err, status, "its password_file cannot be read");
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_IO, "the first line of its password_file is empty");
    }
    *out = text;
    return WEIR_OK;
}

/* What it answered is for the log alone: servers answer with the path that was asked for, and a path may
 * be a secret. */
weir_status receiver_post(const struct weir_receiver_send *send, struct weir_post *post,
                          struct weir_error *err)
{
    struct weir_post_answer answer;
    post->now_ms = send->now_ms;
    post->timeout_ms = send->timeout_ms;
    weir_status status = weir_poster_post(send->poster, post, send->arena, &answer, err);
    if (status != WEIR_OK) {
        receiver_log(send, answer.said);
    }
    return status;
}

char *receiver_title(const json_t *message, struct weir_arena *arena)
{
    const json_t *alerts = json_object_get(message, "alerts");
    const json_t *first = json_array_get(alerts, 0);
    const char *event = json_string_value(json_object_get(message, "event"));
    const char *severity = json_string_value(json_object_get(first, "severity"));
    const char *text = json_string_value(json_object_get(first, "message"));
    size_t n = json_array_size(alerts);
    bool is_end = event != NULL && strcmp(event, WEIR_DELIVERY_RESOLVED) == 0;
    char *more = n > 1 ? weir_arena_printf(arena, " (and %zu more)", n - 1) : "";
    return weir_arena_printf(arena, "[%s] %s%s%s",
                             is_end             ? "resolved"
                             : severity != NULL ? severity
                                                : "test",
                             event != NULL && strcmp(event, WEIR_DELIVERY_ESCALATED) == 0
                                 ? "Nobody looks after it: "
                                 : "",
                             text != NULL ? text : "A test of this receiver", more);
}
