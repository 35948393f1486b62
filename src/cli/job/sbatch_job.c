/* What the options of a script come to together: nodes, what each needs, an array, an environment. */
#include "cli/job/sbatch_private.h"

#include "base/numbers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX        1024 /* an array has no more, as a job has no more tasks */
#define SAVE_S           60   /* --signal says no time */
#define SAVE_MOST_S      3600
#define SIGNAL_TIME_MOST 65535

static int64_t at_least_one(int64_t value)
{
    return WEIR_MAX(value, (int64_t)1);
}

/* ---- nodes and tasks ------------------------------------------------------------------------------ */

/* "2", "2-4", "2k". */
static weir_status read_nodes(const struct sbatch_values *values, struct sbatch *out,
                              int64_t *least, struct weir_error *err)
{
    int line = values->lines[SBATCH_NODES];
    const char *text = values->nodes;
    char *end = NULL;
    *least = 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    long long most = 0, min = isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : 0;
    bool is_good = end != NULL;
    if (is_good && *end == '-' && isdigit((unsigned char)end[1])) {
        most = strtoll(end + 1, &end, 10);
        is_good = most >= min;
    } else if (is_good && (*end == 'k' || *end == 'K')) {
        min *= min <= PARTS_MAX ? 1024 : 1;
        end++;
    }
    if (!is_good || *end != '\0' || min < 1 || min > PARTS_MAX) {
        return sbatch_wrong(err, line, "nodes", text, "1 to 1024 nodes, or LEAST-MOST");
    }
    if (most > min) {
        sbatch_remark(out, line, "--nodes", "it gets the least of them; weir job run --nodes N");
    }
    *least = min;
    return WEIR_OK;
}

static weir_status settle_tasks(const struct sbatch_values *values, struct sbatch *out,
                                struct weir_error *err)
{
    int64_t nodes, per_node = values->tasks_per_node, tasks = values->tasks;
    WEIR_TRY(read_nodes(values, out, &nodes, err));
    if (nodes == 0 && per_node == 0 && tasks > 1 && values->gpus_per_task == NULL) {
        sbatch_remark(out, values->lines[SBATCH_TASKS], "--ntasks",
                      "all its tasks are on one node: say --nodes for more");
    }
    if (nodes == 0) {
        nodes = per_node > 0                    ? (at_least_one(tasks) + per_node - 1) / per_node
                : values->gpus_per_task != NULL ? at_least_one(tasks)
                                                : 1;
    }
    if (tasks > 0 && tasks < nodes) {
        sbatch_remark(out, values->lines[SBATCH_NODES], "--nodes",
                      "it gets no more nodes than it has tasks");
        nodes = tasks;
    }
    per_node = per_node > 0 && tasks <= nodes * per_node ? per_node
               : tasks > 0                               ? (tasks + nodes - 1) / nodes
                                                         : at_least_one(per_node);
    if (nodes > PARTS_MAX || per_node > PARTS_MAX) {
        return weir_error_set(
            err, WEIR_ERR_LIMIT, "line %d: --ntasks: a job has at most %d nodes with %d tasks each",
            WEIR_MAX(values->lines[SBATCH_TASKS], values->lines[SBATCH_TASKS_PER_NODE]), PARTS_MAX,
            PARTS_MAX);
    }
    out->nodes = nodes;
    out->tasks_per_node = per_node;
    out->tasks = tasks > 0 ? tasks : nodes * per_node;
    out->cpus_per_task = values->cpus_per_task;
    return WEIR_OK;
}

/* ---- accelerators --------------------------------------------------------------------------------- */

/* How many, and of which model. */
struct gpus {
    int64_t n;
    char *model; /* NULL: any */
};

/* "", "4", "h100" or "h100:4". */
static bool read_gpus(const char *text, struct weir_arena *arena, struct gpus *out)
{
    const char *colon = strrchr(text, ':'), *number = colon != NULL ? colon + 1 : text;
    bool is_number = *number != '\0' && strspn(number, "0123456789") == strlen(number);
    size_t model_len = is_number ? (size_t)(number - text) : strlen(text);
    model_len -= is_number && model_len > 0;
    bool is_good = strlen(number) <= 6 && (is_number || colon == NULL) &&
                   memchr(text, ':', model_len) == NULL && memchr(text, ',', model_len) == NULL &&
                   (!is_number || text[0] != ':');
    is_good = (is_good || (!is_number && colon == NULL)) && strchr(text, ',') == NULL;
    *out = (struct gpus){.n = is_number ? strtoll(number, NULL, 10) : 1};
    if (model_len > 0) {
        out->model = weir_arena_memdup(arena, text, model_len);
    }
    return is_good;
}

