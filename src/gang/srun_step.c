/* The tasks of a step on one node: laid out, started, waited for. */
#include "gang/slurm.h"

#include "base/buf.h"
#include "base/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX_BYTES ((size_t)64 << 10)

extern char **environ;

/* ---- layout --------------------------------------------------------------------------------------- */

weir_status slurm_layout_make(const struct slurm_asked *asked, struct weir_arena *arena,
                              struct slurm_layout *out, struct weir_error *err)
{
    int64_t most = asked->n_on > 0 ? (int64_t)asked->n_on : asked->job_nodes;
    int64_t nodes = asked->nodes > 0 ? asked->nodes : most;
    int64_t tasks = asked->tasks > 0            ? asked->tasks
                    : asked->tasks_per_node > 0 ? asked->tasks_per_node * nodes
                    : nodes == asked->job_nodes ? asked->job_tasks
                                                : asked->job_tasks_per_node * nodes;
    if (nodes < 1 || nodes > most) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%lld nodes are asked for, of %lld",
                              (long long)nodes, (long long)most);
    }
    nodes = WEIR_MIN(nodes, tasks);
    int64_t per_node = (tasks + nodes - 1) / nodes;
    if (!asked->is_overcommitted && per_node > WEIR_MAX(asked->job_tasks_per_node, (int64_t)1)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%lld tasks are asked for on %lld nodes, and the job has %lld of each: "
            "ask for more in the script's head, or give --overcommit",
            (long long)tasks, (long long)nodes, (long long)asked->job_tasks_per_node);
    }
    *out = (struct slurm_layout){.nodes = WEIR_ARENA_ARRAY(arena, (size_t)nodes, int64_t),
                                 .counts = WEIR_ARENA_ARRAY(arena, (size_t)nodes, int64_t),
                                 .n_nodes = nodes,
                                 .n_tasks = tasks};
    for (int64_t i = 0; i < nodes; i++) {
        out->nodes[i] = asked->n_on > 0 ? asked->on[i] : i;
        out->counts[i] = tasks / nodes + (i < tasks % nodes);
    }
    return WEIR_OK;
}

char *slurm_layout_text(const struct slurm_layout *layout, struct weir_arena *arena)
{
    struct weir_buf text;
    weir_buf_init(&text, TEXT_MAX_BYTES);
    for (int64_t i = 0, n; i < layout->n_nodes; i += n) {
        for (n = 1; i + n < layout->n_nodes && layout->counts[i + n] == layout->counts[i]; n++) {
        }
        (void)weir_buf_printf(&text, "%s%lld", i > 0 ? "," : "", (long long)layout->counts[i]);
        if (n > 1) {
            (void)weir_buf_printf(&text, "(x%lld)", (long long)n);
        }
    }
    char *out = weir_arena_strdup(arena, text.data);
    weir_buf_fini(&text);
    return out;
}

/* ---- what a task is given ------------------------------------------------------------------------- */

static bool goes_on(char c)
{
    return isalnum((unsigned char)c) || strchr("._-", c) != NULL;
}

char *slurm_relocate(const char *text, const char *from, const char *to, struct weir_arena *arena)
{
    size_t len = strlen(from), to_len = strlen(to), n = 0;
    if (len == 0 || strcmp(from, to) == 0) {
        return weir_arena_strdup(arena, text);
    }
    for (const char *at = text; (at = strstr(at, from)) != NULL; at += len) {
        n++;
    }
    char *out = weir_arena_alloc(arena, strlen(text) + n * to_len + 1), *end = out;
    while (*text != '\0') {
        bool is_here = strncmp(text, from, len) == 0 && (text[len] == '\0' || !goes_on(text[len]));
        if (is_here) {
            memcpy(end, to, to_len);
            end += to_len;
            text += len;
        } else {
            *end++ = *text++;
        }
    }
    *end = '\0';
    return out;
}

/* The step, as it is on this node. */
struct step {
    const json_t *said;
    struct weir_arena *arena;
    const char *from, *to; /* the job's folder, there and here */
    char **argv;
    char **env; /* without what differs from task to task */
    size_t n_env, n_room;
};

static int64_t int_of(const struct step *step, const char *key)
{
    return json_integer_value(json_object_get(step->said, key));
}

static const char *text_of(const struct step *step, const char *key)
{
    const char *text = json_string_value(json_object_get(step->said, key));
    return text != NULL ? text : "";
}

static void set(struct step *step, const char *name, const char *value)
{
    size_t len = strlen(name), i = 0;
    while (i < step->n_env &&
           !(strncmp(step->env[i], name, len) == 0 && step->env[i][len] == '=')) {
        i++;
    }
    if (i < step->n_room) {
        step->env[i] = weir_arena_printf(step->arena, "%s=%s", name, value);
        step->n_env += i == step->n_env;
    }
}

static void set_number(struct step *step, const char *name, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    set(step, name, text);
}

