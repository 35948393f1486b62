/* Any text, read as `weir apply` and the server read it: refused by its place, or a document whose
 * links join pipelines that are there, and that says the same when it comes as JSON. */
#include "ion/ion_doc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_link(const struct weir_ion_doc *doc, const struct weir_ion_doc_link *link)
{
    const struct weir_ion_doc_pipeline *from = weir_ion_doc_pipeline(doc, link->from);
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(doc, link->to);
    bool begins =
        link->model != NULL ? from == NULL : from != NULL && from->type == WEIR_PIPELINE_TRAINING;
    bool ends =
        link->deployment != NULL ? to == NULL : to != NULL && to->type == WEIR_PIPELINE_PREDICTION;
    if (!begins || !ends || weir_ion_doc_link_into(doc, link->to) != link ||
        weir_ion_doc_link(doc, link->id) != link) {
        abort();
    }
}

/* What a schedule says can be worked out, and it is the document's own text. */
static void check_trigger(const struct weir_trigger *trigger)
{
    struct weir_cron cron;
    const char *text = weir_trigger_cron(trigger);
    json_t *json = json_loads(trigger->text, 0, NULL);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    if (kind == NULL || strcmp(kind, trigger->kind->name) != 0 ||
        (text != NULL && (weir_cron_parse(text, &cron, NULL) != WEIR_OK ||
                          strcmp(json_string_value(json_object_get(json, "cron")), text) != 0))) {
        abort();
    }
    json_decref(json);
}

static void check(const struct weir_ion_doc *doc)
{
    if (doc->name == NULL || doc->n_pipelines > WEIR_ION_PIPELINES_MAX ||
        doc->n_links > WEIR_ION_LINKS_MAX) {
        abort();
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (weir_ion_doc_pipeline(doc, pipeline->name) != pipeline) {
            abort(); /* two of the same name */
        }
        for (size_t k = 0; k < pipeline->triggers.n; k++) {
            check_trigger(&pipeline->triggers.items[k]);
        }
        if (pipeline->type == WEIR_PIPELINE_TRAINING &&
            (pipeline->triggers.n == 0 || pipeline->triggers.n > WEIR_TRIGGERS_MAX + 1)) {
            abort();
        }
    }
    for (size_t i = 0; i < doc->n_links; i++) {
        check_link(doc, &doc->links[i]);
    }
}

/* Triggers and chains are compared by their text when a document is applied. */
static bool is_same_work(const struct weir_ion_doc *a, const struct weir_ion_doc *b)
{
    for (size_t i = 0; i < a->n_pipelines; i++) {
        const struct weir_trigger_list *x = &a->pipelines[i].triggers,
                                       *y = &b->pipelines[i].triggers;
        for (size_t k = 0; k < x->n; k++) {
            if (x->n != y->n || strcmp(x->items[k].text, y->items[k].text) != 0) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < a->n_links; i++) {
        if (strcmp(a->links[i].id, b->links[i].id) != 0 ||
            strcmp(a->links[i].policies.text, b->links[i].policies.text) != 0) {
            return false;
        }
    }
    return true;
}

static void read_one(const json_t *value)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_ion_doc doc, again;
    weir_arena_init(&arena, 0);
    if (weir_ion_doc_parse(value, &arena, &doc, &err) == WEIR_OK) {
        check(&doc);
        char *text = weir_json_text(value, &arena);
        json_t *json;
        if (weir_json_parse(text, strlen(text), "again", &json, &err) != WEIR_OK ||
            weir_ion_doc_parse(json, &arena, &again, &err) != WEIR_OK ||
            again.n_pipelines != doc.n_pipelines || again.n_links != doc.n_links ||
            strcmp(again.name, doc.name) != 0 || !is_same_work(&doc, &again)) {
            abort();
        }
        json_decref(json);
    } else if (err.message[0] == '\0') {
        abort();
    }
    weir_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *documents = NULL;
    size_t i;
    json_t *value;
    if (weir_yaml_parse((const char *)data, size, "fuzz", true, &documents, NULL) != WEIR_OK) {
        return 0;
    }
    json_array_foreach(documents, i, value)
    {
        read_one(value);
    }
    json_decref(documents);
    return 0;
}
