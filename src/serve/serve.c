#include "serve/serve.h"

#include "base/log.h"
#include "base/options.h"
#include "nn/nn.h"
#include "serve/replica.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_DEADLINE_MS 10000
#define GIVEN_MAX        64

struct options {
    char *spec, *server, *ca_file, *models, *labels, *preprocess, *golden, *listen, *onnxruntime,
        *device, *precision;
    int64_t batch_max, max_delay_us, queue_max, threads, memory_max_mb, timeout_ms, body_max_mb;
    bool help;
};

// clang-format off
static const struct weir_option options[] = {
    WEIR_OPT(options, spec, "spec", 's', TEXT, NULL, 0, 0, "FILE", "Be a replica of a deployment (spec.json)"),
    WEIR_OPT(options, server, "server", 0, TEXT, NULL, 0, 0, "URL", "Server to ask and to report to, instead of the spec's"),
    WEIR_OPT(options, ca_file, "ca-file", 0, TEXT, NULL, 0, 0, "FILE", "Authorities to trust if the server's address is https"),
    WEIR_OPT(options, models, "model", 'm', LIST, NULL, 0, 0, "NAME[@VERSION]=FILE", "Serve this model file without a server; may be repeated"),
    WEIR_OPT(options, labels, "labels", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "Labels of the classes, one a line"),
    WEIR_OPT(options, preprocess, "preprocess", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "How a picture becomes the input (YAML)"),
    WEIR_OPT(options, golden, "golden", 0, LIST, NULL, 0, 0, "[NAME=]FILE", "Request and answer that the model is checked with"),
    WEIR_OPT(options, listen, "listen", 'l', TEXT, "127.0.0.1:8000", 0, 0, "HOST:PORT", "Address to answer at, with --model; port 0: any"),
    WEIR_OPT(options, batch_max, "batch-max", 0, INT, "16", 1, 65536, "N", "Rows that are computed together at most, with --model"),
    WEIR_OPT(options, max_delay_us, "max-delay-us", 0, INT, "0", 0, 60000000, "N", "How long a batch waits to become full, with --model"),
    WEIR_OPT(options, queue_max, "queue-max", 0, INT, "256", 1, 65536, "N", "Requests that wait at most, with --model"),
    WEIR_OPT(options, threads, "threads", 0, INT, "0", 0, 4096, "N", "Computing threads of each model, with --model; 0: one per CPU"),
    WEIR_OPT(options, memory_max_mb, "memory-max-mb", 0, INT, "0", 0, 1048576, "N", "Memory of all models together, with --model; 0: no limit"),
    WEIR_OPT(options, timeout_ms, "timeout-ms", 0, INT, "30000", 1, 3600000, "N", "Time of a request that says none"),
    WEIR_OPT(options, body_max_mb, "body-max-mb", 0, INT, "64", 1, 1024, "N", "Longest body of a request"),
    WEIR_OPT(options, onnxruntime, "onnxruntime", 0, TEXT, NULL, 0, 0, "FILE", "Library of onnxruntime"),
    WEIR_OPT(options, device, "device", 0, TEXT, "auto", 0, 0, "WORD", "Where models are computed: processor, gpu, or auto: on the GPU that the process was given, if any"),
    WEIR_OPT(options, precision, "precision", 0, TEXT, "f32", 0, 0, "WORD", "What models that Weir trained are computed in: f32, bf16, or on a GPU tf32"),
    WEIR_OPT(options, help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this"),
};

// clang-format on

static int fail(const struct weir_error *err)
{
    /* Its last words: what the job's reason says. */
    (void)fprintf(stderr, "weir-worker serve: %s\n", err->message);
    return weir_status_exit(err->status);
}

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
    return read_extras("--golden", chosen->golden, offsetof(struct serve_given, golden), arena, out,
                       *out_n, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static weir_status load_spec(const struct options *chosen, struct weir_arena *arena,
                             struct serve_spec *out, struct weir_error *err)
{
    WEIR_TRY(serve_spec_load(chosen->spec, arena, out, err));
    out->server = chosen->server != NULL ? chosen->server : out->server;
    out->ca_file = chosen->ca_file != NULL ? chosen->ca_file : out->ca_file;
    return WEIR_OK;
}

/** What main has to know of a GPU that has failed. */
struct failure {
    atomic_bool is_there;
    struct weir_error err; /**< Written before is_there is set. */
};

/* The replica ends as it does when it is told to: requests under way are answered first. */
static void on_broken(void *context, const char *reason)
{
    struct failure *failure = context;
    (void)weir_error_set(&failure->err, WEIR_ERR_INTERNAL, "%s", reason);
    atomic_store(&failure->is_there, true);
    (void)kill(getpid(), SIGTERM);
}

static weir_status read_device(const struct options *chosen, struct serve_options *out,
                               struct weir_error *err)
{
    enum weir_precision checked;
    out->precision = chosen->precision;
    WEIR_TRY(executor_device_parse(chosen->device, &out->device, err));
    return weir_precision_parse(chosen->precision, &checked, err);
}

static struct serve_options serve_options_of(const struct options *chosen)
{
    return (struct serve_options){.listen = chosen->listen,
                                  .rules = {.batch_max = chosen->batch_max,
                                            .delay_ns = (uint64_t)chosen->max_delay_us * 1000,
                                            .queue_max = (size_t)chosen->queue_max},
                                  .n_threads = (int32_t)chosen->threads,
                                  .memory_max_bytes = (size_t)chosen->memory_max_mb << 20,
                                  .onnxruntime_path = chosen->onnxruntime,
                                  .timeout_ms = chosen->timeout_ms,
                                  .body_max_bytes = (uint64_t)chosen->body_max_mb << 20};
}

static int run(const struct options *chosen, struct weir_arena *arena)
{
    struct serve_options serve = serve_options_of(chosen);
    struct failure failure = {.is_there = false};
    struct serve_given given[GIVEN_MAX];
    struct serve_spec spec;
    struct serve_replica *replica;
    struct weir_error err = {0};
    sigset_t signals;
    int signal_number;
    /* Blocked before any thread is made, so that only sigwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    weir_status status = chosen->spec != NULL
                             ? load_spec(chosen, arena, &spec, &err)
                             : read_given(chosen, arena, given, &serve.n_given, &err);
    if (status == WEIR_OK) {
        status = read_device(chosen, &serve, &err);
    }
    serve.on_broken = on_broken;
    serve.context = &failure;
    serve.given = given;
    serve.spec = chosen->spec != NULL ? &spec : NULL;
    if (status != WEIR_OK || serve_replica_start(&serve, &replica, &err) != WEIR_OK) {
        return fail(&err);
    }
    (void)printf("serving at port %d\n", serve_replica_port(replica));
    (void)fflush(stdout);
    while (sigwait(&signals, &signal_number) != 0) {
    }
    weir_log(WEIR_LOG_INFO, "serve_stopping", WEIR_KV_INT("signal", signal_number));
    serve_replica_stop(replica, STOP_DEADLINE_MS);
    weir_log_event(WEIR_LOG_INFO, "serve_stopped");
    return atomic_load(&failure.is_there) ? fail(&failure.err) : EXIT_SUCCESS;
}

int weir_serve_main(int argc, char **argv)
{
    static const char usage[] = "usage: weir-worker serve --spec FILE | --model NAME=FILE …";
    struct weir_arena arena;
    struct options chosen = {0};
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    int status = EXIT_SUCCESS;
    weir_arena_init(&arena, 0);
    if (weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1, &arena, &chosen,
                           &words, &n_words, &err) != WEIR_OK) {
        status = fail(&err);
    } else if (chosen.help) {
        (void)printf("%s\n\n", usage);
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if ((chosen.spec == NULL) == (chosen.models == NULL) || n_words > 0) {
        weir_error_set(&err, WEIR_ERR_INVALID, "%s", usage);
        status = fail(&err);
    } else {
        status = run(&chosen, &arena);
    }
    weir_arena_fini(&arena);
    return status;
}
