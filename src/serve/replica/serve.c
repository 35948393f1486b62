#include "serve/serve.h"

#include "host/program.h"
#include "serve/executor_flags.h"
#include "serve/replica/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_DEADLINE_MS 10000
#define GIVEN_MAX        64

struct options {
    struct weir_host_options host; /* First: program.h. */
    struct executor_flags executor;
    char *models, *labels, *preprocess, *inputs, *golden, *listen;
    int64_t batch_max, max_delay_us, queue_max, threads, memory_max_mb, timeout_ms, body_max_mb;
};

// clang-format off
static const struct weir_option options[] = {
    WEIR_HOST_OPTIONS(options, "Be a replica of a deployment (spec.json)"),
    WEIR_OPT(options, models, "model", 'm', LIST, NULL, 0, 0, "NAME[@VERSION]=FILE", "Serve this model file without a server; may be repeated"),
    WEIR_OPT(options, labels, "labels", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "Labels of the classes, one a line"),
    WEIR_OPT(options, preprocess, "preprocess", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "How a picture becomes the input (YAML)"),
    WEIR_OPT(options, inputs, "inputs", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "Shapes of inputs in place of those of the file: {x: \"N,3,H,W\"}"),
    WEIR_OPT(options, golden, "golden", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "Request and answer that the model is checked with"),
    WEIR_OPT(options, listen, "listen", 'l', TEXT, "127.0.0.1:8000", 0, 0, "HOST:PORT", "Address to answer at, with --model; port 0: any"),
    WEIR_OPT(options, batch_max, "batch-max", 0, INT, "16", 1, 65536, "N", "Rows that are computed together at most, with --model"),
    WEIR_OPT(options, max_delay_us, "max-delay-us", 0, INT, "0", 0, 60000000, "N", "How long a batch waits to become full, with --model"),
    WEIR_OPT(options, queue_max, "queue-max", 0, INT, "256", 1, 65536, "N", "Requests that wait at most, with --model"),
    WEIR_OPT(options, threads, "threads", 0, INT, "0", 0, 4096, "N", "Computing threads of each model, with --model; 0: one per CPU"),
    WEIR_OPT(options, memory_max_mb, "memory-max-mb", 0, INT, "0", 0, 1048576, "N", "Memory of all models together, with --model; 0: no limit"),
    WEIR_OPT(options, timeout_ms, "timeout-ms", 0, INT, "30000", 1, 3600000, "N", "Time of a request that says none"),
    WEIR_OPT(options, body_max_mb, "body-max-mb", 0, INT, "64", 1, 1024, "N", "Longest body of a request"),
    EXECUTOR_FLAGS(options),
    WEIR_HOST_OPTION_HELP(options),
};

// clang-format on

/* ---- models on the command line -------------------------------------------------------------- */

/* NAME[@VERSION]=FILE */
static weir_status read_model(const char *word, struct weir_arena *arena, struct serve_given *out,
                              struct weir_error *err)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word || equals[1] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--model %.200s: expected NAME=FILE or NAME@VERSION=FILE", word);
    }
    char *name = weir_arena_memdup(arena, word, (size_t)(equals - word));
    char *at = strchr(name, '@'), *end = NULL;
    *out = (struct serve_given){
        .model = name, .number = 1, .path = weir_arena_strdup(arena, equals + 1)};
    if (at != NULL) {
        *at = '\0';
        out->number = strtoll(at + 1, &end, 10);
    }
    if (name[0] == '\0' || (at != NULL && (*end != '\0' || out->number < 1))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--model %.200s: expected a name and a version from 1 on", word);
    }
    return WEIR_OK;
}

/* The next line of a LIST. */
static const char *next_line(const char **at, struct weir_arena *arena)
{
    if (*at == NULL || **at == '\0') {
        return NULL;
    }
    size_t len = strcspn(*at, "\n");
    const char *line = weir_arena_memdup(arena, *at, len);
    *at += len + ((*at)[len] == '\n');
    return line;
}

static weir_status read_models(const struct options *chosen, struct weir_arena *arena,
                               struct serve_given *out, size_t *out_n, struct weir_error *err)
{
    const char *at = chosen->models, *line;
    while ((line = next_line(&at, arena)) != NULL) {
        if (*out_n == GIVEN_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "--model: at most %d", GIVEN_MAX);
        }
        WEIR_TRY(read_model(line, arena, &out[(*out_n)++], err));
    }
    return WEIR_OK;
}

