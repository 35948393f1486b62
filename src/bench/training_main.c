#include "bench/training.h"

#include <string.h>

static void print_help(void)
{
    size_t n = 0;
    const struct weir_option *options = training_option_table(&n);
    (void)printf("usage: weir bench train [--model NAME|FILE] [option …]\n\n"
                 "Measure how fast networks are trained, with flags and output of\n"
                 "tf_cnn_benchmarks; its spelling with \"_\" is understood too. Peak, memory and\n"
                 "page faults are in the JSON: -o json.\n\n");
    weir_options_print(options, n, stdout);
}

/** One rank, this process: alone, or as a launcher has said. */
static weir_status run_rank(const struct training_plan *plan, const struct weir_spawn_rank *me,
                            struct weir_error *err)
{
    (void)setvbuf(stdout, NULL, _IOFBF, 0);
    return training_rank_run(plan, me, err);
}

static weir_status run(int argc, char **argv, struct weir_arena *arena, struct weir_error *err)
{
    struct training_plan plan;
    struct weir_spawn_rank me = {.rank = 0, .size = 1, .n_here = 1};
    bool is_rank = weir_spawn_is_rank();
    if (is_rank) {
        WEIR_TRY(weir_spawn_join(&me, err));
    }
    WEIR_TRY(training_plan_parse(argc - 1, argv + 1, is_rank ? me.size : 0, arena, &plan, err));
    if (plan.options.is_help) {
        print_help();
        return WEIR_OK;
    }
    bool is_alone = plan.n_workers + plan.n_servers == 1 && plan.options.hosts == NULL &&
                    strcmp(plan.options.launcher, "auto") == 0;
    if (is_rank || is_alone) {
        return run_rank(&plan, &me, err);
    }
    char **args = WEIR_ARENA_ARRAY(arena, (size_t)argc + 2, char *);
    args[0] = weir_arena_strdup(arena, "weir-worker");
    memcpy(args + 1, argv, (size_t)argc * sizeof *argv);
    const struct weir_spawn_config config = training_spawn_config(&plan, args);
    return weir_spawn_run(&config, err);
}

int weir_bench_training_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    weir_status status = run(argc, argv, &arena, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker bench-train: %s\n",
                      err.message[0] != '\0' ? err.message : weir_status_text(status));
    }
    weir_arena_fini(&arena);
    return weir_status_exit(status);
}
