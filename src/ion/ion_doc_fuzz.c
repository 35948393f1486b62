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
    if (link->deployment != NULL && to == NULL) {
        return;
    }
    if (from == NULL || to == NULL || from->type != WEIR_PIPELINE_TRAINING ||
        to->type != WEIR_PIPELINE_PREDICTION || weir_ion_doc_link_into(doc, link->to) != link) {
        abort();
    }
}

static void check(const struct weir_ion_doc *doc)
{
    if (doc->name == NULL || doc->n_pipelines > WEIR_ION_PIPELINES_MAX ||
        doc->n_links > WEIR_ION_LINKS_MAX) {
        abort();
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        struct weir_cron cron;
        if (weir_ion_doc_pipeline(doc, pipeline->name) != pipeline) {
            abort(); /* two of the same name */
        }
        if (pipeline->schedule != NULL &&
            weir_cron_parse(pipeline->schedule, &cron, NULL) != WEIR_OK) {
            abort();
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
            strcmp(again.name, doc.name) != 0) {
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