static bool is_unset(const struct step *step, const char *entry)
{
    size_t i;
    const json_t *name;
    json_array_foreach(json_object_get(step->said, "unset"), i, name)
    {
        const char *text = json_string_value(name);
        if (text != NULL && strncmp(entry, text, strlen(text)) == 0 && entry[strlen(text)] == '=') {
            return true;
        }
    }
    return false;
}

static void make_environment(struct step *step)
{
    const char *name;
    json_t *value;
    size_t n = 0;
    while (environ[n] != NULL) {
        n++;
    }
    step->n_room = n + json_object_size(json_object_get(step->said, "env")) + 24;
    step->env = WEIR_ARENA_ARRAY(step->arena, step->n_room + 1, char *);
    for (size_t i = 0; i < n; i++) {
        if (!is_unset(step, environ[i])) {
            step->env[step->n_env++] = environ[i];
        }
    }
    json_object_foreach(json_object_get(step->said, "env"), name, value)
    {
        set(step, name,
            slurm_relocate(json_string_value(value), step->from, step->to, step->arena));
    }
    set_number(step, "SLURM_STEP_ID", int_of(step, "step"));
    set_number(step, "SLURM_STEPID", int_of(step, "step"));
    set_number(step, "SLURM_STEP_NUM_TASKS", int_of(step, "tasks"));
    set_number(step, "SLURM_STEP_NUM_NODES", int_of(step, "nodes"));
    set_number(step, "SLURM_NTASKS", int_of(step, "tasks"));
    set_number(step, "SLURM_NPROCS", int_of(step, "tasks"));
    set_number(step, "SLURM_NNODES", int_of(step, "nodes"));
    set_number(step, "SLURM_NODEID", int_of(step, "node"));
    set(step, "SLURM_STEP_NODELIST", text_of(step, "hosts"));
    set(step, "SLURM_STEP_TASKS_PER_NODE", text_of(step, "layout"));
    set(step, "SLURM_TASKS_PER_NODE", text_of(step, "layout"));
    set(step, "SLURMD_NODENAME", text_of(step, "host"));
    for (size_t i = 0; i < step->n_env; i++) {
        if (strncmp(step->env[i], "PATH=", 5) == 0) {
            (void)setenv("PATH", step->env[i] + 5, 1); /* in which the program is looked for */
            break;
        }
    }
}

/* Local task i sees its part of the node's devices: n_each of them. */
static void set_devices(struct step *step, int64_t i, int64_t n_each)
{
    const char *all = NULL;
    for (size_t k = 0; k < step->n_env; k++) {
        all = strncmp(step->env[k], "CUDA_VISIBLE_DEVICES=", 21) == 0 ? step->env[k] + 21 : all;
    }
    for (int64_t skip = i * n_each; skip > 0 && all != NULL; skip--) {
        all = strchr(all, ',');
        all = all != NULL ? all + 1 : NULL;
    }
    if (n_each < 1 || all == NULL) {
        return;
    }
    size_t len = 0;
    for (int64_t n = 0; all[len] != '\0' && (all[len] != ',' || ++n < n_each); len++) {
    }
    set(step, "CUDA_VISIBLE_DEVICES", weir_arena_memdup(step->arena, all, len));
}

/* ---- start ---------------------------------------------------------------------------------------- */

static weir_status read_step(struct step *step, struct weir_error *err)
{
    char here[PATH_MAX];
    const json_t *argv = json_object_get(step->said, "argv");
    size_t n = json_array_size(argv), i;
    const json_t *word, *value;
    const char *name;
    if (getcwd(here, sizeof here) == NULL) {
        return weir_error_set_errno(err, errno, "the working folder is not known");
    }
    bool is_good = n > 0 && int_of(step, "count") >= 1 && int_of(step, "count") <= 1 << 20;
    json_array_foreach(argv, i, word)
    {
        is_good = is_good && json_is_string(word);
    }
    json_object_foreach(json_object_get(step->said, "env"), name, value)
    {
        is_good = is_good && json_is_string(value);
    }
    if (!is_good) {
        return weir_error_set(err, WEIR_ERR_INVALID, "this is no step of srun");
    }
    step->from = text_of(step, "folder");
    step->to = json_is_true(json_object_get(step->said, "is_here"))
                   ? step->from
                   : weir_arena_strdup(step->arena, here);
    step->argv = WEIR_ARENA_ARRAY(step->arena, n + 1, char *);
    for (i = 0; i < n; i++) {
        step->argv[i] = slurm_relocate(json_string_value(json_array_get(argv, i)), step->from,
                                       step->to, step->arena);
    }
    return WEIR_OK;
}

