/* The options of sbatch: what each becomes, or what is done here instead. */
#include "cli/job/sbatch_private.h"

#include "base/names.h"

#include <ctype.h>
#include <string.h>

#define COUNT_MAX 1000000
#define MB        ((int64_t)1 << 20)

#define LOG      "what a job prints is kept by Weir: weir logs JOB; a script may redirect it itself"
#define MAIL     "who gets mail, and of what, the alerts say: weir explain alert-receivers"
#define NODES    "a node is chosen by its labels: weir job run --node-selector KEY=VALUE"
#define QUEUE    "each project has a queue: weir job run --project NAME"
#define LAYOUT   "Weir counts CPUs, and does not lay tasks out by sockets, cores and threads"
#define NOTHING  "there is no counterpart"
#define GPU_FORM "Weir gives each task its own devices"

const struct sbatch_option sbatch_options[] = {
    {"account", 'A', SBATCH_A_VALUE, SBATCH_REMARK, QUEUE},
    {"acctg-freq", 0, SBATCH_A_VALUE, SBATCH_REMARK, "use is measured anyway: weir top JOB"},
    {"array", 'a', SBATCH_A_VALUE, SBATCH_ARRAY, NULL},
    {"batch", 0, SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"bb", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"bbf", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"begin", 'b', SBATCH_A_VALUE, SBATCH_REMARK,
     "it may begin at once: weir job hold JOB, and weir job resume JOB then"},
    {"chdir", 'D', SBATCH_A_VALUE, SBATCH_DIR, NULL},
    {"cluster-constraint", 0, SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"clusters", 'M', SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"comment", 0, SBATCH_A_VALUE, SBATCH_REMARK, "a job has a name: weir job run --name NAME"},
    {"constraint", 'C', SBATCH_A_VALUE, SBATCH_REMARK,
     "a label has a key and a value: weir job run --node-selector KEY=VALUE"},
    {"container", 0, SBATCH_A_VALUE, SBATCH_REMARK, "weir job run --image IMAGE -- COMMAND"},
    {"contiguous", 0, SBATCH_NOTHING, SBATCH_REMARK,
     "weir job run --topology KEY: on nodes with the same value of a label"},
    {"core-spec", 'S', SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"cores-per-socket", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"cpu-freq", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"cpus-per-gpu", 0, SBATCH_A_VALUE, SBATCH_CPUS_PER_GPU, NULL},
    {"cpus-per-task", 'c', SBATCH_A_VALUE, SBATCH_CPUS_PER_TASK, NULL},
    {"deadline", 0, SBATCH_A_VALUE, SBATCH_REMARK,
     "it has its time limit alone: weir job run --time-limit TIME"},
    {"delay-boot", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"dependency", 'd', SBATCH_A_VALUE, SBATCH_REMARK,
     "it does not wait for other jobs: weir wait JOB, and submit then"},
    {"error", 'e', SBATCH_A_VALUE, SBATCH_REMARK, LOG},
    {"exclude", 'x', SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"exclusive", 0, SBATCH_PERHAPS, SBATCH_REMARK,
     "it shares its nodes: ask for all their CPUs, weir job run --cpus N"},
    {"export", 0, SBATCH_A_VALUE, SBATCH_EXPORT, NULL},
    {"export-file", 0, SBATCH_A_VALUE, SBATCH_REMARK,
     "weir job run --env NAME=VALUE, once for each"},
    {"extra-node-info", 'B', SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"get-user-env", 0, SBATCH_PERHAPS, SBATCH_REMARK,
     "weir job run --env NAME=VALUE, once for each"},
    {"gid", 0, SBATCH_A_VALUE, SBATCH_REMARK, "a job has a user of its own"},
    {"gpu-bind", 0, SBATCH_A_VALUE, SBATCH_REMARK, GPU_FORM},
    {"gpu-freq", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"gpus", 'G', SBATCH_A_VALUE, SBATCH_GPUS, NULL},
    {"gpus-per-node", 0, SBATCH_A_VALUE, SBATCH_GPUS_PER_NODE, NULL},
    {"gpus-per-socket", 0, SBATCH_A_VALUE, SBATCH_REMARK, "say --gpus-per-node"},
    {"gpus-per-task", 0, SBATCH_A_VALUE, SBATCH_GPUS_PER_TASK, NULL},
    {"gres", 0, SBATCH_A_VALUE, SBATCH_GRES, NULL},
    {"gres-flags", 0, SBATCH_A_VALUE, SBATCH_REMARK, GPU_FORM},
    {"hint", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"hold", 'H', SBATCH_NOTHING, SBATCH_REMARK, "it may begin at once: weir job hold JOB"},
    {"ignore-pbs", 0, SBATCH_NOTHING, SBATCH_REMARK, "lines #PBS are never read"},
    {"input", 'i', SBATCH_A_VALUE, SBATCH_REMARK, "its input is empty: redirect it in the script"},
    {"job-name", 'J', SBATCH_A_VALUE, SBATCH_NAME, NULL},
    {"kill-on-invalid-dep", 0, SBATCH_A_VALUE, SBATCH_REMARK, "jobs do not wait for others"},
    {"licenses", 'L', SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"mail-type", 0, SBATCH_A_VALUE, SBATCH_REMARK, MAIL},
    {"mail-user", 0, SBATCH_A_VALUE, SBATCH_REMARK, MAIL},
    {"mcs-label", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"mem", 0, SBATCH_A_VALUE, SBATCH_MEMORY, NULL},
    {"mem-bind", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"mem-per-cpu", 0, SBATCH_A_VALUE, SBATCH_MEMORY_PER_CPU, NULL},
    {"mem-per-gpu", 0, SBATCH_A_VALUE, SBATCH_MEMORY_PER_GPU, NULL},
    {"mincpus", 0, SBATCH_A_VALUE, SBATCH_REMARK, "say --cpus-per-task"},
    {"network", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"nice", 0, SBATCH_PERHAPS, SBATCH_REMARK, "weir job run --priority N"},
    {"no-kill", 'k', SBATCH_PERHAPS, SBATCH_REMARK, "a job that loses a node starts again"},
    {"no-requeue", 0, SBATCH_NOTHING, SBATCH_NO_REQUEUE, NULL},
    {"nodefile", 'F', SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"nodelist", 'w', SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"nodes", 'N', SBATCH_A_VALUE, SBATCH_NODES, NULL},
    {"ntasks", 'n', SBATCH_A_VALUE, SBATCH_TASKS, NULL},
    {"ntasks-per-core", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"ntasks-per-gpu", 0, SBATCH_A_VALUE, SBATCH_REMARK, "say --ntasks and --gpus"},
    {"ntasks-per-node", 0, SBATCH_A_VALUE, SBATCH_TASKS_PER_NODE, NULL},
    {"ntasks-per-socket", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"open-mode", 0, SBATCH_A_VALUE, SBATCH_REMARK, LOG},
    {"output", 'o', SBATCH_A_VALUE, SBATCH_REMARK, LOG},
    {"overcommit", 'O', SBATCH_NOTHING, SBATCH_REMARK,
     "say --cpus-per-task; srun has --overcommit"},
    {"oversubscribe", 's', SBATCH_NOTHING, SBATCH_REMARK, "it shares its nodes anyway"},
    {"parsable", 0, SBATCH_NOTHING, SBATCH_REMARK, "weir job run -o json"},
    {"partition", 'p', SBATCH_A_VALUE, SBATCH_REMARK, QUEUE "; or --node-selector KEY=VALUE"},
    {"power", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
    {"prefer", 0, SBATCH_A_VALUE, SBATCH_REMARK, NODES},
    {"priority", 0, SBATCH_A_VALUE, SBATCH_REMARK, "weir job run --priority N, of 0 to 1000"},
    {"profile", 0, SBATCH_A_VALUE, SBATCH_REMARK, "use is measured anyway: weir top JOB"},
    {"propagate", 0, SBATCH_PERHAPS, SBATCH_REMARK, "the limits of this shell are not the job's"},
    {"qos", 'q', SBATCH_A_VALUE, SBATCH_REMARK, QUEUE "; within it goes --priority N"},
    {"quiet", 'Q', SBATCH_NOTHING, SBATCH_REMARK, "weir job run prints one line"},
    {"reboot", 0, SBATCH_NOTHING, SBATCH_REMARK, NOTHING},
    {"requeue", 0, SBATCH_NOTHING, SBATCH_REQUEUE, NULL},
    {"reservation", 0, SBATCH_A_VALUE, SBATCH_REMARK, "weir explain reservations"},
    {"signal", 0, SBATCH_A_VALUE, SBATCH_SIGNAL, NULL},
    {"sockets-per-node", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"spread-job", 0, SBATCH_NOTHING, SBATCH_REMARK, "say --nodes"},
    {"switches", 0, SBATCH_A_VALUE, SBATCH_REMARK,
     "weir job run --topology KEY: on nodes with the same value of a label"},
    {"test-only", 0, SBATCH_NOTHING, SBATCH_REMARK, "it is submitted all the same"},
    {"thread-spec", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"threads-per-core", 0, SBATCH_A_VALUE, SBATCH_REMARK, LAYOUT},
    {"time", 't', SBATCH_A_VALUE, SBATCH_TIME, NULL},
    {"time-min", 0, SBATCH_A_VALUE, SBATCH_REMARK, "its time limit is that of --time"},
    {"tmp", 0, SBATCH_A_VALUE, SBATCH_REMARK, "weir job run --set disk_max_bytes=N"},
    {"uid", 0, SBATCH_A_VALUE, SBATCH_REMARK, "a job has a user of its own"},
    {"use-min-nodes", 0, SBATCH_NOTHING, SBATCH_REMARK, "say --nodes"},
    {"verbose", 'v', SBATCH_NOTHING, SBATCH_REMARK, "weir job run prints one line"},
    {"wait", 'W', SBATCH_NOTHING, SBATCH_REMARK, "weir job run --follow"},
    {"wait-all-nodes", 0, SBATCH_A_VALUE, SBATCH_REMARK,
     "all its nodes are there before it begins"},
    {"wckey", 0, SBATCH_A_VALUE, SBATCH_REMARK, NOTHING},
};
const size_t sbatch_n_options = WEIR_ARRAY_LEN(sbatch_options);

weir_status sbatch_option_find(const char *name, size_t len, const struct sbatch_option **out,
                               struct weir_error *err)
{
    struct weir_names fitting = {0};
    struct weir_nearest nearest = {0};
    size_t n = 0;
    for (size_t i = 0; i < sbatch_n_options; i++) {
        const char *own = sbatch_options[i].name;
        bool is_fitting = strncmp(own, name, len) == 0;
        if (is_fitting && own[len] == '\0') {
            *out = &sbatch_options[i];
            return WEIR_OK;
        }
        if (is_fitting) {
            n++;
            *out = &sbatch_options[i];
            weir_names_add(&fitting, own, strlen(own));
        }
        weir_nearest_see(&nearest, name, len, own);
    }
    if (n > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "may be any of %.200s", fitting.text);
    }
    return n == 1 ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_INVALID, "sbatch has no such option%s%s%s",
                                   nearest.name != NULL ? "; did you mean --" : "",
                                   nearest.name != NULL ? nearest.name : "",
                                   nearest.name != NULL ? "?" : "");
}

