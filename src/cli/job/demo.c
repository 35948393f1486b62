/** weir demo: weir-demo, beside this program. */
#include "cli/command.h"

static weir_status run_demo(struct cli_call *call, struct weir_error *err)
{
    char **argv = WEIR_ARENA_ARRAY(call->arena, (size_t)call->argc + 2, char *);
    argv[0] = weir_arena_strdup(call->arena, "weir-demo");
    for (int i = 0; i < call->argc; i++) {
        argv[i + 1] = call->argv[i];
    }
    return cli_exec_beside(argv[0], argv, err);
}

const struct cli_command cli_demo = {
    .name = "demo",
    .usage = "building-security [OPTIONS]",
    .summary = "Play an example against a running server",
    .help = "Starts weir-demo; `weir demo --help` lists its options.",
    .flags = CLI_RAW,
    .run = run_demo,
};
