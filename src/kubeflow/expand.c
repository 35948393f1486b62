#include "kubeflow/expand.h"

#include "base/buf.h"
#include "base/names.h"

#include <ctype.h>
#include <string.h>

/* One text on its way. */
struct expansion {
    const struct kubeflow_reading *reading;
    const struct kubeflow_variables *variables;
    struct weir_buf text;
    bool is_for_shell; /* each text is a word in single quotes */
    bool has_runtime;  /* there is a variable that only the task knows */
    bool is_full;
};

static void add(struct expansion *expansion, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_quote = expansion->is_for_shell && text[i] == '\'';
        weir_status status = is_quote ? weir_buf_append(&expansion->text, "'\\''", 4)
                                      : weir_buf_append(&expansion->text, text + i, 1);
        expansion->is_full = expansion->is_full || status != WEIR_OK;
    }
}

/* A shell knows no other names. */
static bool is_shell_name(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') {
            return false;
        }
    }
    return len > 0 && !isdigit((unsigned char)name[0]);
}

/* A place that is filled in when the task knows it. */
static void add_runtime(struct expansion *expansion, const char *name)
{
    weir_status status = expansion->is_for_shell
                             ? weir_buf_printf(&expansion->text, "'\"${%s}\"'", name)
                             : weir_buf_printf(&expansion->text, "$(%s)", name);
    expansion->has_runtime = true;
    expansion->is_full = expansion->is_full || status != WEIR_OK;
}

/* What is written is $(NAME), of n bytes. */
static void add_variable(struct expansion *expansion, const char *written, size_t n)
{
    const struct kubeflow_reading *reading = expansion->reading;
    const char *name = weir_arena_memdup(reading->arena, written + 2, n - 3);
    const char *value = json_string_value(json_object_get(expansion->variables->env, name));
    bool is_runtime = json_object_get(expansion->variables->secrets, name) != NULL ||
                      weir_words_have(reading->runtime, name, n - 3);
    if (value != NULL) {
        add(expansion, value, strlen(value));
    } else if (is_runtime && is_shell_name(name)) {
        add_runtime(expansion, name);
    } else {
        add(expansion, written, n);
    }
}

/* How many bytes are none that stand for something else. */
static size_t plain_length(const struct expansion *expansion, const char *text)
{
    const char *file =
        expansion->reading->file != NULL ? strstr(text, expansion->reading->file) : NULL;
    size_t n = strcspn(text, "$");
    return file != NULL ? WEIR_MIN(n, (size_t)(file - text)) : n;
}

static void expand(struct expansion *expansion, const char *text)
{
    while (*text != '\0' && !expansion->is_full) {
        size_t n = plain_length(expansion, text);
        add(expansion, text, n);
        text += n;
        const char *end = text[0] == '$' && text[1] == '(' ? strchr(text, ')') : NULL;
        if (end != NULL) {
            add_variable(expansion, text, (size_t)(end - text) + 1);
            text = end + 1;
        } else if (text[0] == '$') {
            add(expansion, "$", 1);
            text += text[1] == '$' ? 2 : 1;
        } else if (text[0] != '\0') {
            add_runtime(expansion, expansion->reading->file_variable);
            text += strlen(expansion->reading->file);
        }
    }
}

static weir_status too_long(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    return weir_error_set(reading->err, WEIR_ERR_LIMIT,
                          "%s: longer than %zu bytes with its variables filled in", at.path,
                          KUBEFLOW_EXPANDED_MAX);
}

