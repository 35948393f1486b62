#include "train/train.h"

#include <stdio.h>

static void print_help(void)
{
    size_t n = 0;
    const struct weir_option *options = weir_training_options(&n);
    (void)printf(
        "usage: weir-worker train --model NAME|FILE --data DIR [option …]\n"
        "       weir-worker train --spec FILE\n\n"
        "Train a network on labelled pictures with several workers. Without --rank all of\n"
        "them are started on this host, and started again from the last checkpoint when\n"
        "one is lost; Ctrl-C stops with a checkpoint, the same command goes on.\n\n");
    weir_options_print(options, n, stdout);
}

int weir_train_main(int argc, char **argv)
{
    struct weir_train_config config;
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    weir_status status = weir_train_config_parse(argc - 1, argv + 1, &arena, &config, &err);
    if (status == WEIR_OK && config.is_help) {
        print_help();
    } else if (status == WEIR_OK) {
        status = train_is_launcher(&config) ? weir_train_launch(&config, NULL, &err)
                                            : weir_train_rank(&config, NULL, &err);
    }
    if (status == WEIR_ERR_CANCELLED) {
        (void)fprintf(stderr, "weir-worker train: %s; the same command goes on from there\n",
                      err.message);
    } else if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker train: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return weir_status_exit(status);
}
