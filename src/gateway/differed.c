#include "gateway/differed.h"

#include "base/arena.h"
#include "gateway/gateway_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void differed_init(struct differed *differed)
{
    *differed = (struct differed){.items = NULL};
    pthread_mutex_init(&differed->lock, NULL);
}

void differed_fini(struct differed *differed)
{
    pthread_mutex_destroy(&differed->lock);
    free(differed->items);
}

/* Of the JSON before binary tensors, or of all. */
static size_t head_bytes(const struct agree_answer *answer)
{
    bool has_tensors = answer->header_bytes >= 0 && (uint64_t)answer->header_bytes <= answer->len;
    return has_tensors ? (size_t)answer->header_bytes : answer->len;
}

/* The beginning, up to a whole character. */
static void copy_answer(const struct agree_answer *answer, char out[DIFFERED_ANSWER_BYTES + 1])
{
    size_t all = head_bytes(answer), len = WEIR_MIN(all, (size_t)DIFFERED_ANSWER_BYTES);
    while (len > 0 && len < all && ((unsigned char)answer->body[len] & 0xC0) == 0x80) {
        len--;
    }
    json_t *text = json_stringn(len > 0 ? answer->body : "", len); /* NULL unless it is UTF-8 */
    if (text == NULL || memchr(answer->body, '\0', len) != NULL) {
        (void)snprintf(out, DIFFERED_ANSWER_BYTES + 1, "(%zu bytes that are no text)", answer->len);
    } else {
        memcpy(out, json_string_value(text), len);
        out[len] = '\0';
    }
    json_decref(text);
}

static void copy_id(const struct agree_answer *answer, char out[DIFFERED_ID_BYTES + 1])
{
    json_t *head = json_loadb(answer->body, head_bytes(answer), 0, NULL);
    const char *id = json_string_value(json_object_get(head, "id"));
    bool fits = id != NULL && strlen(id) <= DIFFERED_ID_BYTES; /* a part of one is another's */
    (void)snprintf(out, DIFFERED_ID_BYTES + 1, "%s", fits ? id : "");
    json_decref(head);
}

void differed_add(struct differed *differed, int64_t time_ms, int64_t live_version,
                  const struct agree_answer *live, const struct agree_answer *answer)
{
    struct differed_kept kept = {.time_ms = time_ms,
                                 .live_version = live_version,
                                 .http_status = answer->http_status,
                                 .live_http_status = live->http_status};
    copy_id(live, kept.id);
    copy_answer(live, kept.live_answer);
    copy_answer(answer, kept.answer);
    pthread_mutex_lock(&differed->lock);
    if (differed->items == NULL) {
        differed->items = weir_xalloc(DIFFERED_MAX * sizeof *differed->items);
    }
    differed->items[differed->n_added++ % DIFFERED_MAX] = kept;
    pthread_mutex_unlock(&differed->lock);
}

void differed_each(struct differed *differed, int64_t version, weir_gateway_differed_fn fn,
                   void *context)
{
    pthread_mutex_lock(&differed->lock);
    int64_t n = WEIR_MIN(differed->n_added, (int64_t)DIFFERED_MAX);
    for (int64_t i = 1; i <= n; i++) {
        const struct differed_kept *kept = &differed->items[(differed->n_added - i) % DIFFERED_MAX];
        const struct weir_gateway_differed one = {.time_ms = kept->time_ms,
                                                  .version = version,
                                                  .live_version = kept->live_version,
                                                  .id = kept->id[0] != '\0' ? kept->id : NULL,
                                                  .answer = kept->answer,
                                                  .live_answer = kept->live_answer,
                                                  .http_status = kept->http_status,
                                                  .live_http_status = kept->live_http_status};
        fn(context, &one);
    }
    pthread_mutex_unlock(&differed->lock);
}

void weir_gateway_differed_each(struct weir_gateway *gateway, const char *deployment,
                                weir_gateway_differed_fn fn, void *context)
{
    struct figures_registry *registry = &gateway->registry;
    pthread_mutex_lock(&registry->lock);
    for (struct figures *figures = registry->head; figures != NULL; figures = figures->next) {
        if (figures->version > 0 && strcmp(figures->deployment, deployment) == 0) {
            differed_each(&figures->differed, figures->version, fn, context);
        }
    }
    pthread_mutex_unlock(&registry->lock);
}
