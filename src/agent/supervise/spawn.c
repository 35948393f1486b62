#include "base/spawn.h"
#include "agent/node/agent_private.h"

weir_status spawn_supervisor(const char *executable, const char *task_dir, pid_t *out_pid,
                             struct weir_error *err)
{
    char log[TASK_PATH_BYTES];
    char *const argv[] = {(char *)executable, "agent", "--supervise", (char *)task_dir, NULL};
    /* Neither a terminal's signals nor the agent's end reach it. */
    const struct weir_spawn spawn = {.argv = argv,
                                     .log = task_path(log, task_dir, "supervisor.log"),
                                     .place = WEIR_SPAWN_SESSION};
    return weir_spawn_start(&spawn, out_pid, err);
}
