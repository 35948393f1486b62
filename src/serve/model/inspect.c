#include "serve/inspect.h"

#include "agree.h"
#include "confine.h"
#include "probe.h"
#include "serve/replica/golden.h"

#include "base/deadline.h"
#include "base/file.h"
#include "base/open.h"
#include "base/options.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_NO_MEMORY                                                                             \
    8 /* That of NOMEM in status.def: the handler of a signal looks nothing up. */
#define LABELS_MAX_BYTES ((size_t)16 << 20)

struct options {
    char *labels, *preprocess, *inputs, *golden, *onnxruntime, *name;
    int64_t threads, memory_mb, timeout_s;
    bool confine, help;
};

// clang-format off
static const struct weir_option options[] = {
    WEIR_OPT(options, labels,      "labels",      0, TEXT, NULL,   0, 0,       "FILE", "Names of the classes, one a line, or a JSON array"),
    WEIR_OPT(options, preprocess,  "preprocess",  0, TEXT, NULL,   0, 0,       "FILE", "How a picture becomes the input: YAML or JSON"),
    WEIR_OPT(options, inputs,      "inputs",      0, TEXT, NULL,   0, 0,       "FILE", "Shapes of inputs in place of those of the file: YAML or JSON, {x: \"N,3,H,W\"}"),
    WEIR_OPT(options, golden,      "golden",      0, TEXT, NULL,   0, 0,       "FILE", "Requests and the answers that the model must give to them, JSON"),
    WEIR_OPT(options, onnxruntime, "onnxruntime", 0, TEXT, NULL,   0, 0,       "PATH", "The library onnxruntime, or its folder; default: the system's"),
    WEIR_OPT(options, name,        "name",        0, TEXT, NULL,   0, 0,       "NAME", "What messages call the file"),
    WEIR_OPT(options, threads,     "threads",     0, INT,  "0",    0, 1024,    "N",    "Computing threads; 0: one per processor"),
    WEIR_OPT(options, memory_mb,   "memory-mb",   0, INT,  "8192", 0, 1 << 20, "N",    "End when it needs more memory than N MiB; 0: no limit"),
    WEIR_OPT(options, timeout_s,   "timeout-s",   0, INT,  "120",  0, 86400,   "S",    "End when it takes longer; 0: no limit"),
    WEIR_OPT(options, confine,     "confine",     0, BOOL, NULL,   0, 0,       NULL,   "Give up network, folders, user and rights before the file is read"),
    WEIR_OPT(options, help,        "help",      'h', BOOL, NULL,   0, 0,       NULL,   "Show this list"),
};
// clang-format on

/* ---- limits ----------------------------------------------------------------------------------- */

/* The address sanitizer maps terabytes: no limit of addresses fits it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LIMIT_MEMORY false
#else
#define CAN_LIMIT_MEMORY true
#endif

/* What is written when memory is out: made before, because the handler may not format. */
static char memory_sentence[WEIR_ERROR_MESSAGE_BYTES];

/* Memory that ends inside of a parser or a library ends the process (weir_arena_alloc). */
static void on_abort(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, memory_sentence, strlen(memory_sentence)) < 0) {
        _exit(EXIT_NO_MEMORY);
    }
    _exit(EXIT_NO_MEMORY);
}

static weir_status limit_memory(const struct options *chosen, const char *name,
                                struct weir_error *err)
{
    if (chosen->memory_mb == 0 || !CAN_LIMIT_MEMORY) {
        return WEIR_OK;
    }
    rlim_t most = (rlim_t)chosen->memory_mb << 20;
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    (void)snprintf(memory_sentence, sizeof memory_sentence,
                   "weir-worker inspect: %s: needs more memory than %lld MiB (--memory-mb)\n", name,
                   (long long)chosen->memory_mb);
    const struct sigaction action = {.sa_handler = on_abort};
    if (setrlimit(RLIMIT_AS, &limit) != 0 || sigaction(SIGABRT, &action, NULL) != 0) {
        return weir_error_set_errno(err, errno, "memory cannot be limited");
    }
    return WEIR_OK;
}

/* What the thread needs, which lives as long as the process. */
static struct {
    int64_t timeout_s;
    const char *name;
} watch;