/* Local task i of the step, which is task `number` of all. */
static weir_status start_task(struct step *step, int64_t i, int64_t number,
                              const struct gang_lines *lines, pid_t *out, struct weir_error *err)
{
    int said = WEIR_SPAWN_OWN, printed = WEIR_SPAWN_OWN;
    set_number(step, "SLURM_PROCID", number);
    set_number(step, "SLURM_LOCALID", i);
    struct step own = *step; /* its devices are of all of the node's */
    own.env = WEIR_ARENA_ARRAY(step->arena, step->n_room + 1, char *);
    memcpy(own.env, step->env, (step->n_env + 1) * sizeof *own.env);
    set_devices(&own, i, int_of(step, "gpus_per_task"));
    if (lines != NULL) {
        gang_lines_streams(lines, (size_t)i, &printed, &said);
    }
    const struct weir_spawn spawn = {.argv = step->argv,
                                     .env = own.env,
                                     .in = number == 0 ? WEIR_SPAWN_OWN : WEIR_SPAWN_NULL,
                                     .out = printed,
                                     .said = said,
                                     .place = WEIR_SPAWN_GROUP};
    return weir_spawn_start(&spawn, out, err);
}

static weir_status start_tasks(struct step *step, pid_t *pids, size_t n, struct gang_lines *lines,
                               struct weir_error *err)
{
    weir_status status;
    size_t n_started = 0;
    for (; n_started < n; n_started++) {
        int64_t i = (int64_t)n_started;
        WEIR_TRY_GOTO(start_task(step, i, int_of(step, "first") + i, lines, &pids[i], err), status,
                      failed);
    }
    WEIR_TRY_GOTO(lines != NULL ? gang_lines_start(lines, err) : WEIR_OK, status, failed);
    return WEIR_OK;
failed:
    for (size_t i = 0; i < n_started; i++) {
        (void)kill(-pids[i], SIGKILL);
        (void)weir_spawn_wait(pids[i]);
    }
    return status;
}

weir_status slurm_step_start(const json_t *said, struct weir_arena *arena, pid_t **out_pids,
                             size_t *out_n, struct gang_lines **out_lines, struct weir_error *err)
{
    struct step step = {.said = said, .arena = arena};
    WEIR_TRY(read_step(&step, err));
    const char *dir = slurm_relocate(text_of(&step, "dir"), step.from, step.to, arena);
    if (chdir(dir) != 0) {
        return weir_error_set_errno(err, errno, "cannot go to %s on this node", dir);
    }
    make_environment(&step);
    *out_n = (size_t)int_of(&step, "count");
    *out_pids = WEIR_ARENA_ARRAY(arena, *out_n, pid_t);
    *out_lines = NULL;
    if (*out_n > 1) {
        WEIR_TRY(gang_lines_open(STDOUT_FILENO, STDERR_FILENO, *out_n, out_lines, err));
    }
    weir_status status = start_tasks(&step, *out_pids, *out_n, *out_lines, err);
    if (status != WEIR_OK) {
        gang_lines_close(*out_lines);
        *out_lines = NULL;
    }
    return status;
}

static void signal_all(const pid_t *pids, size_t n, int number)
{
    for (size_t i = 0; i < n; i++) {
        (void)kill(-pids[i], number);
    }
}

/* Until all have ended: their highest exit status. With `is_killing` one that fails ends the others. */
static int wait_all(const sigset_t *signals, bool is_killing, const pid_t *pids, size_t n)
{
    int worst = 0, status;
    for (size_t n_ended = 0; n_ended < n;) {
        int got = sigwaitinfo(signals, NULL), before = worst;
        if (got > 0 && got != SIGCHLD) {
            signal_all(pids, n, got);
        }
        while (waitpid(-1, &status, WNOHANG) > 0) {
            int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            bool is_ours = is_killing && worst != 0; /* it was ended by us */
            worst = is_ours ? worst : WEIR_MAX(worst, own);
            n_ended++;
        }
        if (is_killing && before == 0 && worst != 0) {
            signal_all(pids, n, SIGTERM);
        }
    }
    return worst;
}

static weir_status run_step(const char *text, struct weir_arena *arena, int *out_status,
                            struct weir_error *err)
{
    sigset_t signals;
    pid_t *pids;
    size_t n;
    struct gang_lines *lines;
    WEIR_AUTO(weir_json_auto_free) json_t *step = json_loads(text, 0, NULL);
    if (step == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir-worker srun-step STEP");
    }
    slurm_signals_block(&signals);
    WEIR_TRY(slurm_step_start(step, arena, &pids, &n, &lines, err));
    *out_status = wait_all(&signals, json_is_true(json_object_get(step, "is_killing")), pids, n);
    gang_lines_close(lines);
    return WEIR_OK;
}

int weir_srun_step_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    int exit_status = 0;
    weir_arena_init(&arena, 0);
    weir_status status = run_step(argc == 2 ? argv[1] : "", &arena, &exit_status, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "srun: %s\n", err.message);
        exit_status = status == WEIR_ERR_NOT_FOUND ? WEIR_EXIT_NOT_FOUND : weir_status_exit(status);
    }
    weir_arena_fini(&arena);
    return exit_status;
}