/* [NAME=]FILE of each line, put into the member at `offset` of the models that it is for. */
static weir_status read_extras(const char *flag, const char *lines, size_t offset,
                               struct weir_arena *arena, struct serve_given *given, size_t n_given,
                               struct weir_error *err)
{
    const char *at = lines, *line;
    while ((line = next_line(&at, arena)) != NULL) {
        bool is_used = false;
        for (size_t i = 0; i < n_given; i++) {
            size_t len = strlen(given[i].model);
            bool is_named = strncmp(line, given[i].model, len) == 0 && line[len] == '=';
            if (is_named || n_given == 1) {
                *(const char **)(void *)((char *)&given[i] + offset) =
                    is_named ? line + len + 1 : line;
                is_used = true;
            }
        }
        if (!is_used) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s %.200s: expected NAME=FILE, NAME as in --model", flag, line);
        }
    }
    return WEIR_OK;
}

static weir_status read_given(const struct options *chosen, struct weir_arena *arena,
                              struct serve_given *out, size_t *out_n, struct weir_error *err)
{
    WEIR_TRY(read_models(chosen, arena, out, out_n, err));
    WEIR_TRY(read_extras("--labels", chosen->labels, offsetof(struct serve_given, labels), arena,
                         out, *out_n, err));
    WEIR_TRY(read_extras("--preprocess", chosen->preprocess,
                         offsetof(struct serve_given, preprocess), arena, out, *out_n, err));
    WEIR_TRY(read_extras("--inputs", chosen->inputs, offsetof(struct serve_given, inputs), arena,
                         out, *out_n, err));
    return read_extras("--golden", chosen->golden, offsetof(struct serve_given, golden), arena, out,
                       *out_n, err);
}

/* ---- running --------------------------------------------------------------------------------- */

/** What runs, and what it was told. */
struct served {
    struct serve_spec spec;
    struct serve_given given[GIVEN_MAX];
    struct serve_options options;
    struct serve_replica *replica;
};

static weir_status load_spec(const struct options *chosen, struct weir_arena *arena,
                             struct served *out, struct weir_error *err)
{
    WEIR_TRY(serve_spec_load(chosen->host.spec, arena, &out->spec, err));
    weir_host_options_apply(&chosen->host, &out->spec.host);
    out->options.spec = &out->spec;
    return WEIR_OK;
}

/* The replica ends as it does when it is told to: requests under way are answered first. */
static void on_broken(void *context, const char *reason)
{
    weir_host_run_break(context, reason);
}

static weir_status start(struct weir_host_run *run, const void *given, struct weir_arena *arena,
                         void **out, struct weir_error *err)
{
    const struct options *chosen = given;
    struct served *served = WEIR_ARENA_NEW(arena, struct served);
    struct serve_options *serve = &served->options;
    *serve = (struct serve_options){.given = served->given,
                                    .listen = chosen->listen,
                                    .rules = {.batch_max = chosen->batch_max,
                                              .delay_ns = (uint64_t)chosen->max_delay_us * 1000,
                                              .queue_max = (size_t)chosen->queue_max},
                                    .executor = {.n_threads = (int32_t)chosen->threads},
                                    .memory_max_bytes = (size_t)chosen->memory_max_mb << 20,
                                    .on_broken = on_broken,
                                    .context = run,
                                    .timeout_ms = chosen->timeout_ms,
                                    .body_max_bytes = (uint64_t)chosen->body_max_mb << 20};
    WEIR_TRY(chosen->host.spec != NULL
                 ? load_spec(chosen, arena, served, err)
                 : read_given(chosen, arena, served->given, &serve->n_given, err));
    WEIR_TRY(executor_flags_read(&chosen->executor, &serve->executor, err));
    WEIR_TRY(serve_replica_start(serve, &served->replica, err));
    (void)printf("serving at port %d\n", serve_replica_port(served->replica));
    (void)fflush(stdout);
    *out = served->replica;
    return WEIR_OK;
}

static void stop(void *replica)
{
    serve_replica_stop(replica, STOP_DEADLINE_MS);
}

static bool fits(const void *given)
{
    const struct options *chosen = given;
    return (chosen->host.spec == NULL) != (chosen->models == NULL);
}

int weir_serve_main(int argc, char **argv)
{
    static const struct weir_host_program program = {.name = "serve",
                                                     .usage = "--spec FILE | --model NAME=FILE …",
                                                     .options = options,
                                                     .n_options = WEIR_ARRAY_LEN(options),
                                                     .options_bytes = sizeof(struct options),
                                                     .fits = fits,
                                                     .start = start,
                                                     .stop = stop,
                                                     .stopping_event = "serve_stopping",
                                                     .stopped_event = "serve_stopped"};
    return weir_host_main(&program, argc, argv);
}