const struct sbatch_option *sbatch_option_of_letter(char letter)
{
    for (size_t i = 0; i < sbatch_n_options; i++) {
        if (sbatch_options[i].short_name == letter) {
            return &sbatch_options[i];
        }
    }
    return NULL;
}

weir_status sbatch_wrong(struct weir_error *err, int line, const char *option, const char *given,
                         const char *expected)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "line %d: --%s: expected %s, got \"%.60s\"", line,
                          option, expected, given);
}

void sbatch_remark(struct sbatch *out, int line, const char *option, const char *say)
{
    for (size_t i = 0; i < out->n_remarks; i++) {
        if (strcmp(out->remarks[i].option, option) == 0 && strcmp(out->remarks[i].say, say) == 0) {
            return;
        }
    }
    if (out->n_remarks < SBATCH_REMARKS_MAX) {
        size_t at = out->n_remarks++;
        for (; at > 0 && out->remarks[at - 1].line > line; at--) {
            out->remarks[at] = out->remarks[at - 1];
        }
        out->remarks[at] = (struct sbatch_remark){line, option, say};
    }
}

/* ---- values --------------------------------------------------------------------------------------- */

/* Digits from *at on, at most `max`; -1: there are none, or it is more. */
static int64_t read_digits(const char **at, int64_t max)
{
    const char *begin = *at;
    int64_t value = 0;
    for (; isdigit((unsigned char)**at) && value <= max; (*at)++) {
        value = value * 10 + (**at - '0');
    }
    return *at > begin && value <= max ? value : -1;
}

