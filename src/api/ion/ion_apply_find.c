/** What an ION document names, in the store. */
#include "api/ion/ion_apply.h"
#include "api/ion/kept.h"
#include "api/model/finds.h"
#include "endpoint/door.h"
#include "endpoint/stage.h"
#include "endpoint/stage/detect.h"
#include "job/code.h"
#include "job/secret.h"
#include "store/role.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/registry.h"

#include <string.h>

/* ---- datasets -------------------------------------------------------------------------------- */

/** A gallery's classes are its people. */
static weir_status check_gallery(struct ion_apply *apply, const char *place,
                                 const struct weir_dataset *dataset,
                                 const struct weir_dataset_version *version, struct weir_error *err)
{
    if (strcmp(dataset->kind, "folder") != 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: dataset \"%s\" is of kind %s: a gallery needs a folder of photos "
            "for each person",
            place, dataset->name, dataset->kind);
    }
    if (version->version > 0 && version->n_classes == 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: version %lld of dataset \"%s\" has no classes: put each person's "
            "photos into a folder of their own and freeze it again",
            place, (long long)version->version, dataset->name);
    }
    if (version->version == 0) {
        ion_apply_warn(apply, weir_arena_printf(
                                  apply->call->arena,
                                  "%s: dataset \"%s\" has no version yet: its people count once it "
                                  "is frozen (weir dataset freeze %s)",
                                  place, dataset->name, dataset->name));
    }
    return WEIR_OK;
}

/** Add the latest version of a dataset, if it has one. The dataset must exist. */
static weir_status add_dataset(struct ion_apply *apply, struct weir_txn *txn, const char *place,
                               const char *name, bool is_gallery, struct weir_error *err)
{
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    struct weir_error ignored;
    if (name == NULL) {
        return WEIR_OK;
    }
    if (weir_txn_get(txn, &weir_dataset_resource, name, apply->call->arena, &dataset, err) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: there is no dataset \"%s\": create it first with "
                              "`weir dataset create %s`",
                              place, name, name);
    }
    if (weir_dataset_version_get(txn, name, 0, apply->call->arena, &version, &ignored) != WEIR_OK) {
        version = (struct weir_dataset_version){0};
    }
    if (is_gallery) {
        WEIR_TRY(check_gallery(apply, place, &dataset, &version, err));
    }
    if (version.version > 0) {
        apply->datasets[apply->n_datasets++] =
            (struct weir_ion_dataset){dataset.name, version.version, dataset.path,  version.digest,
                                      version.blob, version.n_files, version.bytes, version.n_rows};
    }
    return WEIR_OK;
}

/** What a preparation makes: a folder of the project's, which its command can write. */
static weir_status check_output(const struct ion_apply *apply, struct weir_txn *txn,
                                size_t i_pipeline, struct weir_error *err)
{
    struct weir_dataset dataset;
    const char *name = apply->doc.pipelines[i_pipeline].output;
    if (name == NULL) {
        return WEIR_OK;
    }
    if (weir_txn_get(txn, &weir_dataset_resource, name, apply->call->arena, &dataset, err) !=
        WEIR_OK) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.pipelines[%zu].output: there is no dataset \"%s\": create it first "
            "with `weir dataset create %s --path FOLDER`",
            i_pipeline, name, name);
    }
    if (strcmp(dataset.project, apply->doc.project) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.pipelines[%zu].output: dataset \"%s\" belongs to project \"%s\", "
                              "and this ION to \"%s\"",
                              i_pipeline, name, dataset.project, apply->doc.project);
    }
    return !dataset.is_uploaded
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.pipelines[%zu].output: dataset \"%s\" holds uploaded files: a "
                                "command writes into a folder of yours (weir dataset create NAME "
                                "--path FOLDER)",
                                i_pipeline, name);
}

/** The latest version of each dataset that the document names; all must exist. */
static weir_status find_datasets(struct ion_apply *apply, struct weir_txn *txn,
                                 struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->datasets = WEIR_ARENA_ARRAY(arena, 2 * doc->n_pipelines + 1, struct weir_ion_dataset);
    apply->n_datasets = 0;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        char *place = weir_arena_printf(arena, "$.pipelines[%zu].dataset", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->dataset, false, err));
        WEIR_TRY(check_output(apply, txn, i, err));
        place = weir_arena_printf(arena, "$.pipelines[%zu].gallery.dataset", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->gallery_dataset, true, err));
        place = weir_arena_printf(arena, "$.pipelines[%zu].gallery.impostors", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->impostors, true, err));
    }
    return WEIR_OK;
}

