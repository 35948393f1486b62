/** Predictions without a model beside their detector: a link brings that, written or implied. */
#include "ion/doc/ion_doc_reader.h"

#include <string.h>

/** The model that a link brings. */
static const char *model_of(const struct weir_ion_doc *doc, const struct weir_ion_doc_link *link)
{
    return link->model != NULL ? link->model : weir_ion_doc_model(doc, link->from);
}

static weir_status check_link(const struct doc_reader *root, const struct weir_ion_doc *doc,
                              size_t i_pipeline, const struct weir_ion_doc_link *link)
{
    const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i_pipeline];
    if (strcmp(model_of(doc, link), pipeline->finds_with) != 0) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.links[%zu]: it brings model \"%s\" to \"%s\", whose stage detect "
                              "finds with \"%s\": name the same, or leave the link out",
                              root->path, link->i_link, model_of(doc, link), pipeline->name,
                              pipeline->finds_with);
    }
    if (pipeline->finds_alias != NULL || pipeline->finds_version != 0) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.pipelines[%zu].stages: a link decides which version of \"%s\" "
                              "serves: write model: %s in stage detect, or leave the link out",
                              root->path, i_pipeline, pipeline->finds_with, pipeline->finds_with);
    }
    return WEIR_OK;
}

/** The newest version, that of the alias, or the one that is named. */
static weir_status imply_link(const struct doc_reader *root, struct weir_ion_doc *doc,
                              size_t i_pipeline)
{
    const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i_pipeline];
    const char *alias = pipeline->finds_alias;
    struct weir_ion_doc_link *link = &doc->links[doc->n_links];
    *link = (struct weir_ion_doc_link){.i_link = i_pipeline, .is_implied = true};
    link->from = weir_arena_printf(root->arena, WEIR_ION_FROM_MODEL "%s%s%s", pipeline->finds_with,
                                   alias != NULL ? "@" : "", alias != NULL ? alias : "");
    link->to = pipeline->name;
    link->id = weir_arena_printf(root->arena, "%s:%s", link->from, link->to);
    link->model = pipeline->finds_with;
    link->alias = pipeline->finds_alias;
    if (pipeline->finds_version != 0) {
        link->default_model = pipeline->finds_with;
        link->default_version = pipeline->finds_version;
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *policy = json_string(pipeline->finds_version != 0 ? "always-reject" : "always-update");
    WEIR_TRY(weir_policy_chain_read(policy, "policy", root->arena, &link->policies, root->err));
    doc->n_links++;
    return WEIR_OK;
}

weir_status doc_imply_links(const struct doc_reader *root, struct weir_ion_doc *doc)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        const struct weir_ion_doc_link *link = weir_ion_doc_link_into(doc, pipeline->name);
        if (pipeline->finds_with == NULL) {
            continue;
        }
        WEIR_TRY(link != NULL ? check_link(root, doc, i, link) : imply_link(root, doc, i));
    }
    return WEIR_OK;
}

char *weir_ion_doc_link_place(const struct weir_ion_doc_link *link, const char *member,
                              struct weir_arena *arena)
{
    return link->is_implied
               ? weir_arena_printf(arena, "$.pipelines[%zu].stages: detect", link->i_link)
               : weir_arena_printf(arena, "$.links[%zu].%s", link->i_link, member);
}
