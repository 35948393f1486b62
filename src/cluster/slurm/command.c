#include "cluster/slurm/command.h"

#include "cluster/slurm/refusal.h"

#include "base/command.h"

#include <stdlib.h>

#define ENV_MAX 32

static const char *own(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static const char **environment(const struct slurm_options *options,
                                const struct slurm_command *command, struct weir_arena *arena)
{
    static const char *const passed[] = {"HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH"};
    const char **env = WEIR_ARENA_ARRAY(arena, ENV_MAX, const char *);
    size_t n = 0;
    const char *conf = options->conf != NULL ? options->conf : own("SLURM_CONF");
    env[n++] = options->bin != NULL
                   ? weir_arena_printf(arena, "PATH=%s:%s", options->bin, own("PATH"))
                   : weir_arena_printf(arena, "PATH=%s", own("PATH"));
    env[n++] = "LC_ALL=C";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        if (own(passed[i])[0] != '\0') {
            env[n++] = weir_arena_printf(arena, "%s=%s", passed[i], own(passed[i]));
        }
    }
    if (conf[0] != '\0') {
        env[n++] = weir_arena_printf(arena, "SLURM_CONF=%s", conf);
    }
    if (command->env == NULL) {
        env[n++] = "SLURM_TIME_FORMAT=%s";
    }
    for (size_t i = 0; command->env != NULL && command->env[i] != NULL && n < ENV_MAX - 1; i++) {
        env[n++] = command->env[i];
    }
    return env;
}

weir_status slurm_run(const struct slurm_options *options, const struct slurm_command *command,
                      struct weir_arena *arena, struct slurm_answer *out, struct weir_error *err)
{
    const char *name = command->words[0];
    struct weir_command_answer answer;
    const struct weir_command run = {
        .words = command->words,
        .program =
            options->bin != NULL ? weir_arena_printf(arena, "%s/%s", options->bin, name) : NULL,
        .input = command->input,
        .env = environment(options, command, arena),
        .timeout_ms = command->timeout_ms,
        .out_max_bytes = SLURM_OUT_MAX_BYTES,
        .said_max_bytes = SLURM_SAID_MAX_BYTES};
    weir_status status = weir_command_run(&run, arena, &answer, err);
    if (status == WEIR_ERR_TIMEOUT) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "Slurm's %s did not answer within %lld s",
                              name, (long long)command->timeout_ms / 1000);
    }
    WEIR_TRY(status);
    *out = (struct slurm_answer){
        .exit_status = answer.exit_status, .out = answer.out, .said = answer.said};
    return WEIR_OK;
}

weir_status slurm_ask(const struct slurm_options *options, const char *const *words,
                      struct weir_arena *arena, const char **out, struct weir_error *err)
{
    const struct slurm_command command = {.words = words, .timeout_ms = SLURM_ASK_MS};
    struct slurm_answer answer;
    WEIR_TRY(slurm_run(options, &command, arena, &answer, err));
    if (answer.exit_status != 0) {
        return slurm_refusal(words[0], answer.said, err);
    }
    *out = answer.out;
    return WEIR_OK;
}
