/*
 * What a stranger writes into a request, as libmicrohttpd hands it on: the target in the first
 * line, then headers. Refused, or segments without a way out of a folder, and texts that stay what
 * they are when they are encoded and read again.
 */
#include "http/server_private.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "Name: value", as far as it is one. */
static void add_header(struct http_exchange *x, char *line)
{
    char *value = strchr(line, ':');
    if (value == NULL) {
        request_add_header(x, line, NULL);
        return;
    }
    *value++ = '\0';
    request_add_header(x, line, value + strspn(value, " \t"));
}

static void check_round_trip(struct weir_arena *arena, const char *text)
{
    const char *encoded = weir_http_percent_encode(arena, text);
    const char *decoded = weir_http_percent_decode(arena, encoded, strlen(encoded), true);
    if (decoded == NULL || strcmp(decoded, text) != 0 || strpbrk(encoded, "/?#&;=+ ") != NULL) {
        abort();
    }
}

static void check(struct http_exchange *x)
{
    for (size_t i = 0; i < x->request.n_segments; i++) {
        const char *segment = x->request.segments[i];
        if (strcmp(segment, "..") == 0 || strcmp(segment, ".") == 0 ||
            !weir_text_is_utf8(segment)) {
            abort();
        }
        check_round_trip(&x->arena, segment);
    }
    for (const struct http_pair *pair = x->query.head; pair != NULL; pair = pair->next) {
        if (weir_http_request_query(&x->request, pair->name) == NULL) {
            abort();
        }
        check_round_trip(&x->arena, pair->value);
    }
    for (const struct http_pair *pair = x->headers.head; pair != NULL; pair = pair->next) {
        if (weir_http_request_header(&x->request, pair->name) == NULL) {
            abort();
        }
    }
    const char *cookie = weir_http_request_cookie(&x->request, "weir_session");
    if (cookie != NULL && strchr(cookie, ';') != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_exchange *x = calloc(1, sizeof *x);
    char *text = strndup((const char *)data, WEIR_MIN(size, (size_t)CONNECTION_MEMORY_BYTES));
    struct weir_error err = {0};
    if (x == NULL || text == NULL) {
        abort();
    }
    weir_arena_init(&x->arena, REQUEST_ARENA_MAX_BYTES);
    x->request.arena = &x->arena;
    char *rest = text;
    x->target = strsep(&rest, "\n");
    while (rest != NULL) {
        add_header(x, strsep(&rest, "\n"));
    }
    if (request_check_framing(x, &err) == WEIR_OK) {
        const char *length = weir_http_request_header(&x->request, "Content-Length");
        if (length != NULL &&
            (strspn(length, "0123456789") != strlen(length) ||
             weir_http_request_header(&x->request, "Transfer-Encoding") != NULL)) {
            abort();
        }
    } else if (err.message[0] == '\0') {
        abort();
    }
    if (request_read_target(x, &err) == WEIR_OK) {
        check(x);
    } else if (err.message[0] == '\0') {
        abort();
    }
    weir_arena_fini(&x->arena);
    free(text);
    free(x);
    return 0;
}
