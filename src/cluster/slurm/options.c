#include "cluster/slurm/options.h"

#include "base/macros.h"
#include "base/quantity.h"

#include <string.h>

#define TIME_MAX_MS     ((int64_t)366 * 24 * 3600 * 1000)
#define LINES_MAX       64
#define SHARES_MAX      64
#define LINE_MAX_BYTES  1024
#define DIRECTIVE       "#SBATCH"
#define VALUE_MAX_BYTES 512

/* What Weir says of an allocation itself, or what would make another thing of it. */
static const char own_lines[] = "array clusters cluster-constraint chdir comment cpus-per-task "
                                "dependency exclude exclusive export export-file "
                                "get-user-env gid gres hold ignore-pbs job-name mem mem-per-cpu "
                                "mem-per-gpu nodes no-requeue nodelist ntasks "
                                "ntasks-per-node open-mode output error input parsable partition "
                                "requeue signal test-only time time-min uid "
                                "wait wrap help usage version batch quiet";

struct slurm_payer slurm_options_payer(const struct slurm_options *options, const char *queue)
{
    const json_t *own = queue != NULL ? json_object_get(options->queues, queue) : NULL;
    const char *account = json_string_value(json_object_get(own, "account"));
    const char *qos = json_string_value(json_object_get(own, "qos"));
    return (struct slurm_payer){account != NULL ? account : options->account,
                                qos != NULL ? qos : options->qos};
}

int64_t slurm_options_time_ms(const struct slurm_options *options)
{
    int64_t time_ms = 0;
    return options->time != NULL && weir_span_parse(options->time, &time_ms) ? time_ms : 0;
}

const char **slurm_options_lines(const struct slurm_options *options, struct weir_arena *arena,
                                 size_t *out_n)
{
    *out_n = json_array_size(options->lines);
    const char **lines = WEIR_ARENA_ARRAY(arena, *out_n + 1, const char *);
    for (size_t i = 0; i < *out_n; i++) {
        const char *line = json_string_value(json_array_get(options->lines, i));
        bool is_directive = strncmp(line, DIRECTIVE, strlen(DIRECTIVE)) == 0;
        line += is_directive ? strlen(DIRECTIVE) : 0;
        lines[i] = line + strspn(line, " \t");
    }
    return lines;
}

static bool is_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 127) {
            return false;
        }
    }
    return true;
}

