#include "serve/protocol/protocol_private.h"

#include "serve/protocol/tensor_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const struct protocol protocol_oip, protocol_triton, protocol_tensorflow, protocol_kserve,
    protocol_mlflow;

/* The first that matches answers: /v2/models/stats is no model's name. */
const struct protocol *const protocols[] = {&protocol_triton, &protocol_oip, &protocol_tensorflow,
                                            &protocol_kserve, &protocol_mlflow};
const size_t n_protocols = WEIR_ARRAY_LEN(protocols);

/* ---- routes ---------------------------------------------------------------------------------- */

static weir_status take_version(const char *text, size_t len, struct protocol_request *request,
                                struct weir_error *err)
{
    int64_t version = 0;
    bool is_number = len > 0 && len <= 18;
    for (size_t i = 0; i < len && is_number; i++) {
        is_number = text[i] >= '0' && text[i] <= '9';
        version = version * 10 + (text[i] - '0');
    }
    if (!is_number || version == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "version '%.*s': expected a number from 1 on",
                              (int)WEIR_MIN(len, 60), text);
    }
    request->version = version;
    return WEIR_OK;
}

/* Does a segment match a part of a pattern? "{model}:predict" takes what ends with ":predict". */
static bool match_segment(const char *part, size_t part_len, const char *segment,
                          size_t *out_value_len)
{
    size_t len = strlen(segment);
    const char *close = part[0] == '{' ? memchr(part, '}', part_len) : NULL;
    if (close == NULL) {
        *out_value_len = 0;
        return len == part_len && memcmp(part, segment, len) == 0;
    }
    size_t tail_len = part_len - (size_t)(close + 1 - part);
    *out_value_len = len - WEIR_MIN(tail_len, len);
    return len > tail_len && memcmp(segment + len - tail_len, close + 1, tail_len) == 0;
}

/* Goes along pattern and segments together; with `request`, takes what the pattern names. */
static bool match(const char *pattern, char *const *segments, size_t n_segments,
                  struct protocol_request *request, struct weir_error *err, weir_status *out_status)
{
    size_t i = 0;
    for (const char *part = pattern + 1; *part != '\0'; i++) {
        size_t part_len = strcspn(part, "/"), value_len;
        if (part[0] == '*') {
            return true;
        }
        if (i == n_segments || !match_segment(part, part_len, segments[i], &value_len)) {
            return false;
        }
        if (request != NULL && strncmp(part, "{model}", 7) == 0) {
            request->model = weir_arena_memdup(request->arena, segments[i], value_len);
        } else if (request != NULL && strncmp(part, "{version}", 9) == 0) {
            *out_status = take_version(segments[i], value_len, request, err);
        }
        part += part_len + (part[part_len] == '/');
    }
    return i == n_segments;
}

/* Whose errors fit an address that is none of them: by its first part. */
static const struct protocol *nearest(char *const *segments, size_t n_segments)
{
    if (n_segments > 0 && strcmp(segments[0], "v1") == 0) {
        return &protocol_tensorflow;
    }
    return n_segments > 0 &&
                   (strcmp(segments[0], "models") == 0 || strcmp(segments[0], "invocations") == 0)
               ? &protocol_mlflow
               : &protocol_oip;
}

weir_status protocol_find(const char *method, char *const *segments, size_t n_segments,
                          struct protocol_request *request, const struct protocol **out_protocol,
                          const struct protocol_route **out_route, struct weir_error *err)
{
    const char *other_method = NULL;
    *out_protocol = nearest(segments, n_segments);
    for (size_t i = 0; i < n_protocols; i++) {
        for (size_t k = 0; k < protocols[i]->n_routes; k++) {
            const struct protocol_route *route = &protocols[i]->routes[k];
            weir_status status = WEIR_OK;
            if (!match(route->pattern, segments, n_segments, NULL, err, &status)) {
                continue;
            }
            if (strcmp(route->method, method) != 0) {
                other_method = route->method;
                continue;
            }
            (void)match(route->pattern, segments, n_segments, request, err, &status);
            *out_protocol = protocols[i];
            *out_route = route;
            return status;
        }
    }
    if (other_method != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.10s is not for this address: use %s",
                              method, other_method);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such address here");
}

