#include "batch/program.h"

#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>

struct options {
    char *spec, *server, *ca_file, *onnxruntime;
    bool help;
};

static weir_status load_and_run(const struct options *chosen, batch_run_fn *run,
                                struct weir_arena *arena, struct weir_error *err)
{
    struct batch_spec spec;
    json_t *root; /* the spec borrows from it */
    WEIR_TRY(batch_spec_load(chosen->spec, arena, &root, &spec, err));
    if (spec.server != NULL) { /* a specification without one is done here, with files */
        spec.server = chosen->server != NULL ? chosen->server : spec.server;
        spec.ca_file = chosen->ca_file != NULL ? chosen->ca_file : spec.ca_file;
    }
    spec.onnxruntime = chosen->onnxruntime;
    weir_status status = run(&spec, err);
    json_decref(root);
    return status;
}

int batch_program(int argc, char **argv, const char *verb, const char *what, batch_run_fn *run)
{
    // clang-format off
    const struct weir_option options[] = {
        WEIR_OPT(options, spec, "spec", 's', TEXT, NULL, 0, 0, "FILE", what),
        WEIR_OPT(options, server, "server", 0, TEXT, NULL, 0, 0, "URL", "Server to ask and to report to, instead of the spec's"),
        WEIR_OPT(options, ca_file, "ca-file", 0, TEXT, NULL, 0, 0, "FILE", "Authorities to trust if the server's address is https"),
        WEIR_OPT(options, onnxruntime, "onnxruntime", 0, TEXT, NULL, 0, 0, "PATH", "The library onnxruntime, or its folder; default: the system's"),
        WEIR_OPT(options, help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this"),
    };
    // clang-format on
    struct weir_arena arena;
    struct options chosen = {0};
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1,
                                            &arena, &chosen, &words, &n_words, &err);
    if (status == WEIR_OK && chosen.help) {
        (void)printf("usage: weir-worker %s --spec FILE\n\n", verb);
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (status == WEIR_OK && (chosen.spec == NULL || n_words > 0)) {
        status = weir_error_set(&err, WEIR_ERR_INVALID, "usage: weir-worker %s --spec FILE", verb);
    } else if (status == WEIR_OK) {
        status = load_and_run(&chosen, run, &arena, &err);
    }
    if (status != WEIR_OK) {
        /* Its last words: what the job's reason says. */
        (void)fprintf(stderr, "weir-worker %s: %s\n", verb, err.message);
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? EXIT_SUCCESS : weir_status_exit(status);
}