/** A dataset that a policy measures on: "NAME" or "NAME@v2". */
static weir_status check_measured(struct ion_apply *apply, struct weir_txn *txn,
                                  const struct weir_ion_doc_link *link,
                                  const struct weir_policy *policy, struct weir_error *err)
{
    struct weir_arena *arena = apply->call->arena;
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    struct weir_error ignored;
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(&apply->doc, link->to);
    const char *kind = policy->kind->name;
    if (to != NULL && to->embeds) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.links[%zu].policy: %s measures classifiers, and pipeline \"%s\" "
                              "recognises people by a gallery",
                              link->i_link, kind, to->name);
    }
    if (to != NULL && to->finds_with != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.links[%zu].policy: %s measures classifiers, and pipeline \"%s\" "
                              "finds things: leave the policy out (weir train measures its "
                              "detectors itself)",
                              link->i_link, kind, to->name);
    }
    json_t *options = json_loads(policy->text, 0, NULL);
    const char *text = json_string_value(json_object_get(options, "dataset"));
    size_t len = text != NULL ? strcspn(text, "@") : 0;
    char *name = weir_arena_printf(arena, "%.*s", (int)len, text != NULL ? text : "");
    json_decref(options);
    if (weir_txn_get(txn, &weir_dataset_resource, name, arena, &dataset, err) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.links[%zu].policy: there is no dataset \"%s\" for %s: create it "
                              "first with `weir dataset create %s`",
                              link->i_link, name, kind, name);
    }
    if (weir_dataset_version_get(txn, name, 0, arena, &version, &ignored) != WEIR_OK) {
        ion_apply_warn(
            apply, weir_arena_printf(arena,
                                     "$.links[%zu].policy: dataset \"%s\" has no version yet: %s "
                                     "can measure nothing before it is frozen (weir dataset "
                                     "freeze %s)",
                                     link->i_link, name, kind, name));
    }
    return WEIR_OK;
}

/** The roles whose approvals count must be there; who has nothing else must be able to approve. */
static weir_status check_roles(struct ion_apply *apply, struct weir_txn *txn,
                               const struct weir_ion_doc_link *link,
                               const struct weir_policy *policy, struct weir_error *err)
{
    struct weir_arena *arena = apply->call->arena;
    json_t *options = policy->text != NULL ? json_loads(policy->text, 0, NULL) : NULL, *item;
    size_t i;
    weir_status status = WEIR_OK;
    json_array_foreach(json_object_get(options, "roles"), i, item)
    {
        struct weir_role_found role;
        status = weir_role_find(txn, json_string_value(item), arena, &role, err);
        if (status != WEIR_OK) {
            status = weir_error_prefix(err, "$.links[%zu].policy: roles: ", link->i_link);
            break;
        }
        if (role.is_custom && (role.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_IONS_REVIEW)) == 0) {
            ion_apply_warn(
                apply,
                weir_arena_printf(arena,
                                  "$.links[%zu].policy: the role %s does not allow to review ions: "
                                  "who has it approves only with another role that does",
                                  link->i_link, role.name));
        }
    }
    json_decref(options);
    return status;
}

/** What policies measure on, and whose approvals they count. */
static weir_status check_policies(struct ion_apply *apply, struct weir_txn *txn,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_links; i++) {
        const struct weir_ion_doc_link *link = &apply->doc.links[i];
        for (size_t k = 0; k < link->policies.n; k++) {
            WEIR_TRY(check_roles(apply, txn, link, &link->policies.items[k], err));
            if (weir_policy_ops(&link->policies.items[k])->measures) {
                WEIR_TRY(check_measured(apply, txn, link, &link->policies.items[k], err));
            }
        }
    }
    return WEIR_OK;
}

/* ---- registered models ----------------------------------------------------------------------- */

/** A link's model must be there, and the ION's project's: who may change it decides what serves. */
static weir_status check_model(const struct ion_apply *apply, const char *place, const char *name,
                               const struct weir_model *model, weir_status found,
                               struct weir_error *err)
{
    if (found != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: there is no model \"%s\": a version makes it (weir get models "
                              "lists those that there are)",
                              place, name);
    }
    if (strcmp(model->project, apply->doc.project) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: model \"%s\" belongs to project \"%s\", and this ION to \"%s\"",
                              place, name, model->project, apply->doc.project);
    }
    return WEIR_OK;
}