static weir_status read_gpu_option(const char *name, const char *text, int line,
                                   struct weir_arena *arena, struct gpus *out,
                                   struct weir_error *err)
{
    if (strchr(text, ',') != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "line %d: --%s=%.60s: a job has GPUs of one model: give one", line,
                              name, text);
    }
    return text[0] != '\0' && read_gpus(text, arena, out)
               ? WEIR_OK
               : sbatch_wrong(err, line, name, text, "a number, or MODEL:NUMBER");
}

/* "gpu:h100:2,shard:3,license:1" */
static weir_status read_gres(const struct sbatch_values *values, struct weir_arena *arena,
                             struct gpus *out, struct sbatch *remarks, struct weir_error *err)
{
    int line = values->lines[SBATCH_GRES];
    char *rest, *list = weir_arena_strdup(arena, values->gres);
    for (char *item = strtok_r(list, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
        size_t len = strcspn(item, ":");
        bool is_gpu = len == 3 && strncmp(item, "gpu", 3) == 0;
        if (is_gpu && out->n > 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "line %d: --gres=%.60s: a job has GPUs of one model: give one",
                                  line, values->gres);
        }
        if (is_gpu && !read_gpus(item + len + (item[len] == ':'), arena, out)) {
            return sbatch_wrong(err, line, "gres", item, "gpu, gpu:NUMBER or gpu:MODEL:NUMBER");
        }
        if (len == 5 && strncmp(item, "shard", 5) == 0) {
            sbatch_remark(remarks, line, "--gres=shard",
                          "how many make a GPU only Slurm's configuration says: weir job run "
                          "--gpu-share 0.5, or --gpu-memory 20G");
        } else if (!is_gpu && strcmp(item, "none") != 0) {
            sbatch_remark(remarks, line, weir_arena_printf(arena, "--gres=%.40s", item),
                          "there is no counterpart");
        }
    }
    return WEIR_OK;
}

/* All ways to say it; that of the last line wins over none: they must agree. */
static weir_status settle_gpus(const struct sbatch_values *values, struct weir_arena *arena,
                               struct sbatch *out, int64_t *out_n, struct weir_error *err)
{
    struct gpus node = {0}, task = {0}, all = {0}, gres = {0};
    if (values->gpus_per_node != NULL) {
        WEIR_TRY(read_gpu_option("gpus-per-node", values->gpus_per_node,
                                 values->lines[SBATCH_GPUS_PER_NODE], arena, &node, err));
    }
    if (values->gpus_per_task != NULL) {
        WEIR_TRY(read_gpu_option("gpus-per-task", values->gpus_per_task,
                                 values->lines[SBATCH_GPUS_PER_TASK], arena, &task, err));
        out->gpus_per_task = task.n;
        task.n *= out->tasks_per_node;
    }
    if (values->gpus != NULL) {
        int line = values->lines[SBATCH_GPUS];
        WEIR_TRY(read_gpu_option("gpus", values->gpus, line, arena, &all, err));
        if (all.n % out->nodes != 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "line %d: --gpus=%.60s: %lld nodes cannot have equally many of "
                                  "them: give --gpus-per-node",
                                  line, values->gpus, (long long)out->nodes);
        }
        all.n /= out->nodes;
    }
    if (values->gres != NULL) {
        WEIR_TRY(read_gres(values, arena, &gres, out, err));
    }
    const struct gpus *said[] = {&node, &task, &all, &gres};
    const struct gpus *chosen = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(said); i++) {
        if (said[i]->n > 0 && chosen != NULL && said[i]->n != chosen->n) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "--gres, --gpus, --gpus-per-node and --gpus-per-task: one says %lld "
                "GPUs of each node, another %lld: give one of them",
                (long long)chosen->n, (long long)said[i]->n);
        }
        chosen = said[i]->n > 0 && (chosen == NULL || chosen->model == NULL) ? said[i] : chosen;
    }
    *out_n = chosen != NULL ? chosen->n : 0;
    if (chosen != NULL) {
        out->gpus = chosen->model != NULL
                        ? weir_arena_printf(arena, "%lld:%s", (long long)chosen->n, chosen->model)
                        : weir_arena_printf(arena, "%lld", (long long)chosen->n);
    }
    return WEIR_OK;
}

