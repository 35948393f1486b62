/** weir bench: how fast this machine, or a group of them, trains and adds up. */
#include "cli/command.h"

#include <string.h>

/* Each is a role of weir-worker. */
static const struct {
    const char *name, *role, *summary;
} benches[] = {
    {"train", "bench-train", "Training, with flags and output of tf_cnn_benchmarks"},
    {"allreduce", "bench-allreduce", "All-reduces by size, in the manner of nccl-tests"},
};

static void print_benches(const struct cli_command *command, FILE *file)
{
    (void)fprintf(file, "%s\n\nUsage: weir bench %s\n\nBenchmarks:\n", command->summary,
                  command->usage);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(benches); i++) {
        (void)fprintf(file, "  %-12s %s\n", benches[i].name, benches[i].summary);
    }
    (void)fprintf(file, "\n`weir bench BENCHMARK --help` lists its options.\n");
}

static weir_status run_bench(struct cli_call *call, struct weir_error *err)
{
    const char *name = call->argc > 0 ? call->argv[0] : "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(benches); i++) {
        if (strcmp(benches[i].name, name) == 0) {
            return cli_exec_worker(call, benches[i].role, 1, err);
        }
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_benches(call->command, stdout);
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "usage: weir bench train|allreduce [OPTIONS]; \"%.40s\" is no benchmark",
                          name);
}

const struct cli_command cli_bench = {
    .name = "bench",
    .usage = "train|allreduce [OPTIONS]",
    .summary = "Measure training or all-reduces, here or on several hosts",
    .flags = CLI_RAW,
    .run = run_bench,
};