/* A library that computes for too long cannot be asked to stop: the process ends. */
static void *watch_time(void *context)
{
    struct timespec deadline = weir_deadline_after(watch.timeout_s * 1000);
    (void)context;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR) {
    }
    (void)fprintf(stderr, "weir-worker inspect: %s: not done within %lld s (--timeout-s)\n",
                  watch.name, (long long)watch.timeout_s);
    _exit(weir_status_exit(WEIR_ERR_TIMEOUT));
}

static weir_status limit_time(const struct options *chosen, const char *name,
                              struct weir_error *err)
{
    pthread_t thread;
    if (chosen->timeout_s == 0) {
        return WEIR_OK;
    }
    watch.timeout_s = chosen->timeout_s;
    watch.name = name;
    int failure = pthread_create(&thread, NULL, watch_time, NULL);
    if (failure != 0) {
        return weir_error_set_errno(err, failure, "time cannot be limited");
    }
    (void)pthread_detach(thread);
    return WEIR_OK;
}

/* ---- inspect ---------------------------------------------------------------------------------- */

/** What is being inspected, and with what. */
struct inspection {
    const char *path;
    struct executor_options executor;
    struct signature_extras extras;
    struct probe_golden golden;
    char why[EXECUTOR_WHY_BYTES];
    struct serve_model *model;
    struct weir_signature signature;
    struct weir_tensor *in[SERVE_PORTS_MAX]; /**< What the model was run on. */
};

static weir_status describe(struct inspection *it, struct weir_arena *arena, struct weir_error *err)
{
    WEIR_TRY(weir_signature_make(it->model, serve_model_format(it->model), it->why, &it->extras,
                                 arena, &it->signature, err));
    return weir_signature_probe(it->model, &it->signature, &it->golden, arena, it->in, err);
}

/* Do others answer to random inputs as Weir does? UNSUPPORTED, with what differs. */
static weir_status compare(struct inspection *it, struct weir_error *err)
{
    static const char *const others[] = {"onnx", "onnxruntime"};
    static const int64_t free_sizes[] = {32, 64}; /* the plain way is slow */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        probe_widen(it->model, &it->signature, free_sizes[i], it->in);
        WEIR_TRY(agree_check(it->path, &it->executor, it->model, it->in, others[i], err));
    }
    return WEIR_OK;
}

/* Weir's own loaded the file. *out_may_other: it cannot run it, or not rightly. */
static weir_status describe_own(struct inspection *it, struct weir_arena *arena,
                                bool *out_may_other, struct weir_error *err)
{
    bool is_onnx = strcmp(it->model->kind->name, "onnx") == 0;
    weir_status status = describe(it, arena, err);
    if (status == WEIR_OK && is_onnx) {
        status = compare(it, err);
        serve_tensors_release(it->in, SERVE_PORTS_MAX);
    }
    *out_may_other = is_onnx && status != WEIR_OK;
    return status;
}

/* An operator may lack a type of elements, or the answers are not those of others. */
static weir_status describe_by_other(struct inspection *it, struct weir_arena *arena,
                                     struct weir_error *err)
{
    struct weir_error other;
    const struct weir_error lacks = *err;
    serve_model_unload(it->model);
    it->model = NULL;
    if (executor_load("onnxruntime", it->path, &it->executor, &it->model, &other) != WEIR_OK) {
        return weir_error_set(err, lacks.status, "%.400s; onnxruntime: %s", lacks.message,
                              executor_message(other.message, it->path));
    }
    (void)snprintf(it->why, sizeof it->why, "onnxruntime %s runs it, because Weir cannot: %.500s",
                   it->model->version, lacks.message);
    return describe(it, arena, err);
}

static weir_status print_signature(const struct weir_signature *signature, struct weir_error *err)
{
    json_t *json = weir_signature_json(signature);
    if (json == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the signature has text that is not UTF-8");
    }
    int failure = json_dumpf(json, stdout, JSON_INDENT(2));
    json_decref(json);
    return failure == 0 && printf("\n") > 0 && fflush(stdout) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_IO, "the signature cannot be printed");
}

/* The file is called by what it was asked for as, not by its descriptor. */
static weir_status without_path(const struct inspection *it, struct weir_error *err)
{
    const struct weir_error said = *err;
    return weir_error_set(err, said.status, "%s", executor_message(said.message, it->path));
}