/* sbatch takes the beginning of an option's name for it. */
static bool is_own_line(const char *name, size_t len)
{
    const char *word = own_lines;
    while (*word != '\0' && strncmp(word, name, len) != 0) {
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return *word != '\0';
}

static const char *wrong_line(const char *line, struct weir_arena *arena)
{
    static const char form[] = "an option of sbatch is expected, as \"--licenses=matlab:1\"";
    if (strncmp(line, "--", 2) != 0 || !is_plain(line) || strlen(line) > LINE_MAX_BYTES) {
        return weir_arena_printf(arena, "lines: in place of \"%.60s\" %s", line, form);
    }
    size_t len = strspn(line + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
    char end = line[2 + len];
    if (len < 2 || (end != '\0' && end != '=')) {
        return weir_arena_printf(arena, "lines: in place of \"%.60s\" %s", line, form);
    }
    return is_own_line(line + 2, len)
               ? weir_arena_printf(arena, "lines: --%.*s is not taken: Weir says it itself",
                                   (int)len, line + 2)
               : NULL;
}

static const char *wrong_lines(const struct slurm_options *options, struct weir_arena *arena)
{
    const char *wrong = NULL;
    size_t n;
    const char **lines = slurm_options_lines(options, arena, &n);
    if (n > LINES_MAX) {
        return weir_arena_printf(arena, "lines: at most %d, not %zu", LINES_MAX, n);
    }
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        wrong = wrong_line(lines[i], arena);
    }
    return wrong;
}

static const char *wrong_queues(const struct slurm_options *options, struct weir_arena *arena)
{
    const char *queue, *member;
    json_t *payer, *value;
    if (options->queues != NULL && !json_is_object(options->queues)) {
        return "queues: an object is expected, as {\"vision\": {\"account\": \"vis\", \"qos\": "
               "\"guar\"}}";
    }
    json_object_foreach((json_t *)options->queues, queue, payer)
    {
        if (!json_is_object(payer) || json_object_size(payer) == 0) {
            return weir_arena_printf(
                arena, "queues.%.60s: an object with \"account\" or \"qos\" or both is expected",
                queue);
        }
        json_object_foreach(payer, member, value)
        {
            bool is_known = strcmp(member, "account") == 0 || strcmp(member, "qos") == 0;
            const char *text = json_string_value(value);
            if (!is_known || text == NULL || text[0] == '\0' || !is_plain(text) ||
                strlen(text) > VALUE_MAX_BYTES) {
                return weir_arena_printf(arena,
                                         "queues.%.60s.%.60s: \"account\" and \"qos\" are "
                                         "expected, each a name of Slurm's",
                                         queue, member);
            }
        }
    }
    return NULL;
}

static const char *wrong_shares(const struct slurm_options *options, struct weir_arena *arena)
{
    const char *wrong = NULL;
    if (json_array_size(options->shares) > SHARES_MAX) {
        return weir_arena_printf(arena, "shares: at most %d, not %zu", SHARES_MAX,
                                 json_array_size(options->shares));
    }
    for (size_t i = 0; i < json_array_size(options->shares) && wrong == NULL; i++) {
        const char *share = json_string_value(json_array_get(options->shares, i));
        wrong = share[0] == '/' && is_plain(share) && strlen(share) <= VALUE_MAX_BYTES
                    ? NULL
                    : weir_arena_printf(arena,
                                        "shares: in place of \"%.60s\" the whole path of a folder "
                                        "is expected, as \"/home\" or \"/scratch:rw\"",
                                        share);
    }
    return wrong;
}

struct named {
    const char *name, *value;
};

static const char *wrong_texts(const struct slurm_options *options, struct weir_arena *arena)
{
    const struct named texts[] = {{"partition", options->partition},
                                  {"account", options->account},
                                  {"qos", options->qos},
                                  {"constraint", options->constraint},
                                  {"reservation", options->reservation},
                                  {"server", options->server},
                                  {"program", options->program},
                                  {"network", options->network}};
    const struct named paths[] = {{"bin", options->bin},
                                  {"conf", options->conf},
                                  {"ca_file", options->ca_file},
                                  {"dir", options->dir}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        const char *value = texts[i].value;
        if (value != NULL && (value[0] == '\0' || value[0] == '-' || !is_plain(value) ||
                              strlen(value) > VALUE_MAX_BYTES)) {
            return weir_arena_printf(arena, "%s: \"%.60s\" is none", texts[i].name, value);
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(paths); i++) {
        const char *value = paths[i].value;
        if (value != NULL && (value[0] != '/' || !is_plain(value))) {
            return weir_arena_printf(arena,
                                     "%s: \"%.60s\" is no whole path, which begins with \"/\"",
                                     paths[i].name, value);
        }
    }
    return NULL;
}

const char *slurm_options_wrong(const struct slurm_options *options, struct weir_arena *arena)
{
    int64_t time_ms = slurm_options_time_ms(options);
    const char *wrong = wrong_texts(options, arena);
    if (wrong == NULL && options->partition != NULL &&
        (strspn(options->partition, ",") > 0 || strstr(options->partition, ",,") != NULL ||
         options->partition[strlen(options->partition) - 1] == ',')) {
        wrong = "partition: a name is missing beside a comma";
    }
    if (wrong == NULL && options->time != NULL && (time_ms < 60000 || time_ms > TIME_MAX_MS)) {
        wrong = weir_arena_printf(
            arena, "time: \"%.60s\" is no time from a minute to a year, as \"8h\"", options->time);
    }
    if (wrong == NULL && options->server != NULL && strncmp(options->server, "http://", 7) != 0 &&
        strncmp(options->server, "https://", 8) != 0) {
        wrong = weir_arena_printf(
            arena, "server: \"%.60s\" is no address, as \"https://weir.example:8443\"",
            options->server);
    }
    if (wrong == NULL && options->ca_file != NULL && options->server != NULL &&
        strncmp(options->server, "http://", 7) == 0) {
        wrong = "ca_file: the server's address is http, for which no authority is asked; write "
                "https, or leave it out";
    }
    wrong = wrong != NULL ? wrong : wrong_queues(options, arena);
    wrong = wrong != NULL ? wrong : wrong_shares(options, arena);
    return wrong != NULL ? wrong : wrong_lines(options, arena);
}
