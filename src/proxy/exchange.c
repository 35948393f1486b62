#include "proxy/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct exchange *exchange_create(struct weir_proxy *proxy)
{
    struct exchange *x = weir_xalloc(sizeof *x);
    memset(x, 0, sizeof *x);
    x->proxy = proxy;
    x->n_refs = 1;
    x->answer_bytes = -1;
    pthread_mutex_init(&x->lock, NULL);
    weir_arena_init(&x->arena, EXCHANGE_ARENA_MAX_BYTES);
    return x;
}

struct exchange *exchange_ref(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    x->n_refs++;
    pthread_mutex_unlock(&x->lock);
    return x;
}

void exchange_unref(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool is_last = --x->n_refs == 0;
    pthread_mutex_unlock(&x->lock);
    if (!is_last) {
        return;
    }
    if (x->use != NULL) {
        use_end(x->proxy, x->use);
    }
    weir_http_pipe_unref(x->in);
    weir_http_pipe_unref(x->out);
    pthread_mutex_destroy(&x->lock);
    weir_arena_fini(&x->arena);
    free(x);
}

void exchange_ready(struct exchange *x, weir_status status, const char *message)
{
    pthread_mutex_lock(&x->lock);
    struct weir_http_later *later = x->later;
    x->later = NULL;
    if (!x->is_ready) {
        x->is_ready = true;
        x->status = status;
        (void)snprintf(x->message, sizeof x->message, "%s", message != NULL ? message : "");
    }
    pthread_mutex_unlock(&x->lock);
    if (later != NULL) {
        weir_http_later_resume(later);
    }
}

bool exchange_is_ready(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool is_ready = x->is_ready;
    pthread_mutex_unlock(&x->lock);
    return is_ready;
}

bool exchange_is_gone(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool is_gone = x->later != NULL && weir_http_later_is_gone(x->later);
    pthread_mutex_unlock(&x->lock);
    return is_gone || x->is_abandoned;
}

weir_status exchange_take_head(struct exchange *x, const struct rules_head *head)
{
    bool is_chunked = rules_head_value(head, "Transfer-Encoding") != NULL;
    const char *length = NULL;
    for (size_t i = 0; i < head->n_headers; i++) {
        const struct rules_header *header = &head->headers[i];
        if (strcasecmp(header->name, "Content-Length") != 0) {
            continue;
        }
        bool is_number = header->value[0] != '\0' && strlen(header->value) <= 18 &&
                         strspn(header->value, "0123456789") == strlen(header->value);
        if (!is_number || is_chunked || (length != NULL && strcmp(length, header->value) != 0)) {
            return WEIR_ERR_CORRUPT;
        }
        length = header->value;
    }
    x->head = *head;
    x->answer_bytes = length != NULL ? strtoll(length, NULL, 10) : -1;
    return WEIR_OK;
}

const char *exchange_closed_tunnel(long http_status)
{
    switch (http_status) {
    case 0:
        return "the way to the service is not open: it may still be starting, or have just ended";
    case 200:
        return "the service's program took the request and gave no answer: it may have ended (see "
               "its log)";
    case 409:
        return "the service's port is taken by another program on its machine: start it again, so "
               "that "
               "it gets another one (and leave the port to Weir, as WEIR_PORT or {{port}} says it)";
    case 500:
        return "the service's machine cannot tell whose program listens on its port: \"weir "
               "doctor\" "
               "there says what it lacks";
    default:
        return "nothing listens on the service's port: its program may still be starting, or "
               "listen "
               "elsewhere than WEIR_PORT or {{port}} says (see its log)";
    }
}