static weir_status inspect(const struct options *chosen, const char *path, const char *name,
                           struct weir_arena *arena, struct weir_error *err)
{
    struct inspection it = {.path = path,
                            .executor = {.device = EXECUTOR_PROCESSOR,
                                         .n_threads = (int32_t)chosen->threads,
                                         .memory_max_bytes = (size_t)chosen->memory_mb << 20,
                                         .onnxruntime_path = chosen->onnxruntime}};
    struct signature_extras *extras = &it.extras;
    struct probe_golden *golden = &it.golden;
    bool may_other;
    WEIR_TRY(signature_extra_read(chosen->labels, LABELS_MAX_BYTES, arena, &extras->labels,
                                  &extras->labels_len, err));
    WEIR_TRY(signature_extra_read(chosen->preprocess, SIGNATURE_PREPROCESS_MAX, arena,
                                  &extras->preprocess, &extras->preprocess_len, err));
    WEIR_TRY(signature_extra_read(chosen->inputs, SIGNATURE_PREPROCESS_MAX, arena, &extras->inputs,
                                  &extras->inputs_len, err));
    WEIR_TRY(signature_shapes(extras, arena, &it.executor, err));
    WEIR_TRY(signature_extra_read(chosen->golden, GOLDEN_MAX_BYTES, arena, &golden->text,
                                  &golden->len, err));
    char by_descriptor[32];
    if (chosen->confine) {
        int fd = weir_open_read(path);
        if (fd < 0) {
            return weir_error_set_errno(err, errno, "%s", path);
        }
        (void)snprintf(by_descriptor, sizeof by_descriptor, "/dev/fd/%d", fd);
        it.path = by_descriptor;
        executor_preload(&it.executor);
        confine_enter();
    }
    WEIR_TRY(limit_time(chosen, name, err)); /* a second thread, which is confined, too */
    if (executor_choose(it.path, &it.executor, &it.model, it.why, err) != WEIR_OK) {
        return without_path(&it, err);
    }
    weir_status status = describe_own(&it, arena, &may_other, err);
    if (may_other) {
        status = describe_by_other(&it, arena, err);
    }
    if (status == WEIR_OK && golden->text != NULL) {
        status = golden_check(it.model, golden->text, golden->len, err);
    }
    if (status == WEIR_OK) {
        status = print_signature(&it.signature, err);
    }
    serve_tensors_release(it.in, SERVE_PORTS_MAX);
    serve_model_unload(it.model);
    return status == WEIR_OK ? WEIR_OK : without_path(&it, err);
}

/* The message, with the file called by its name. */
static int fail(const struct weir_error *err, const char *path, const char *name)
{
    const char *message = executor_message(err->message, path);
    (void)fprintf(stderr, "weir-worker inspect: %s%s%s\n", name, name[0] != '\0' ? ": " : "",
                  message);
    return weir_status_exit(err->status);
}

static int run(const struct options *chosen, const char *path, struct weir_arena *arena)
{
    const char *name = chosen->name != NULL ? chosen->name : path;
    struct weir_error err = {0};
    weir_status status = limit_memory(chosen, name, &err);
    if (status == WEIR_OK) {
        status = inspect(chosen, path, name, arena, &err);
    }
    return status == WEIR_OK ? EXIT_SUCCESS : fail(&err, path, name);
}

int weir_inspect_main(int argc, char **argv)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* a library that would write a file goes without it */
    static const char usage[] = "usage: weir-worker inspect FILE [option …]";
    struct weir_arena arena;
    struct options chosen = {0};
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    int status = EXIT_SUCCESS;
    weir_arena_init(&arena, 0);
    if (weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1, &arena, &chosen,
                           &words, &n_words, &err) != WEIR_OK) {
        status = fail(&err, "", "");
    } else if (chosen.help) {
        (void)printf("%s\n\n", usage);
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (n_words != 1) {
        weir_error_set(&err, WEIR_ERR_INVALID, "%s", usage);
        status = fail(&err, "", "");
    } else {
        status = run(&chosen, words[0], &arena);
    }
    if (agree_is_running()) { /* a comparison that was given up computes on, with what is here */
        (void)fflush(NULL);
        _exit(status);
    }
    weir_arena_fini(&arena);
    return status;
}
