/* Sends requests at a fixed rate, and says how long answers take from when each request was due.
 *
 *     infer-load URL [--rate R] [--seconds S | --requests N] [--connections C] [--body FILE]
 *                [--header "Name: value"]… [--trace FILE] [-o json]
 *
 * --rate 0 sends as fast as answers come (then --requests is needed). Without --body it asks by GET.
 * Exit status: as of weir; 1: there were failures. */
#include "infer_load/load.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX_BYTES ((size_t)64 << 20)
#define HEADERS_MAX    8192

struct words {
    struct load_options options;
    const char *body_path, *trace_path;
    double seconds;
    bool is_json;
    struct weir_buf headers;
};

static weir_status number(const char *name, const char *text, double most, double *out,
                          struct weir_error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= most)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--%s %s is not a number from 0 to %g", name,
                              text, most);
    }
    *out = value;
    return WEIR_OK;
}

static weir_status read_words(int argc, char **argv, struct words *w, struct weir_error *err)
{
    static const struct option known[] = {
        {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"requests", required_argument, NULL, 'n'},
        {"connections", required_argument, NULL, 'c'},
        {"body", required_argument, NULL, 'b'},
        {"header", required_argument, NULL, 'h'},
        {"trace", required_argument, NULL, 't'},
        {"output", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    double n_requests = 0, n_connections = 16;
    w->options = (struct load_options){.rate_s = 100, .patience_ms = 10000};
    w->seconds = 10;
    for (int c; (c = getopt_long(argc, argv, "o:", known, NULL)) != -1;) {
        weir_status status = WEIR_OK;
        switch (c) {
        case 'r':
            status = number("rate", optarg, 1e6, &w->options.rate_s, err);
            break;
        case 's':
            status = number("seconds", optarg, 1e5, &w->seconds, err);
            break;
        case 'n':
            status = number("requests", optarg, (double)LOAD_REQUESTS_MAX, &n_requests, err);
            break;
        case 'c':
            status = number("connections", optarg, LOAD_CONNECTIONS_MAX, &n_connections, err);
            break;
        case 'b':
            w->body_path = optarg;
            break;
        case 'h':
            status = weir_buf_printf(&w->headers, "%s\r\n", optarg);
            break;
        case 't':
            w->trace_path = optarg;
            break;
        case 'o':
            w->is_json = strcmp(optarg, "json") == 0;
            break;
        default:
            status = weir_error_set(err, WEIR_ERR_INVALID, "see tools/infer_load/main.c");
        }
        WEIR_TRY(status);
    }
    if (optind + 1 != argc) {
        return weir_error_set(err, WEIR_ERR_INVALID, "one URL is needed");
    }
    w->options.url = argv[optind];
    w->options.n_requests = (size_t)(n_requests > 0 ? n_requests : w->options.rate_s * w->seconds);
    w->options.n_connections = (int)n_connections;
    return WEIR_OK;
}

static weir_status write_trace(const char *path, const struct load_result *result,
                               struct weir_error *err)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    load_print_trace(result, file);
    return fclose(file) == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot write %s", path);
}

int main(int argc, char **argv)
{
    struct weir_error err = {0};
    struct words w = {0};
    struct load_result result = {0};
    struct load_summary summary = {0};
    struct weir_arena arena;
    weir_buf_init(&w.headers, HEADERS_MAX);
    weir_arena_init(&arena, 0);
    weir_status status = read_words(argc, argv, &w, &err);
    if (status == WEIR_OK && w.body_path != NULL) {
        char *body;
        status =
            weir_file_read(w.body_path, BODY_MAX_BYTES, &arena, &body, &w.options.body_len, &err);
        w.options.body = status == WEIR_OK ? body : NULL;
    }
    if (status == WEIR_OK) {
        w.options.headers = w.headers.len > 0 ? w.headers.data : "";
        status = load_run(&w.options, &result, &err);
    }
    if (status == WEIR_OK) {
        load_summarise(&result, &summary);
        (w.is_json ? load_print_json : load_print_text)(&result, stdout);
        status = w.trace_path != NULL ? write_trace(w.trace_path, &result, &err) : WEIR_OK;
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "infer-load: %s\n", err.message);
    }
    free(result.records);
    weir_arena_fini(&arena);
    weir_buf_fini(&w.headers);
    return status != WEIR_OK ? weir_status_exit(status) : summary.n_failed > 0;
}
