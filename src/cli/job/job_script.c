#include "cli/job/job_script.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

weir_status job_script_find(struct cli_call *call, const char *word, struct job_script **out,
                            struct weir_error *err)
{
    struct stat info;
    size_t len;
    struct job_script *script = weir_arena_alloc(call->arena, sizeof *script);
    *out = NULL;
    if (stat(word, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size > (off_t)SBATCH_SCRIPT_MAX_BYTES) {
        return WEIR_OK;
    }
    struct weir_error ignored; /* what cannot be read is told where it is needed */
    if (weir_file_read(word, SBATCH_SCRIPT_MAX_BYTES, call->arena, &script->text, &len, &ignored) !=
        WEIR_OK) {
        return WEIR_OK;
    }
    script->path = word;
    weir_status status = sbatch_read(script->text, len, call->arena, &script->head, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", word);
    }
    *out = script->head.has_options ? script : NULL;
    return WEIR_OK;
}

/* ---- what the command does not say ---------------------------------------------------------------- */

static void fill_text(char **option, char *value)
{
    *option = *option == NULL ? value : *option;
}

/* "--export=NAME": with the value that it has here. */
static void add_taken(struct cli_call *call, const char *lines, char **env)
{
    char *rest, *list = weir_arena_strdup(call->arena, lines != NULL ? lines : "");
    for (char *name = strtok_r(list, "\n", &rest); name != NULL;
         name = strtok_r(NULL, "\n", &rest)) {
        const char *value = getenv(name);
        if (value != NULL) {
            *env = weir_arena_printf(call->arena, "%s%s%s=%s", *env != NULL ? *env : "",
                                     *env != NULL ? "\n" : "", name, value);
        }
    }
}

/* In front of those of the command, which so win. */
static void fill_environment(struct cli_call *call, const struct sbatch *head, char **env)
{
    char *own = head->env;
    add_taken(call, head->env_taken, &own);
    if (own != NULL) {
        *env = *env != NULL ? weir_arena_printf(call->arena, "%s\n%s", own, *env) : own;
    }
}

/* Tasks and nodes: what is given changes what the other comes to. */
static void fill_tasks(struct cli_call *call, const struct sbatch *head,
                       struct job_script_asks *asks)
{
    bool has_tasks = cli_has_flag(call, "--tasks"), has_nodes = *asks->nodes > 0;
    *asks->nodes = has_nodes ? *asks->nodes : head->nodes;
    *asks->tasks = has_tasks   ? *asks->tasks
                   : has_nodes ? *asks->nodes * head->tasks_per_node
                               : head->tasks;
    asks->tasks_per_node = WEIR_MAX((*asks->tasks + *asks->nodes - 1) / *asks->nodes,
                                    has_tasks ? (int64_t)1 : head->tasks_per_node);
    if (!cli_has_flag(call, "--cpus")) {
        int64_t each = WEIR_MAX(head->cpus_per_task, (int64_t)1);
        asks->program->cpu_millis = 1000 * (has_tasks ? asks->tasks_per_node * each : head->cpus);
    }
}

void job_script_fill(struct cli_call *call, const struct job_script *script,
                     struct job_script_asks *asks)
{
    const struct sbatch *head = &script->head;
    fill_tasks(call, head, asks);
    fill_text(asks->name,
              head->name != NULL ? job_program_name_tidy(call->arena, head->name) : NULL);
    fill_text(&asks->ask->gpus, head->gpus);
    fill_text(&asks->ask->time_limit, head->time_limit);
    if (asks->ask->save_signal == NULL) {
        asks->ask->save_signal = head->save_signal;
        fill_text(&asks->ask->save_within, head->save_within);
    }
    if (head->memory_bytes > 0) {
        fill_text(&asks->program->memory,
                  weir_arena_printf(call->arena, "%lld", (long long)head->memory_bytes));
    }
    if (head->is_fixed && !cli_has_flag(call, "--preemptible")) {
        asks->ask->is_preemptible = false;
    }
    fill_environment(call, head, &asks->program->env);
    if (asks->code->git == NULL &&
        asks->code->has_files) { /* a script is about its folder's files */
        fill_text(&asks->code->dir,
                  head->dir != NULL ? head->dir : weir_arena_strdup(call->arena, "."));
    }
}

/* ---- the specification ---------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void set_number(json_t *spec, const char *name, int64_t value)
{
    if (value > 0) {
        json_object_set_new(spec, name, json_integer(value));
    }
}

static void add_members(struct cli_call *call, const struct job_script *script,
                        const struct job_script_asks *asks, json_t *spec)
{
    const struct sbatch *head = &script->head;
    const char *array = *asks->array > 0
                            ? weir_arena_printf(call->arena, "0-%lld", (long long)*asks->array - 1)
                            : head->array;
    const char *name = head->name != NULL ? head->name : base_of(script->path);
    set_number(spec, "nodes", *asks->nodes);
    set_number(spec, "tasks", *asks->tasks);
    set_number(spec, "tasks_per_node", asks->tasks_per_node);
    set_number(spec, "cpus_per_task", head->cpus_per_task);
    set_number(spec, "gpus_per_task", head->gpus_per_task);
    set_number(spec, "parallel", *asks->parallel > 0 ? *asks->parallel : head->parallel);
    json_object_set_new(spec, "job_name", json_string(name));
    if (array != NULL) {
        json_object_set_new(spec, "array", json_string(array));
    }
    if (head->save_signal != NULL && head->is_signal_of_script) {
        json_object_set_new(spec, "signal_for", json_string("script"));
    }
}

void job_script_add(struct cli_call *call, const struct job_script *script,
                    const struct job_script_asks *asks, char **arguments, size_t n_arguments,
                    json_t *spec, char ***out_words, size_t *out_n, bool *out_is_sent)
{
    const struct sbatch *head = &script->head;
    const char *path = script->path, *dir = asks->code->dir;
    bool is_within = path[0] != '/' && path[0] != '-' && strstr(path, "..") == NULL;
    *out_is_sent = is_within && dir != NULL && strcmp(dir, ".") == 0;
    char **words = WEIR_ARENA_ARRAY(call->arena, head->n_argv + 1 + n_arguments, char *);
    size_t n = head->n_argv;
    memcpy(words, head->argv, n * sizeof *words);
    words[n++] = weir_arena_strdup(call->arena, *out_is_sent ? path : base_of(path));
    if (n_arguments > 0) {
        memcpy(words + n, arguments, n_arguments * sizeof *words);
    }
    if (!*out_is_sent) {
        json_object_set_new(spec, "files", json_pack("{s:s}", base_of(path), script->text));
    }
    add_members(call, script, asks, spec);
    *out_words = words;
    *out_n = n + n_arguments;
}

/* ---- remarks -------------------------------------------------------------------------------------- */

void job_script_warn(const struct job_script *script)
{
    const struct sbatch *head = &script->head;
    if (head->n_remarks > 0) {
        (void)fprintf(stderr, "weir: warning: not all of %s is taken as it stands:\n",
                      script->path);
    }
    for (size_t i = 0; i < head->n_remarks; i++) {
        (void)fprintf(stderr, "  line %d, %s: %s\n", head->remarks[i].line, head->remarks[i].option,
                      head->remarks[i].say);
    }
}

json_t *job_script_remarks(const struct job_script *script)
{
    json_t *list = json_array();
    for (size_t i = 0; i < script->head.n_remarks; i++) {
        const struct sbatch_remark *remark = &script->head.remarks[i];
        json_array_append_new(list, json_pack("{s:i,s:s,s:s}", "line", remark->line, "option",
                                              remark->option, "instead", remark->say));
    }
    return list;
}
