#include "kubeflow/kind.h"

#include "base/names.h"

#include <string.h>

static const struct kubeflow_kind *const kinds[] = {
#define WEIR_KIND(name) &kubeflow_##name,
#include "kubeflow/kinds.def"
#undef WEIR_KIND
};

struct document {
    struct kubeflow_place version, kind, metadata, spec;
};

static const struct kubeflow_field fields[] = {
    KUBEFLOW_TAKEN(document, version, "apiVersion", TEXT),
    KUBEFLOW_TAKEN(document, kind, "kind", TEXT),
    KUBEFLOW_TAKEN(document, metadata, "metadata", OBJECT),
    KUBEFLOW_TAKEN(document, spec, "spec", OBJECT),
    KUBEFLOW_REMARK("status", "is what a cluster wrote about it"),
};

static const char *text_of(const json_t *document, const char *member)
{
    const char *text = json_string_value(json_object_get(document, member));
    return text != NULL ? text : "";
}

bool weir_kubeflow_is(const json_t *document)
{
    return json_object_get(document, "apiVersion") != NULL;
}

bool weir_kubeflow_is_config_map(const json_t *document)
{
    return strcmp(text_of(document, "kind"), "ConfigMap") == 0 &&
           strcmp(text_of(document, "apiVersion"), "v1") == 0;
}

const json_t *weir_kubeflow_list(const json_t *document)
{
    const json_t *items = json_object_get(document, "items");
    bool is_list = strcmp(text_of(document, "kind"), "List") == 0 &&
                   strcmp(text_of(document, "apiVersion"), "v1") == 0;
    return is_list && json_is_array(items) ? items : NULL;
}

/* Documents that are none of these, and what to do instead. */
static const struct other {
    const char *kind, *say;
} others[] = {
    {"Secret", "secrets are the project's: weir secret set NAME.KEY"},
    {"PersistentVolumeClaim", "tasks see folders of the nodes (hostPath) and datasets"},
    {"PersistentVolume", "tasks see folders of the nodes (hostPath) and datasets"},
    {"Namespace", "an admin makes projects: weir project add NAME"},
    {"LocalQueue", "queues are set by weir queue set"},
    {"ClusterQueue", "queues are set by weir queue set"},
    {"ResourceFlavor", "nodes have labels: weir node label"},
    {"Service", "tasks of a job meet by themselves; weir service run brings browsers to one"},
    {"Deployment", "a model is served by weir deploy"},
    {"CronJob", "an ION runs programs at times: docs/howto/write-an-ion.md"},
};

static weir_status refuse_kind(struct kubeflow_reading *reading, const struct document *document)
{
    const char *kind = json_string_value(document->kind.value), *list = "";
    kind = kind != NULL ? kind : "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        if (strcmp(others[i].kind, kind) == 0) {
            return kubeflow_refuse(reading, document->kind, "%s is no job: %s", kind,
                                   others[i].say);
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        list = weir_arena_printf(reading->arena, "%s%s%s", list, i > 0 ? ", " : "", kinds[i]->name);
    }
    struct kubeflow_place at = {.value = document->kind.value, .path = "$.kind"};
    return kubeflow_refuse(reading, at, "\"%.60s\" does not become a job: %s and ConfigMap do",
                           kind, list);
}

/* The row of apiVersion and kind. */
static weir_status find_kind(struct kubeflow_reading *reading, const struct document *document,
                             const struct kubeflow_kind **out)
{
    const char *kind = json_string_value(document->kind.value);
    const char *version = json_string_value(document->version.value);
    kubeflow_mark(reading, document->kind);
    kubeflow_mark(reading, document->version);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (kind == NULL || strcmp(kinds[i]->name, kind) != 0) {
            continue;
        }
        if (version == NULL || !weir_words_have(kinds[i]->versions, version, strlen(version))) {
            struct kubeflow_place at = {.value = document->version.value, .path = "$.apiVersion"};
            return kubeflow_wrong(reading, at, kinds[i]->versions);
        }
        *out = kinds[i];
        return WEIR_OK;
    }
    return refuse_kind(reading, document);
}

static json_t *body_of(const struct kubeflow_draft *draft)
{
    json_t *body = json_pack("{s:s,s:s,s:I,s:O}", "name", draft->name, "kind", draft->kind,
                             "max_restarts", (json_int_t)draft->max_restarts, "spec", draft->spec);
    if (draft->project != NULL) {
        json_object_set_new(body, "project", weir_json_string(draft->project, ""));
    }
    if (draft->is_held) {
        json_object_set_new(body, "held", json_true());
    }
    if (draft->priority >= 0) {
        json_object_set_new(draft->spec, "priority", json_integer(draft->priority));
    }
    return body;
}

static weir_status read_document(struct kubeflow_reading *reading, struct kubeflow_place root)
{
    struct document document = {0};
    struct kubeflow_draft draft = {.priority = -1,
                                   .spec = kubeflow_keep(reading, json_object()),
                                   .image = reading->given->image};
    const struct kubeflow_kind *kind = NULL;
    WEIR_TRY(kubeflow_fields(reading, root, fields, WEIR_ARRAY_LEN(fields), &document));
    WEIR_TRY(find_kind(reading, &document, &kind));
    draft.kind = kind->job;
    reading->runtime = kind->runtime;
    reading->file = kind->file;
    reading->file_variable = kind->file_variable;
    document.metadata.path = "$.metadata";
    document.spec.path = "$.spec";
    WEIR_TRY(kubeflow_draft_metadata(reading, &draft, document.metadata));
    WEIR_TRY(kind->read(reading, document.spec, &draft));
    kubeflow_draft_settle(reading, &draft);
    WEIR_TRY(kubeflow_check_read(reading, root));
    reading->out->body = body_of(&draft);
    return WEIR_OK;
}

weir_status weir_kubeflow_read(const json_t *document, const struct weir_kubeflow_given *given,
                               struct weir_arena *arena, struct weir_kubeflow *out,
                               struct weir_error *err)
{
    *out = (struct weir_kubeflow){0};
    struct kubeflow_reading reading = {.arena = arena,
                                       .err = err,
                                       .given = given,
                                       .out = out,
                                       .runtime = "",
                                       .marks = json_object(),
                                       .kept = json_array()};
    weir_status status =
        read_document(&reading, (struct kubeflow_place){.value = document, .path = "$"});
    json_decref(reading.marks);
    json_decref(reading.kept);
    return status;
}

void weir_kubeflow_fini(struct weir_kubeflow *job)
{
    json_decref(job->body);
    job->body = NULL;
}
