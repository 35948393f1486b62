#include "host/program.h"

#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct weir_host_run {
    atomic_bool is_broken;
    struct weir_error err; /**< Written before is_broken is set. */
};

void weir_host_options_apply(const struct weir_host_options *options, struct weir_host_spec *spec)
{
    spec->server = options->server != NULL ? options->server : spec->server;
    spec->ca_file = options->ca_file != NULL ? options->ca_file : spec->ca_file;
}

int weir_host_fail(const char *name, const struct weir_error *err)
{
    (void)fprintf(stderr, "weir-worker %s: %s\n", name, err->message);
    return weir_status_exit(err->status);
}

void weir_host_run_break(struct weir_host_run *run, const char *reason)
{
    (void)weir_error_set(&run->err, WEIR_ERR_INTERNAL, "%s", reason);
    atomic_store(&run->is_broken, true);
    (void)kill(getpid(), SIGTERM);
}

static int run(const struct weir_host_program *program, const void *options,
               struct weir_arena *arena)
{
    struct weir_host_run run = {.is_broken = false};
    struct weir_error err = {0};
    void *hosted;
    sigset_t signals;
    int signal_number;
    /* Blocked before any thread is made, so that only sigwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (program->start(&run, options, arena, &hosted, &err) != WEIR_OK) {
        return weir_host_fail(program->name, &err);
    }
    while (sigwait(&signals, &signal_number) != 0) {
    }
    weir_log(WEIR_LOG_INFO, program->stopping_event, WEIR_KV_INT("signal", signal_number));
    program->stop(hosted);
    weir_log_event(WEIR_LOG_INFO, program->stopped_event);
    return atomic_load(&run.is_broken) ? weir_host_fail(program->name, &run.err) : EXIT_SUCCESS;
}

static int parse_and_run(const struct weir_host_program *program, int argc, char **argv,
                         struct weir_arena *arena)
{
    struct weir_host_options *chosen = weir_arena_alloc(arena, program->options_bytes);
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    if (weir_options_parse(program->options, program->n_options, argc - 1, argv + 1, arena, chosen,
                           &words, &n_words, &err) != WEIR_OK) {
        return weir_host_fail(program->name, &err);
    }
    if (chosen->help) {
        (void)printf("usage: weir-worker %s %s\n\n", program->name, program->usage);
        weir_options_print(program->options, program->n_options, stdout);
        return EXIT_SUCCESS;
    }
    if (n_words > 0 || !program->fits(chosen)) {
        weir_error_set(&err, WEIR_ERR_INVALID, "usage: weir-worker %s %s", program->name,
                       program->usage);
        return weir_host_fail(program->name, &err);
    }
    return run(program, chosen, arena);
}

int weir_host_main(const struct weir_host_program *program, int argc, char **argv)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    int status = parse_and_run(program, argc, argv, &arena);
    weir_arena_fini(&arena);
    return status;
}