static weir_status read_count(const struct sbatch_option *option, const char *given, int line,
                              int64_t *out, struct weir_error *err)
{
    const char *at = given;
    int64_t value = read_digits(&at, COUNT_MAX);
    if (value < 1 || *at != '\0') {
        return sbatch_wrong(err, line, option->name, given, "a number from 1 on");
    }
    *out = value;
    return WEIR_OK;
}

/* "4G": without a unit MB, and whole MB, of 1024 times 1024. 0 is all of a node. */
static weir_status read_memory(const struct sbatch_option *option, const char *given, int line,
                               int64_t *out, struct sbatch *remarks, struct weir_error *err)
{
    static const char units[] = "KMGT";
    const char *at = given;
    int64_t value = read_digits(&at, (int64_t)1 << 40);
    const char *unit = *at != '\0' ? strchr(units, toupper((unsigned char)*at)) : &units[1];
    at += *at != '\0' && unit != NULL;
    at += (*at == 'B' || *at == 'b') && at[-1] != 'B' && unit != NULL &&
          !isdigit((unsigned char)at[-1]);
    if (value < 0 || unit == NULL || *at != '\0') {
        return sbatch_wrong(err, line, option->name, given, "a size as 512M, 4G or 4000, of MB");
    }
    int64_t factor = (int64_t)1 << (10 * (unit - units + 1));
    if (value > ((int64_t)1 << 50) / factor) {
        return sbatch_wrong(err, line, option->name, given, "a size of at most 1024T");
    }
    *out = (value * factor + MB - 1) / MB * MB;
    if (value == 0) {
        sbatch_remark(remarks, line, "--mem",
                      "all memory of a node cannot be asked for: it has no limit here; weir job "
                      "run --memory SIZE");
    }
    return WEIR_OK;
}

