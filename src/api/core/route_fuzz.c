/*
 * Requests of any kind through the whole API: routes, roles, bodies, records, transactions. Any
 * sequence must be answered, never with 500, and a wait whose time is up must not wait again.
 *
 * An input is requests, parted by lines of "%": the request line "METHOD target", header lines, an
 * empty line, the body. An admin's token is added where there is no Authorization. The store is a
 * new one after every 500 inputs.
 */
#include "api/request_fixture.h"

#include "base/log.h"

#define INPUTS_PER_STORE 500

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct request_fixture fixture;
static int n_inputs;

static void close_fixture(void)
{
    request_fixture_close(&fixture);
}

static void begin(void)
{
    if (n_inputs == 0) {
        static bool is_registered;
        weir_log_set_level(WEIR_LOG_ERROR);
        request_fixture_open(&fixture);
        if (!is_registered) {
            (void)atexit(close_fixture);
            is_registered = true;
        }
    }
    n_inputs++;
}

static void end(void)
{
    if (n_inputs >= INPUTS_PER_STORE) {
        request_fixture_close(&fixture);
        n_inputs = 0;
    }
}

static void handle(struct http_exchange *x)
{
    request_fixture_handle(&fixture, x);
    if (x->response.kind == ANSWER_WAIT) {
        x->request.is_expired = true;
        request_fixture_handle(&fixture, x);
        if (x->response.kind == ANSWER_WAIT) {
            abort();
        }
    }
    if (x->response.kind == ANSWER_EVENTS) {
        struct weir_buf out;
        weir_buf_init(&out, WEIR_HTTP_EVENTS_MAX_BYTES);
        weir_status status = x->response.next_fn(x->response.stream_state, &out);
        weir_buf_fini(&out);
        if (status != WEIR_OK && status != WEIR_ERR_END) {
            abort();
        }
    } else if (x->response.kind == ANSWER_NONE || x->response.http_status == 500 ||
               x->response.has_bad_header) {
        abort();
    }
}

/* A version of a dataset reads its folder, which may be any of this machine: not here. */
static bool is_allowed(const struct weir_http_request *request)
{
    return request->n_segments != 5 || strcmp(request->segments[2], "datasets") != 0 ||
           strcmp(request->method, "POST") != 0;
}

static void run(const char *text, size_t len)
{
    struct http_exchange *x = request_fixture_make(&fixture, text, len);
    if (x != NULL && is_allowed(&x->request)) {
        handle(x);
    }
    request_fixture_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char divider[] = "\n%\n";
    if (size > 1 << 16) {
        return 0;
    }
    begin();
    while (size > 0) {
        const uint8_t *at = memmem(data, size, divider, strlen(divider));
        size_t n = at == NULL ? size : (size_t)(at - data);
        run((const char *)data, n);
        size_t used = at == NULL ? n : n + strlen(divider);
        data += used;
        size -= used;
    }
    end();
    return 0;
}