/* ---- memory, time, arrays, environment ------------------------------------------------------------- */

static weir_status settle_memory(const struct sbatch_values *values, int64_t n_gpus,
                                 struct sbatch *out, struct weir_error *err)
{
    int n_said = (values->lines[SBATCH_MEMORY] > 0) + (values->lines[SBATCH_MEMORY_PER_CPU] > 0) +
                 (values->lines[SBATCH_MEMORY_PER_GPU] > 0);
    if (n_said > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--mem, --mem-per-cpu and --mem-per-gpu: give one of them");
    }
    if (values->memory_per_gpu > 0 && n_gpus == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "line %d: --mem-per-gpu: it has no GPUs",
                              values->lines[SBATCH_MEMORY_PER_GPU]);
    }
    const int64_t parts[][2] = {
        {values->memory, 1}, {values->memory_per_cpu, out->cpus}, {values->memory_per_gpu, n_gpus}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        if (parts[i][0] > 0 && parts[i][0] > ((int64_t)1 << 50) / parts[i][1]) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "--mem: more than 1024T of one node");
        }
        out->memory_bytes = parts[i][0] > 0 ? parts[i][0] * parts[i][1] : out->memory_bytes;
    }
    return WEIR_OK;
}

/* "1,3,5-9:2%2" */
static weir_status settle_array(const struct sbatch_values *values, struct weir_arena *arena,
                                struct sbatch *out, struct weir_error *err)
{
    int64_t *numbers;
    size_t n;
    int line = values->lines[SBATCH_ARRAY];
    if (values->array == NULL) {
        return WEIR_OK;
    }
    char *text = weir_arena_strdup(arena, values->array), *percent = strchr(text, '%');
    if (percent != NULL) {
        *percent = '\0';
        size_t len = strspn(percent + 1, "0123456789");
        out->parallel =
            len > 0 && len <= 6 && percent[1 + len] == '\0' ? strtoll(percent + 1, NULL, 10) : -1;
        if (out->parallel < 0) {
            return sbatch_wrong(err, line, "array", values->array, "a number behind %");
        }
        out->parallel = WEIR_MIN(out->parallel, (int64_t)PARTS_MAX);
    }
    weir_status status = weir_numbers_parse(text, PARTS_MAX, arena, &numbers, &n, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "line %d: --array: ", line);
    }
    if (out->nodes > 1) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "line %d: --array: each of its parts would have %lld nodes; here each "
            "has one: give --nodes=1, or submit a job for each part",
            line, (long long)out->nodes);
    }
    out->array = text;
    return WEIR_OK;
}

/* "ALL,NAME,NAME=VALUE", or NONE. */
static void settle_export(const struct sbatch_values *values, struct weir_arena *arena,
                          struct sbatch *out)
{
    char *rest, *list = weir_arena_strdup(arena, values->export != NULL ? values->export : "");
    for (char *item = strtok_r(list, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
        char **lines = strchr(item, '=') != NULL ? &out->env : &out->env_taken;
        if (strcasecmp(item, "all") == 0) {
            sbatch_remark(out, values->lines[SBATCH_EXPORT], "--export=ALL",
                          "the variables of this shell are not the job's: weir job run --env "
                          "NAME=VALUE, once for each");
        } else if (strcasecmp(item, "none") != 0 && strcasecmp(item, "nil") != 0) {
            *lines = weir_arena_printf(arena, "%s%s%s", *lines != NULL ? *lines : "",
                                       *lines != NULL ? "\n" : "", item);
        }
    }
}

static const struct {
    const char *name;
    int number;
    bool is_here; /* a job may be asked to save by it */
} signals[] = {{"HUP", 1, true},    {"INT", 2, true},    {"QUIT", 3, false},  {"ABRT", 6, false},
               {"KILL", 9, false},  {"USR1", 10, true},  {"USR2", 12, true},  {"ALRM", 14, false},
               {"TERM", 15, true},  {"CHLD", 17, false}, {"CONT", 18, false}, {"STOP", 19, false},
               {"TSTP", 20, false}, {"TTIN", 21, false}, {"TTOU", 22, false}, {"URG", 23, false},
               {"XCPU", 24, false}};

/* By name, with or without SIG, or number; an index, or -1. */
static int find_signal(const char *text)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    bool is_number =
        *text != '\0' && strlen(text) < 4 && strspn(text, "0123456789") == strlen(text);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(signals); i++) {
        if (strcasecmp(signals[i].name, name) == 0 ||
            (is_number && strtol(text, NULL, 10) == signals[i].number)) {
            return (int)i;
        }
    }
    return -1;
}