/* M, M:S, H:M:S, D-H, D-H:M and D-H:M:S, as whole minutes, rounded up; 0: no limit. */
static weir_status read_time(const char *given, int line, int64_t *out, struct weir_error *err)
{
    static const char expected[] = "M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, of at most 366 days";
    int64_t parts[3] = {0}, days = 0, most = (int64_t)366 * 24 * 3600;
    const char *at = given;
    size_t n = 0;
    if (strcasecmp(given, "infinite") == 0 || strcasecmp(given, "unlimited") == 0) {
        *out = 0;
        return WEIR_OK;
    }
    bool has_days = given[strspn(given, "0123456789")] == '-';
    if (has_days) {
        days = read_digits(&at, 366);
        at++;
    }
    for (bool is_more = days >= 0 && !(has_days && *at == '\0'); is_more && n < 3; n++) {
        parts[n] = read_digits(&at, most);
        is_more = parts[n] >= 0 && *at == ':';
        at += is_more && n < 2;
    }
    bool is_good = days >= 0 && *at == '\0' && (n > 0 || has_days);
    for (size_t i = 0; i < n; i++) {
        is_good = is_good && parts[i] >= 0;
    }
    if (!is_good) {
        return sbatch_wrong(err, line, "time", given, expected);
    }
    int64_t seconds = has_days ? ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]
                      : n == 3 ? (parts[0] * 60 + parts[1]) * 60 + parts[2]
                               : parts[0] * 60 + parts[1];
    if (seconds > most) {
        return sbatch_wrong(err, line, "time", given, expected);
    }
    *out = (seconds + 59) / 60;
    return WEIR_OK;
}

/* Where a text is kept as it is written; NULL: the value is no text. */
static char **text_of(struct sbatch_values *values, enum sbatch_value value)
{
    switch ((int)value) {
    case SBATCH_ARRAY:
        return &values->array;
    case SBATCH_NAME:
        return &values->name;
    case SBATCH_DIR:
        return &values->dir;
    case SBATCH_EXPORT:
        return &values->export;
    case SBATCH_GPUS:
        return &values->gpus;
    case SBATCH_GPUS_PER_NODE:
        return &values->gpus_per_node;
    case SBATCH_GPUS_PER_TASK:
        return &values->gpus_per_task;
    case SBATCH_GRES:
        return &values->gres;
    case SBATCH_NODES:
        return &values->nodes;
    case SBATCH_SIGNAL:
        return &values->signal;
    default:
        return NULL;
    }
}

weir_status sbatch_take(const struct sbatch_option *option, const char *given, int line,
                        struct weir_arena *arena, struct sbatch_values *values, struct sbatch *out,
                        struct weir_error *err)
{
    char **text = text_of(values, option->value);
    values->lines[option->value] = line;
    if (text != NULL) {
        *text = weir_arena_strdup(arena, given);
        return WEIR_OK;
    }
    switch ((int)option->value) {
    case SBATCH_TASKS:
        return read_count(option, given, line, &values->tasks, err);
    case SBATCH_TASKS_PER_NODE:
        return read_count(option, given, line, &values->tasks_per_node, err);
    case SBATCH_CPUS_PER_TASK:
        return read_count(option, given, line, &values->cpus_per_task, err);
    case SBATCH_CPUS_PER_GPU:
        return read_count(option, given, line, &values->cpus_per_gpu, err);
    case SBATCH_MEMORY:
        return read_memory(option, given, line, &values->memory, out, err);
    case SBATCH_MEMORY_PER_CPU:
        return read_memory(option, given, line, &values->memory_per_cpu, out, err);
    case SBATCH_MEMORY_PER_GPU:
        return read_memory(option, given, line, &values->memory_per_gpu, out, err);
    case SBATCH_TIME:
        return read_time(given, line, &values->minutes, err);
    case SBATCH_REQUEUE:
    case SBATCH_NO_REQUEUE:
        values->is_fixed = option->value == SBATCH_NO_REQUEUE;
        return WEIR_OK;
    default:
        sbatch_remark(out, line, weir_arena_printf(arena, "--%s", option->name), option->say);
        return WEIR_OK;
    }
}