/** Can the pipeline's stage detect find with the version? */
static weir_status check_finds(const struct ion_apply *apply, const char *place,
                               const struct weir_ion_doc_pipeline *pipeline,
                               const struct weir_model_version *version, struct weir_error *err)
{
    char *ignored;
    struct weir_stage_chain chain;
    struct weir_arena *arena = apply->call->arena;
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_loads(pipeline->stages, 0, NULL);
    WEIR_TRY(weir_stages_read(list, pipeline->gallery_dataset != NULL, place, arena, &chain, err));
    const struct weir_stage_detect *detect = weir_stages_options(&chain, &weir_stage_detect_kind);
    weir_status status = api_finds(version->signature, detect, arena, &ignored, err);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_prefix(err, "%s: version %lld of model \"%s\": ", place,
                                                 (long long)version->version, version->model);
}

/** Can the pipeline use what the version gives? Of one without a signature its replicas will see. */
static weir_status check_signature(const struct ion_apply *apply, const char *place,
                                   const struct weir_ion_doc_link *link,
                                   const struct weir_model_version *version, struct weir_error *err)
{
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(&apply->doc, link->to);
    if (to == NULL) {
        return WEIR_OK; /* A deployment serves any model. */
    }
    if (to->finds_with != NULL) {
        return check_finds(apply, place, to, version, err);
    }
    json_t *signature = version->signature != NULL ? json_loads(version->signature, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(signature, "output_kind"));
    const char *problem = NULL;
    if (kind != NULL && !json_is_object(json_object_get(signature, "picture"))) {
        problem = "takes no picture: push it with --preprocess FILE";
    } else if (kind != NULL && strcmp(kind, "tensor") == 0) {
        problem =
            "gives numbers that its signature does not explain: push it with --labels FILE, or "
            "with output_kind in --preprocess FILE";
    } else if (kind != NULL && to->embeds && strcmp(kind, "embedding") != 0) {
        problem = "is a classifier, and the pipeline recognises people by a gallery, which needs "
                  "embeddings: take the gallery out, and it classifies";
    } else if (kind != NULL && !to->embeds && strcmp(kind, "embedding") == 0) {
        problem =
            "gives embeddings, and the pipeline has no gallery, so it classifies: add gallery: "
            "{dataset: NAME}";
    }
    json_decref(signature);
    return problem == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s: version %lld of model \"%s\" %s",
                                place, (long long)version->version, link->model, problem);
}

static void add_model(struct ion_apply *apply, const char *alias,
                      const struct weir_model_version *version)
{
    apply->aliases[apply->n_models] = alias;
    apply->models[apply->n_models++] = control_ion_model(version, apply->call->arena);
}

/** The newest version of each model that is measured, which may have come before the document. */
static weir_status find_measured(struct ion_apply *apply, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_arena *arena = apply->call->arena;
    for (size_t i = 0; i < apply->doc.n_feeds; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const struct weir_ion_doc_feed *feed = &apply->doc.feeds[i];
        const char *name =
            feed->model != NULL ? feed->model : weir_ion_doc_model(&apply->doc, feed->from);
        if (feed->dataset != NULL) {
            continue;
        }
        if (feed->model != NULL) {
            char *place = weir_arena_printf(arena, "the link to \"%s\"", feed->to);
            WEIR_TRY(check_model(apply, place, name, &model,
                                 weir_model_get(txn, name, arena, &model, &ignored), err));
        }
        if (weir_model_version_get(txn, name, 0, arena, &version, &ignored) == WEIR_OK) {
            add_model(apply, NULL, &version);
        }
    }
    return WEIR_OK;
}

/* The version that an alias names now; 0: none, or there is no alias to look for. */
static weir_status find_alias(struct weir_txn *txn, const char *model, const char *alias,
                              int64_t *out, struct weir_error *err)
{
    return weir_txn_query_int(
        txn, "SELECT version FROM model_aliases WHERE model = :model AND alias = :alias",
        WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_TEXT("alias", alias)), 0, out, err);
}

