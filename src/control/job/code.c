#include "control/job/code.h"

#include "job/code.h"
#include "job/secret.h"

#include <string.h>

#define SOURCE_MAX_BYTES 500

weir_status control_code_bring(struct control *control, struct weir_txn *txn, const char *project,
                               const json_t *spec, struct weir_error *err)
{
    WEIR_TRY(weir_code_bring(txn, project, spec, control->now_ms, err));
    return weir_secrets_check(txn, project, spec, control->arena, err);
}

/* The command, as a person would write it; its end is cut. */
static char *source_of(const struct control *control, const json_t *argv)
{
    size_t i;
    const json_t *word;
    char *text = weir_arena_strdup(control->arena, "");
    json_array_foreach(argv, i, word)
    {
        const char *value = json_string_value(word);
        if (value != NULL && strlen(text) + strlen(value) < SOURCE_MAX_BYTES) {
            text = weir_arena_printf(control->arena, "%s%s%s", text, i > 0 ? " " : "", value);
        }
    }
    return text;
}

static void add(const struct control *control, struct weir_tag *tags, size_t *n, const char *key,
                const char *value)
{
    if (value != NULL && value[0] != '\0') {
        tags[(*n)++] = (struct weir_tag){weir_arena_strdup(control->arena, key),
                                         weir_arena_strdup(control->arena, value)};
    }
}

size_t control_code_tags(const struct control *control, const json_t *spec,
                         struct weir_tag out[CONTROL_CODE_TAGS_MAX])
{
    static const struct {
        const char *tag, *member;
    } texts[] = {{"mlflow.source.git.commit", "commit"},
                 {"mlflow.source.git.branch", "branch"},
                 {"weir.code.manifest", "manifest"},
                 {"weir.code.patch", "patch"}};

    size_t n = 0;
    const json_t *code = json_object_get(spec, "code");
    const char *git = json_string_value(json_object_get(code, "git"));
    const char *repository = json_string_value(json_object_get(code, "repository"));
    const json_t *dirty = json_object_get(code, "dirty");
    add(control, out, &n, "mlflow.source.type", "JOB");
    add(control, out, &n, "mlflow.source.name", source_of(control, json_object_get(spec, "argv")));
    add(control, out, &n, "mlflow.source.git.repoURL", git != NULL ? git : repository);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        add(control, out, &n, texts[i].tag,
            json_string_value(json_object_get(code, texts[i].member)));
    }
    if (json_is_boolean(dirty)) {
        add(control, out, &n, "weir.code.dirty", json_is_true(dirty) ? "true" : "false");
    }
    return n;
}
