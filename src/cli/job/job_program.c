#include "cli/job/job_program.h"
#include "cli/job/program_files.h"

#include "base/quantity.h"
#include "base/record.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_BYTES 40

size_t job_program_words_before(const struct cli_call *call)
{
    for (int i = 0; i < call->argc; i++) {
        if (strcmp(call->argv[i], "--") == 0) {
            return call->n_words - (size_t)(call->argc - i - 1);
        }
    }
    return call->n_words;
}

char *job_program_name_tidy(struct weir_arena *arena, const char *text)
{
    char *name = weir_arena_strdup(arena, text);
    name[WEIR_MIN(strlen(name), (size_t)NAME_MAX_BYTES)] = '\0';
    for (char *p = name; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) &&
            strchr("._-", *p) == NULL) {
            *p = '-';
        }
    }
    return weir_name_is_valid(name) ? name : weir_arena_strdup(arena, "command");
}

char *job_program_name_of(struct cli_call *call, char **words, size_t n)
{
    const char *best = words[0];
    for (size_t i = 0; i < n && i < 8; i++) {
        const char *slash = strrchr(words[i], '/');
        const char *base = slash != NULL ? slash + 1 : words[i];
        const char *dot = strrchr(base, '.');
        if (words[i][0] != '-' && dot != NULL && dot > base && isalpha((unsigned char)dot[1])) {
            best = words[i];
            break;
        }
    }
    const char *slash = strrchr(best, '/');
    char *name = weir_arena_strdup(call->arena, slash != NULL ? slash + 1 : best);
    name[WEIR_MIN(strlen(name), (size_t)NAME_MAX_BYTES)] = '\0';
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot > name) {
        *dot = '\0';
    }
    return job_program_name_tidy(call->arena, name);
}

/* --env, joined by newlines. */
static weir_status add_env(const char *lines, json_t *spec, struct weir_error *err)
{
    json_t *env = json_object();
    json_object_set_new(spec, "env", env);
    while (lines != NULL && *lines != '\0') {
        size_t len = strcspn(lines, "\n"), name_len = strcspn(lines, "=");
        if (name_len == 0 || name_len >= len) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--env: expected NAME=VALUE, got \"%.*s\"",
                                  (int)WEIR_MIN(len, (size_t)40), lines);
        }
        char name[256];
        (void)snprintf(name, sizeof name, "%.*s", (int)WEIR_MIN(name_len, sizeof name - 1), lines);
        json_t *value = json_stringn(lines + name_len + 1, len - name_len - 1);
        if (value == NULL || json_object_set_new(env, name, value) != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--env %s: the value is no UTF-8", name);
        }
        lines += len + (lines[len] == '\n');
    }
    return WEIR_OK;
}

static weir_status add_python(struct cli_call *call, const char *path, json_t *spec,
                              struct weir_error *err)
{
    if (path == NULL) {
        return WEIR_OK;
    }
    weir_status status = program_files_read_python(call, path, spec, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "--python: ");
}

/* --secret, joined by newlines: NAME or VARIABLE=NAME. */
static void add_secrets(const char *lines, json_t *spec)
{
    json_t *list = json_array();
    while (lines != NULL && *lines != '\0') {
        size_t len = strcspn(lines, "\n");
        json_array_append_new(list, json_sprintf("%.*s", (int)len, lines));
        lines += len + (lines[len] == '\n');
    }
    if (json_array_size(list) > 0) {
        json_object_set(spec, "secrets", list);
    }
    json_decref(list);
}

/* One of --volume: "claim:datasets:/data:rw", "nfs:10.0.0.3:/home:/home". What it holds is looked at by the server. */
static weir_status add_volume(char *text, json_t *list, struct weir_error *err)
{
    static const struct {
        const char *prefix, *member;
    } sources[] = {{"claim:", "claim"}, {"nfs:", "nfs"}};

    size_t i = 0, len = strlen(text);
    bool is_writable = len > 3 && strcmp(text + len - 3, ":rw") == 0;
    bool is_read = len > 3 && strcmp(text + len - 3, ":ro") == 0;
    text[is_writable || is_read ? len - 3 : len] = '\0';
    while (i < WEIR_ARRAY_LEN(sources) &&
           strncmp(text, sources[i].prefix, strlen(sources[i].prefix)) != 0) {
        i++;
    }
    char *path =
        i < WEIR_ARRAY_LEN(sources) ? strrchr(text + strlen(sources[i].prefix), ':') : NULL;
    if (path == NULL || path[1] != '/') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--volume %.80s: expected claim:NAME:/PATH or nfs:HOST:/DIR:/PATH, "
                              "with :rw behind it for one that is written to",
                              text);
    }
    *path = '\0';
    json_t *volume = json_pack("{s:s,s:s}", "path", path + 1, sources[i].member,
                               text + strlen(sources[i].prefix));
    if (is_writable) {
        json_object_set_new(volume, "writable", json_true());
    }
    return json_array_append_new(list, volume) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "--volume: is no UTF-8");
}

/* --volume, joined by newlines. */
static weir_status add_volumes(struct cli_call *call, const char *lines, json_t *spec,
                               struct weir_error *err)
{
    if (lines == NULL) {
        return WEIR_OK;
    }
    json_t *list = json_array();
    json_object_set_new(spec, "volumes", list);
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");
        WEIR_TRY(add_volume(weir_arena_memdup(call->arena, lines, len), list, err));
        lines += len + (lines[len] == '\n');
    }
    return WEIR_OK;
}

static weir_status add_words(char **words, size_t n, json_t *spec, struct weir_error *err)
{
    json_t *argv = json_array();
    json_object_set_new(spec, "argv", argv);
    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(argv, json_string(words[i])) != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "word %zu of the command is no UTF-8",
                                  i + 1);
        }
    }
    return WEIR_OK;
}

static weir_status add_memory(const char *text, json_t *spec, struct weir_error *err)
{
    int64_t bytes = 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (!weir_bytes_parse(text, &bytes) || bytes == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--memory: expected a size as 512M or 2G, got \"%.40s\"", text);
    }
    json_object_set_new(spec, "memory_max_bytes", json_integer(bytes));
    return WEIR_OK;
}

weir_status job_program_add(struct cli_call *call, const struct job_program *program, char **words,
                            size_t n, json_t *spec, struct weir_error *err)
{
    if (n > 0) {
        WEIR_TRY(add_words(words, n, spec, err));
    }
    WEIR_TRY(add_volumes(call, program->volume, spec, err));
    if (program->cpu_millis >= 0) {
        json_object_set_new(spec, "cpus", weir_json_milli(program->cpu_millis));
    }
    WEIR_TRY(add_memory(program->memory, spec, err));
    WEIR_TRY(add_env(program->env, spec, err));
    if (strcmp(program->network, "host") != 0) { /* the server says what it may be */
        json_object_set_new(spec, "network", json_string(program->network));
    }
    add_secrets(program->secret, spec);
    return add_python(call, program->python, spec, err);
}