/** The newest version of each model that a link begins at; one without versions yet has none. */
static weir_status find_models(struct ion_apply *apply, struct weir_txn *txn,
                               struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->models = WEIR_ARENA_ARRAY(arena, doc->n_links + doc->n_feeds + 1, struct weir_ion_model);
    apply->aliases = WEIR_ARENA_ARRAY(arena, doc->n_links + doc->n_feeds + 1, const char *);
    apply->n_models = 0;
    WEIR_TRY(find_measured(apply, txn, err));
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const char *name = doc->links[i].model;
        if (name == NULL) {
            continue;
        }
        char *place = weir_ion_doc_link_place(&doc->links[i], "from.model", arena);
        WEIR_TRY(check_model(apply, place, name, &model,
                             weir_model_get(txn, name, arena, &model, &ignored), err));
        const char *alias = doc->links[i].alias;
        int64_t number = 0;
        WEIR_TRY(find_alias(txn, name, alias, &number, err));
        if ((alias == NULL || number > 0) &&
            weir_model_version_get(txn, name, number, arena, &version, &ignored) == WEIR_OK &&
            weir_version_check_servable(&version, &ignored) == WEIR_OK) {
            WEIR_TRY(check_signature(apply, place, &doc->links[i], &version, err));
            add_model(apply, alias, &version);
        }
    }
    return WEIR_OK;
}

/** A detector that is named alone is whatever version is the newest: nobody is asked, and nothing is tried before. */
static void warn_of_newest(struct ion_apply *apply, const char *place,
                           const struct weir_ion_doc_pipeline *pipeline)
{
    const char *name = pipeline->detector;
    if (pipeline->detector_alias == NULL && pipeline->detector_version == 0) {
        ion_apply_warn(apply,
                       weir_arena_printf(apply->call->arena,
                                         "%s: \"%s\" is its newest version: each new one finds for "
                                         "\"%s\" at once, with no policy between. To decide which "
                                         "does, name a version (%s/2) or an alias (%s@best, set by "
                                         "`weir model alias %s best 2`)",
                                         place, name, pipeline->name, name, name, name));
    }
}

/** The version that each pipeline's detector names; a fixed one must be there, another may come later. */
static weir_status find_detectors(struct ion_apply *apply, struct weir_txn *txn,
                                  struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->detectors =
        WEIR_ARENA_ARRAY(arena, doc->n_pipelines + 1, struct weir_ion_named_detector);
    apply->n_detectors = 0;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        const char *name = pipeline->detector;
        int64_t number = pipeline->detector_version;
        if (name == NULL) {
            continue;
        }
        char *place = weir_arena_printf(arena, "$.pipelines[%zu].stages: detect", i);
        WEIR_TRY(check_model(apply, place, name, &model,
                             weir_model_get(txn, name, arena, &model, &ignored), err));
        warn_of_newest(apply, place, pipeline);
        if (pipeline->detector_alias != NULL) {
            WEIR_TRY(find_alias(txn, name, pipeline->detector_alias, &number, err));
            if (number == 0) { /* What the alias comes to name will come. */
                ion_apply_warn(apply, weir_arena_printf(
                                          arena,
                                          "%s: model \"%s\" has no alias \"%s\" yet: the pipeline "
                                          "serves nothing until it has (weir model alias %s %s "
                                          "VERSION)",
                                          place, name, pipeline->detector_alias, name,
                                          pipeline->detector_alias));
                continue;
            }
        }
        bool is_there =
            weir_model_version_get(txn, name, number, arena, &version, &ignored) == WEIR_OK;
        if (!is_there && pipeline->detector_version != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: model \"%s\" has no version %lld",
                                  place, name, (long long)number);
        }
        if (!is_there) {
            ion_apply_warn(
                apply, weir_arena_printf(arena,
                                         "%s: model \"%s\" has no version yet: the pipeline serves "
                                         "nothing until it has (weir model push %s FILE)",
                                         place, name, name));
        } else {
            WEIR_TRY(weir_version_check_servable(&version, err));
            WEIR_TRY(check_finds(apply, place, pipeline, &version, err));
            apply->detectors[apply->n_detectors++] = (struct weir_ion_named_detector){
                .pipeline = pipeline->name, .model = control_ion_model(&version, arena)};
        }
    }
    return WEIR_OK;
}

/** The versions that links name as their default: they must be there, and fit. */
static weir_status find_defaults(struct ion_apply *apply, struct weir_txn *txn,
                                 struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->defaults = WEIR_ARENA_ARRAY(arena, doc->n_links + 1, struct weir_ion_model);
    apply->n_defaults = 0;
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const char *name = doc->links[i].default_model;
        if (name == NULL) {
            continue;
        }
        char *place = weir_ion_doc_link_place(&doc->links[i], "default", arena);
        WEIR_TRY(check_model(apply, place, name, &model,
                             weir_model_get(txn, name, arena, &model, &ignored), err));
        if (weir_model_version_get(txn, name, doc->links[i].default_version, arena, &version,
                                   &ignored) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: model \"%s\" has no version %lld",
                                  place, name, (long long)doc->links[i].default_version);
        }
        WEIR_TRY(check_signature(apply, place, &doc->links[i], &version, err));
        apply->defaults[apply->n_defaults++] = control_ion_model(&version, arena);
    }
    return WEIR_OK;
}