/* "B:USR1@60" */
static weir_status settle_signal(const struct sbatch_values *values, struct weir_arena *arena,
                                 struct sbatch *out, struct weir_error *err)
{
    int line = values->lines[SBATCH_SIGNAL];
    if (values->signal == NULL) {
        return WEIR_OK;
    }
    char *text = weir_arena_strdup(arena, values->signal), *colon = strchr(text, ':');
    char *at = colon != NULL ? colon + 1 : text, *sign = strchr(at, '@');
    size_t n_marks = colon != NULL ? (size_t)(colon - text) : 0;
    bool is_good = n_marks <= 2 && strspn(text, "RB") >= n_marks && (colon == NULL || n_marks > 0);
    int64_t seconds = SAVE_S;
    if (sign != NULL) {
        *sign = '\0';
        size_t len = strspn(sign + 1, "0123456789");
        is_good = is_good && len < 6 && sign[1 + len] == '\0';
        seconds = strtoll(sign + 1, NULL, 10);
    }
    int which = find_signal(at);
    if (!is_good || which < 0 || seconds > SIGNAL_TIME_MOST) {
        return sbatch_wrong(err, line, "signal", values->signal, "[B:]SIGNAL[@SECONDS]");
    }
    if (!signals[which].is_here) {
        sbatch_remark(out, line, "--signal",
                      "a job is asked to save by USR1, USR2, HUP, INT or TERM");
        return WEIR_OK;
    }
    out->is_signal_of_script = memchr(text, 'B', n_marks) != NULL;
    out->save_signal = weir_arena_strdup(arena, signals[which].name);
    out->save_within = weir_arena_printf(
        arena, "%llds", (long long)WEIR_MIN(at_least_one(seconds), (int64_t)SAVE_MOST_S));
    sbatch_remark(out, line, "--signal",
                  "it comes before the job is stopped for others; at its time limit comes TERM");
    return WEIR_OK;
}

weir_status sbatch_settle(const struct sbatch_values *values, struct weir_arena *arena,
                          struct sbatch *out, struct weir_error *err)
{
    int64_t n_gpus = 0;
    WEIR_TRY(settle_tasks(values, out, err));
    WEIR_TRY(settle_gpus(values, arena, out, &n_gpus, err));
    bool is_by_gpu = values->cpus_per_gpu > 0 && values->cpus_per_task == 0 && n_gpus > 0;
    out->cpus = is_by_gpu ? values->cpus_per_gpu * n_gpus
                          : out->tasks_per_node * at_least_one(values->cpus_per_task);
    WEIR_TRY(settle_memory(values, n_gpus, out, err));
    WEIR_TRY(settle_array(values, arena, out, err));
    WEIR_TRY(settle_signal(values, arena, out, err));
    settle_export(values, arena, out);
    out->name = values->name;
    out->dir = values->dir;
    out->is_fixed = values->is_fixed;
    if (out->is_fixed) {
        sbatch_remark(out, values->lines[SBATCH_NO_REQUEUE], "--no-requeue",
                      "it is not stopped for others; after the loss of a node it starts again");
    }
    if (values->minutes > 0) {
        out->time_limit = weir_arena_printf(arena, "%lldm", (long long)values->minutes);
    }
    return WEIR_OK;
}