/* One text: plain, or as a word of a shell. */
static weir_status expand_one(struct kubeflow_reading *reading, struct kubeflow_place at,
                              const struct kubeflow_variables *variables, const char *text,
                              bool is_for_shell, const char **out, bool *out_has_runtime)
{
    struct expansion expansion = {
        .reading = reading, .variables = variables, .is_for_shell = is_for_shell};
    weir_buf_init(&expansion.text, KUBEFLOW_EXPANDED_MAX);
    expand(&expansion, text);
    const char *copy = weir_arena_memdup(
        reading->arena, expansion.text.len > 0 ? expansion.text.data : "", expansion.text.len);
    weir_buf_fini(&expansion.text);
    if (expansion.is_full) {
        return too_long(reading, at);
    }
    *out = is_for_shell ? weir_arena_printf(reading->arena, "'%s'", copy) : copy;
    *out_has_runtime = *out_has_runtime || expansion.has_runtime;
    return weir_arena_check(reading->arena, "document", reading->err);
}

weir_status kubeflow_expand(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const struct kubeflow_variables *variables, const char *text,
                            const char **out)
{
    bool has_runtime = false;
    WEIR_TRY(expand_one(reading, at, variables, text, false, out, &has_runtime));
    return has_runtime ? kubeflow_refuse(reading, at,
                                         "\"%.80s\" names a variable whose value only the task "
                                         "knows: name that one in command or args",
                                         text)
                       : WEIR_OK;
}

/* All words of both lists, appended to an array. */
static weir_status expand_lists(struct kubeflow_reading *reading,
                                const struct kubeflow_place lists[2],
                                const struct kubeflow_variables *variables, bool is_for_shell,
                                json_t *words, bool *out_has_runtime)
{
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; i < json_array_size(lists[l].value); i++) {
            struct kubeflow_place at = kubeflow_item(reading, lists[l], i);
            const char *text = NULL, *expanded;
            WEIR_TRY(kubeflow_text(reading, at, &text));
            if (text == NULL) {
                return kubeflow_wrong(reading, at, "a text");
            }
            WEIR_TRY(
                expand_one(reading, at, variables, text, is_for_shell, &expanded, out_has_runtime));
            json_array_append_new(words, weir_json_string(expanded, ""));
        }
        if (json_array_size(lists[l].value) == 0) {
            kubeflow_mark(reading, lists[l]);
        }
    }
    return WEIR_OK;
}

/* ["/bin/sh", "-c", "cd 'DIR' && exec 'WORD' …"] */
static weir_status wrap(struct kubeflow_reading *reading, const char *dir, const json_t *words,
                        json_t *out)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf script;
    struct expansion quoted = {.reading = reading, .is_for_shell = true};
    size_t i;
    const json_t *word;
    weir_buf_init(&script, 4 * KUBEFLOW_EXPANDED_MAX);
    weir_buf_init(&quoted.text, KUBEFLOW_EXPANDED_MAX);
    add(&quoted, dir != NULL ? dir : "", strlen(dir != NULL ? dir : ""));
    weir_status status = dir != NULL ? weir_buf_printf(&script, "cd '%s' && exec", quoted.text.data)
                                     : weir_buf_printf(&script, "exec");
    weir_buf_fini(&quoted.text);
    json_array_foreach(words, i, word)
    {
        status =
            status != WEIR_OK ? status : weir_buf_printf(&script, " %s", json_string_value(word));
    }
    json_array_clear(out);
    json_array_append_new(out, json_string("/bin/sh"));
    json_array_append_new(out, json_string("-c"));
    json_array_append_new(out, weir_json_string(script.data, ""));
    return status;
}

weir_status kubeflow_expand_words(struct kubeflow_reading *reading,
                                  const struct kubeflow_place lists[2], const char *dir,
                                  const struct kubeflow_variables *variables, json_t **out)
{
    bool has_runtime = false;
    json_t *words = *out = kubeflow_keep(reading, json_array());
    WEIR_TRY(expand_lists(reading, lists, variables, false, words, &has_runtime));
    if ((!has_runtime && dir == NULL) || json_array_size(words) == 0) {
        return WEIR_OK;
    }
    json_t *quoted = kubeflow_keep(reading, json_array());
    WEIR_TRY(expand_lists(reading, lists, variables, true, quoted, &has_runtime));
    return wrap(reading, dir, quoted, words) == WEIR_OK ? WEIR_OK : too_long(reading, lists[0]);
}