/** A folder that a program brings along must have been sent for the project. */
static weir_status find_code(struct ion_apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    static const char place[] = "$.spec";
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < apply->doc.n_pipelines && status == WEIR_OK; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        struct weir_error cause = {0};
        json_t *spec =
            pipeline->parameters != NULL ? json_loads(pipeline->parameters, 0, NULL) : NULL;
        if (spec != NULL) {
            status = weir_code_bring(txn, apply->doc.project, spec, apply->call->now_ms, &cause);
        }
        json_decref(spec);
        bool is_placed = strncmp(cause.message, place, sizeof place - 1) == 0;
        if (status != WEIR_OK) {
            (void)weir_error_set(err, status, "$.pipelines[%zu].parameters%s%s", i,
                                 is_placed ? "" : ": ",
                                 cause.message + (is_placed ? sizeof place - 1 : 0));
        }
    }
    return status;
}

static void name_secret(void *context, const struct weir_endpoint_secret *secret)
{
    json_array_append_new(context, json_sprintf("%s=%s", secret->variable, secret->name));
}

/** Secrets that sources and sinks name must be the project's: a replica would not start without. */
static weir_status find_secrets(struct ion_apply *apply, struct weir_txn *txn,
                                struct weir_error *err)
{
    const json_t *pipelines = json_object_get(apply->call->body, "pipelines"), *pipeline;
    size_t i;
    json_array_foreach(pipelines, i, pipeline)
    {
        struct weir_error cause = {0};
        WEIR_AUTO(weir_json_auto_free) json_t *spec = json_pack("{s:[]}", "secrets");
        weir_endpoints_secrets(json_object_get(pipeline, "source"),
                               json_object_get(pipeline, "sinks"), name_secret,
                               json_object_get(spec, "secrets"));
        weir_doors_secrets(json_object_get(pipeline, "doors"), name_secret,
                           json_object_get(spec, "secrets"));
        weir_status status =
            weir_secrets_check(txn, apply->doc.project, spec, apply->call->arena, &cause);
        if (status != WEIR_OK) {
            const char *end = strstr(cause.message, "]: ");
            return weir_error_set(err, status, "$.pipelines[%zu]: secrets: %s", i,
                                  end != NULL ? end + 3 : cause.message);
        }
    }
    return WEIR_OK;
}

static bool is_same_sink(const json_t *one, const json_t *other)
{
    static const char *const members[] = {"kind", "path", "url", "topic"};
    bool is_same = true;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        const json_t *its = json_object_get(one, members[i]);
        const json_t *others = json_object_get(other, members[i]);
        is_same = is_same && (its == others || json_equal(its, others));
    }
    return is_same;
}

/** A replica keeps one place in its outbox for what goes to one address. */
static weir_status check_sinks(const struct ion_apply *apply, struct weir_error *err)
{
    const json_t *pipelines = json_object_get(apply->call->body, "pipelines"), *pipeline;
    size_t i;
    json_array_foreach(pipelines, i, pipeline)
    {
        const json_t *sinks = json_object_get(pipeline, "sinks");
        for (size_t k = 1; k < json_array_size(sinks); k++) {
            for (size_t other = 0; other < k; other++) {
                if (is_same_sink(json_array_get(sinks, k), json_array_get(sinks, other))) {
                    return weir_error_set(err, WEIR_ERR_INVALID,
                                          "$.pipelines[%zu].sinks[%zu]: it is where sinks[%zu] "
                                          "writes to: leave one of them out",
                                          i, k, other);
                }
            }
        }
    }
    return WEIR_OK;
}

weir_status ion_apply_find(struct ion_apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(find_code(apply, txn, err));
    WEIR_TRY(find_secrets(apply, txn, err));
    WEIR_TRY(check_sinks(apply, err));
    WEIR_TRY(api_kept_check(apply, txn, err));
    WEIR_TRY(find_datasets(apply, txn, err));
    WEIR_TRY(check_policies(apply, txn, err));
    WEIR_TRY(find_models(apply, txn, err));
    WEIR_TRY(find_detectors(apply, txn, err));
    return find_defaults(apply, txn, err);
}