/* ---- answers --------------------------------------------------------------------------------- */

void protocol_answer_init(struct protocol_answer *answer)
{
    *answer = (struct protocol_answer){
        .http_status = 200, .content_type = "application/json", .json_bytes = -1};
    weir_buf_init(&answer->body, PROTOCOL_ANSWER_MAX_BYTES);
}

weir_status protocol_answer_question(const struct protocol_route *route,
                                     const struct protocol_request *request,
                                     const struct protocol_state *state,
                                     struct protocol_answer *answer, struct weir_error *err)
{
    if (route->lacks != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s", route->lacks);
    }
    if (route->says == NULL) {
        return route->answer(request, state, answer, err);
    }
    (void)weir_buf_puts(&answer->body, route->says);
    return WEIR_OK;
}

void protocol_answer_fini(struct protocol_answer *answer)
{
    weir_buf_fini(&answer->body);
}

void protocol_answer_error(const struct protocol *protocol, const struct weir_error *error,
                           struct protocol_answer *answer)
{
    protocol_answer_fini(answer);
    protocol_answer_init(answer);
    answer->http_status = weir_status_http(error->status);
    protocol->error(error, answer);
}

void protocol_error_text(const struct weir_error *error, struct protocol_answer *answer)
{
    (void)weir_buf_puts(&answer->body, "{");
    protocol_put_member(&answer->body, "error", error->message);
    (void)weir_buf_puts(&answer->body, "}");
}

void protocol_put_member(struct weir_buf *out, const char *key, const char *text)
{
    (void)weir_buf_printf(out, "\"%s\":", key);
    json_put_text(out, text, strlen(text));
}

void protocol_put_shape(struct weir_buf *out, int32_t rank, const int64_t *dims)
{
    (void)weir_buf_puts(out, "[");
    for (int32_t i = 0; i < rank; i++) {
        (void)weir_buf_printf(out, i > 0 ? ",%" PRId64 : "%" PRId64, dims[i]);
    }
    (void)weir_buf_puts(out, "]");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static weir_status no_model(const struct protocol_request *request, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no model %.100s here",
                          request->model != NULL ? request->model : "loaded");
}

weir_status protocol_rows(const struct protocol_request *request,
                          const struct protocol_state *state, const struct version_row **out,
                          size_t *out_n, struct weir_error *err)
{
    const struct versions_view *view = state->view;
    struct version_row *rows = WEIR_ARENA_ARRAY(request->arena, view->n + 1, struct version_row);
    size_t n = 0;
    bool has_model = false;
    for (size_t i = 0; i < view->n; i++) {
        if (request->model == NULL || strcmp(view->rows[i].model, request->model) == 0) {
            has_model = true;
            if (request->version == 0 || view->rows[i].number == request->version) {
                rows[n++] = view->rows[i];
            }
        }
    }
    if (n == 0 && has_model) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "model %.100s has no version %" PRId64 " here", request->model,
                              request->version);
    }
    if (n == 0) {
        return no_model(request, err);
    }
    *out = rows;
    *out_n = n;
    return WEIR_OK;
}

weir_status protocol_ready_row(const struct protocol_request *request,
                               const struct protocol_state *state, const struct version_row **out,
                               struct weir_error *err)
{
    const struct version_row *rows, *found = NULL;
    size_t n;
    WEIR_TRY(protocol_rows(request, state, &rows, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (rows[i].version != NULL || found == NULL) {
            found = &rows[i];
        }
    }
    if (found->version == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "version %" PRId64 " of %.100s is %s%s%.250s", found->number,
                              found->model, version_state_text(found->state),
                              found->reason[0] != '\0' ? ": " : "", found->reason);
    }
    *out = found;
    return WEIR_OK;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

bool protocol_is_picture(const struct protocol_request *request)
{
    const char *type = request->content_type;
    return type != NULL && strncasecmp(type, "image/", 6) == 0;
}

weir_status protocol_check_json(const struct protocol_request *request, struct weir_error *err)
{
    if (request->body_len == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the request has no body");
    }
    if (request->json_bytes > (int64_t)request->body_len) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Inference-Header-Content-Length is %" PRId64
                              ", and the body has %zu bytes",
                              request->json_bytes, request->body_len);
    }
    return WEIR_OK;
}
