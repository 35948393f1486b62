#include "ion/ion_doc.h"

#include "ion/doc/ion_doc_reader.h"

#include "base/quantity.h"
#include "endpoint/door.h"
#include "endpoint/stage.h"
#include "endpoint/stage/detect.h"

#include <stdlib.h>
#include <string.h>

#define TASKS_MAX         1024
#define GPUS_MAX          64 /* as of a deployment's replica */
#define NO_FRAMES_AFTER_S 300
#define NO_FRAMES_MAX_S   (30 * 24 * 3600)

/* What a person writes, as records: from these tables come types, unknown fields and missing ones.
 */

struct document {
    char *kind, *name, *project, *pipelines, *links;
};

struct training {
    char *name, *type, *kind, *registers, *dataset, *model, *cut_as, *parameters, *triggers,
        *restart;
    int64_t workers, parameter_servers, max_restarts;
    bool critical;
};

struct prediction {
    char *name, *type, *source, *gallery, *stages, *sinks, *doors, *keep, *restart;
    int64_t replicas, gpus, no_frames_after_s;
    bool critical;
};

struct keep {
    char *pictures;
};

struct gallery {
    char *dataset, *impostors, *by_default;
    double false_accept_rate, false_deny_rate;
};

struct link {
    char *from, *to, *policy, *by_default;
};

#define ALIAS_MAX_BYTES 255

struct link_from {
    char *model, *alias;
};

struct link_to {
    char *deployment;
};

// clang-format off
static const struct weir_field document_fields[] = {
    WEIR_FIELD(document, kind,      TEXT, 0, "", "ion"),
    WEIR_FIELD(document, name,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "unique name"),
    WEIR_FIELD(document, project,   TEXT, WEIR_FIELD_NAME, "", "project"),
    WEIR_FIELD(document, pipelines, JSON, WEIR_FIELD_REQUIRED, "", "list of pipelines"),
    WEIR_FIELD(document, links,     JSON, 0, "", "list of links"),
};
static const struct weir_field training_fields[] = {
    WEIR_FIELD(training, name,              TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "name within the ION"),
    WEIR_FIELD(training, type,              TEXT, WEIR_FIELD_REQUIRED, "", "training or prediction"),
    WEIR_FIELD(training, kind,              TEXT, WEIR_FIELD_NAME, "", "kind of its jobs"),
    WEIR_FIELD(training, registers,         TEXT, WEIR_FIELD_MODEL, "", "name of the model that it makes"),
    WEIR_FIELD(training, dataset,           TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "dataset to learn from"),
    WEIR_FIELD(training, model,             TEXT, WEIR_FIELD_REQUIRED, "", "zoo name or model file"),
    WEIR_FIELD(training, cut_as,            TEXT, WEIR_FIELD_NAME, "", "prediction pipeline that cuts its frames as this training its photos"),
    WEIR_FIELD(training, workers,           INT,  0, "", "data-parallel workers"),
    WEIR_FIELD(training, parameter_servers, INT,  0, "", "parameter servers; 0 = all-reduce"),
    WEIR_FIELD(training, max_restarts,      INT,  0, "", "restarts after a failure"),
    WEIR_FIELD(training, parameters,        JSON, 0, "", "training parameters"),
    WEIR_FIELD(training, triggers,          JSON, 0, "", "when to train"),
    WEIR_FIELD(training, restart,           JSON, 0, "", "whether it runs again after it has ended"),
    WEIR_FIELD(training, critical,          BOOL, 0, "", "whether the ION is down if it fails"),
};
static const struct weir_field prediction_fields[] = {
    WEIR_FIELD(prediction, name,     TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "name within the ION"),
    WEIR_FIELD(prediction, type,     TEXT, WEIR_FIELD_REQUIRED, "", "training or prediction"),
    WEIR_FIELD(prediction, replicas, INT,  0, "", "processes"),
    WEIR_FIELD(prediction, gpus,     INT,  0, "", "accelerators of each of them"),
    WEIR_FIELD(prediction, source,   JSON, WEIR_FIELD_REQUIRED, "", "where frames come from"),
    WEIR_FIELD(prediction, gallery,  JSON, 0, "", "known people"),
    WEIR_FIELD(prediction, stages,   JSON, 0, "", "what is made of a frame: a list of stages"),
    WEIR_FIELD(prediction, sinks,    JSON, 0, "", "where decisions go"),
    WEIR_FIELD(prediction, doors,    JSON, 0, "", "what is opened for whom it lets in"),
    WEIR_FIELD(prediction, keep,     JSON, 0, "", "how long what it makes is kept"),
    WEIR_FIELD(prediction, no_frames_after_s, INT, 0, "s", "when a source without frames is told"),
    WEIR_FIELD(prediction, restart,  JSON, 0, "", "whether its replicas start again after they have ended"),
    WEIR_FIELD(prediction, critical, BOOL, 0, "", "whether the ION is down if it does not serve"),
};
static const struct weir_field keep_fields[] = {
    WEIR_FIELD(keep, pictures, TEXT, 0, "", "age of pictures of its decisions, or none"),
};
static const struct weir_field gallery_fields[] = {
    WEIR_FIELD(gallery, dataset,           TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "dataset of known people"),
    WEIR_FIELD(gallery, impostors,         TEXT, WEIR_FIELD_NAME, "", "dataset of people who are not known"),
    WEIR_FIELD(gallery, false_accept_rate, F64,  0, "", "share of impostors taken for someone"),
    WEIR_FIELD(gallery, false_deny_rate,   F64,  0, "", "share of impostors taken for one given person who is barred"),
    { .name = "default", .type = WEIR_FIELD_TYPE_TEXT, .offset = offsetof(struct gallery, by_default),
      .unit = "", .doc = "allow, deny or unknown: of a known person on no list" },
};
static const struct weir_field link_fields[] = {
    WEIR_FIELD(link, from,   JSON, WEIR_FIELD_REQUIRED, "", "training pipeline, or a registered model"),
    WEIR_FIELD(link, to,     JSON, WEIR_FIELD_REQUIRED, "", "prediction pipeline, or a deployment"),
    WEIR_FIELD(link, policy, JSON, 0, "", "policy or list of policies: names, or objects with kind"),
    { .name = "default", .type = WEIR_FIELD_TYPE_TEXT, .offset = offsetof(struct link, by_default),
      .unit = "", .doc = "MODEL@VERSION that serves before a version has passed" },
};
static const struct weir_field link_from_fields[] = {
    WEIR_FIELD(link_from, model, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_MODEL, "", "registered model"),
    WEIR_FIELD(link_from, alias, TEXT, 0, "", "alias: only what it names comes, where it moves"),
};
static const struct weir_field link_to_fields[] = {
    WEIR_FIELD(link_to, deployment, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "deployment"),
};
// clang-format on

static const struct weir_resource document_resource =
    WEIR_RESOURCE("ION document", "", document, document_fields);
static const struct weir_resource training_resource =
    WEIR_RESOURCE("training pipeline", "", training, training_fields);
static const struct weir_resource prediction_resource =
    WEIR_RESOURCE("prediction pipeline", "", prediction, prediction_fields);
static const struct weir_resource keep_resource = WEIR_RESOURCE("keep", "", keep, keep_fields);
static const struct weir_resource gallery_resource =
    WEIR_RESOURCE("gallery", "", gallery, gallery_fields);
static const struct weir_resource link_resource = WEIR_RESOURCE("link", "", link, link_fields);
static const struct weir_resource link_from_resource =
    WEIR_RESOURCE("link's from", "", link_from, link_from_fields);
static const struct weir_resource link_to_resource =
    WEIR_RESOURCE("link's to", "", link_to, link_to_fields);

static weir_status read_training(const struct doc_reader *reader, const json_t *json,
                                 struct weir_ion_doc_pipeline *out)
{
    struct training training = {.workers = 1, .max_restarts = 3};
    const json_t *kind = json_object_get(json, "kind");
    if (json_is_string(kind) && strcmp(json_string_value(kind), WEIR_ION_TRAIN) != 0) {
        return doc_read_program(reader, json, out);
    }
    WEIR_TRY(doc_read_object(reader, &training_resource, json, &training));
    WEIR_TRY(doc_check_range(reader, "workers", training.workers, 1, TASKS_MAX));
    WEIR_TRY(
        doc_check_range(reader, "parameter_servers", training.parameter_servers, 0, TASKS_MAX));
    *out = (struct weir_ion_doc_pipeline){
        .name = training.name,
        .type = WEIR_PIPELINE_TRAINING,
        .is_critical = training.critical,
        .kind = WEIR_ION_TRAIN,
        .registers = training.registers,
        .dataset = training.dataset,
        .model = training.model,
        .cut_as = training.cut_as,
        .workers = training.workers,
        .parameter_servers = training.parameter_servers,
        .max_restarts = training.max_restarts,
        .parameters = training.parameters,
    };
    return doc_read_job(reader, json, out);
}

static weir_status check_rate(const struct doc_reader *reader, const char *name, double rate)
{
    return rate > 0 && rate < 1
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_INVALID, "%s.%s: %g is not between 0 and 1",
                                reader->path, name, rate);
}

static weir_status read_gallery(const struct doc_reader *parent, const json_t *json,
                                struct weir_ion_doc_pipeline *out)
{
    if (json == NULL || json_is_null(json)) {
        return WEIR_OK;
    }
    struct doc_reader reader = doc_reader_at(parent, "gallery", SIZE_MAX);
    struct gallery gallery = {
        .by_default = "unknown", .false_accept_rate = 0.01, .false_deny_rate = 0.01};
    WEIR_TRY(doc_read_object(&reader, &gallery_resource, json, &gallery));
    WEIR_TRY(check_rate(&reader, "false_accept_rate", gallery.false_accept_rate));
    WEIR_TRY(check_rate(&reader, "false_deny_rate", gallery.false_deny_rate));
    const char *by_default = gallery.by_default != NULL ? gallery.by_default : "";
    if (strcmp(by_default, "allow") != 0 && strcmp(by_default, "deny") != 0 &&
        strcmp(by_default, "unknown") != 0) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s.default: \"%s\" is not allow, deny or unknown", reader.path,
                              by_default);
    }
    if (gallery.impostors != NULL && strcmp(gallery.impostors, gallery.dataset) == 0) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s.impostors: \"%s\" is the gallery itself: name a dataset of other "
                              "people, or leave it out",
                              reader.path, gallery.impostors);
    }
    out->gallery_dataset = gallery.dataset;
    out->impostors = gallery.impostors;
    out->gallery_default = gallery.by_default;
    out->false_accept_rate = gallery.false_accept_rate;
    out->false_deny_rate = gallery.false_deny_rate;
    return WEIR_OK;
}

static weir_status read_keep(const struct doc_reader *parent, const json_t *json,
                             struct weir_ion_doc_pipeline *out)
{
    struct doc_reader reader = doc_reader_at(parent, "keep", SIZE_MAX);
    struct keep keep = {0};
    int64_t keep_ms = 0;
    if (json != NULL && !json_is_null(json)) {
        WEIR_TRY(doc_read_object(&reader, &keep_resource, json, &keep));
    }
    if (keep.pictures != NULL && strcmp(keep.pictures, "none") == 0) {
        keep_ms = 0;
    } else if (keep.pictures != NULL && !weir_span_parse(keep.pictures, &keep_ms)) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s.pictures: \"%.40s\" is neither an age (24h, 7d) nor none",
                              reader.path, keep.pictures);
    }
    out->keep_pictures_ms = keep.pictures != NULL && keep_ms == 0 ? -1 : keep_ms;
    return WEIR_OK;
}

/** Source and sinks are stored as they are written; the replica reads them with the same tables. */
static weir_status check_endpoints(const struct doc_reader *reader, const json_t *json)
{
    struct weir_configured source, sinks[WEIR_ENDPOINT_SINKS_MAX];
    size_t n_sinks;
    return weir_endpoints_read(json_object_get(json, "source"), json_object_get(json, "sinks"),
                               reader->path, reader->arena, &source, sinks, &n_sinks, reader->err);
}

/** The model that a stage finds with. */
static weir_status read_detector(const struct doc_reader *reader,
                                 const struct weir_stage_chain *chain,
                                 struct weir_ion_doc_pipeline *out)
{
    const struct weir_stage_detect *detect = weir_stages_options(chain, &weir_stage_detect_kind);
    struct weir_detector_name name;
    if (detect == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(
        weir_detector_name_parse(detect->model, reader->path, reader->arena, &name, reader->err));
    if (weir_stages_model(chain) == WEIR_STAGE_MODEL_NONE) {
        out->finds_with = (char *)name.name;
        out->finds_alias = (char *)name.alias;
        out->finds_version = name.version;
        return WEIR_OK;
    }
    out->detector = (char *)name.name;
    out->detector_alias = (char *)name.alias;
    out->detector_version = name.version;
    return WEIR_OK;
}

bool weir_ion_doc_detects_by(const struct weir_ion_doc_pipeline *pipeline, const char *model,
                             const char *alias)
{
    const char *its = pipeline->detector_alias;
    bool is_same = alias == NULL || its == NULL ? alias == its : strcmp(alias, its) == 0;
    return pipeline->detector != NULL && strcmp(pipeline->detector, model) == 0 && is_same &&
           pipeline->detector_version == 0;
}

bool weir_ion_doc_detects(const struct weir_ion_doc *doc, const char *model)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const char *its = doc->pipelines[i].detector;
        if (its != NULL && strcmp(its, model) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status check_doors(const struct doc_reader *reader, const json_t *json,
                               int64_t n_replicas)
{
    size_t n;
    struct weir_door *doors = WEIR_ARENA_ARRAY(reader->arena, WEIR_DOORS_MAX, struct weir_door);
    return weir_doors_read(json_object_get(json, "doors"), reader->path, n_replicas, reader->arena,
                           doors, &n, reader->err);
}

/** The stages as they are written, or those that stand for none; the replica reads them with the
 *  same table. */
static weir_status read_stages(const struct doc_reader *parent, const char *written,
                               struct weir_ion_doc_pipeline *out)
{
    struct doc_reader reader = doc_reader_at(parent, "stages", SIZE_MAX);
    bool has_gallery = out->gallery_dataset != NULL;
    struct weir_stage_chain chain;
    bool is_written = written != NULL && strcmp(written, "null") != 0;
    out->stages = (char *)(is_written ? written : weir_stages_default(has_gallery));
    json_t *list = json_loads(out->stages, JSON_DECODE_ANY, NULL);
    weir_status status =
        weir_stages_read(list, has_gallery, reader.path, reader.arena, &chain, reader.err);
    json_decref(list);
    WEIR_TRY(status);
    WEIR_TRY(read_detector(&reader, &chain, out));
    out->embeds = weir_stages_model(&chain) == WEIR_STAGE_MODEL_EMBEDS;
    return weir_stages_check_gallery(&chain, has_gallery, reader.path, reader.err);
}

static weir_status read_prediction(const struct doc_reader *reader, const json_t *json,
                                   struct weir_ion_doc_pipeline *out)
{
    struct prediction prediction = {
        .replicas = 1, .no_frames_after_s = NO_FRAMES_AFTER_S, .critical = true};
    WEIR_TRY(doc_read_object(reader, &prediction_resource, json, &prediction));
    WEIR_TRY(doc_check_range(reader, "replicas", prediction.replicas, 1, TASKS_MAX));
    WEIR_TRY(doc_check_range(reader, "gpus", prediction.gpus, 0, GPUS_MAX));
    WEIR_TRY(doc_check_range(reader, "no_frames_after_s", prediction.no_frames_after_s, 0,
                             NO_FRAMES_MAX_S));
    WEIR_TRY(check_endpoints(reader, json));
    WEIR_TRY(check_doors(reader, json, prediction.replicas));
    *out = (struct weir_ion_doc_pipeline){
        .name = prediction.name,
        .type = WEIR_PIPELINE_PREDICTION,
        .is_critical = prediction.critical,
        .replicas = prediction.replicas,
        .gpus = prediction.gpus,
        .no_frames_after_s = prediction.no_frames_after_s,
        .source = prediction.source,
        .sinks = prediction.sinks != NULL ? prediction.sinks : "[]",
        .doors = prediction.doors != NULL ? prediction.doors : "[]",
    };
    WEIR_TRY(doc_read_restart(reader, json_object_get(json, "restart"), out));
    WEIR_TRY(read_gallery(reader, json_object_get(json, "gallery"), out));
    WEIR_TRY(read_keep(reader, json_object_get(json, "keep"), out));
    return read_stages(reader, prediction.stages, out);
}

static const struct {
    const char *name;
    weir_status (*read)(const struct doc_reader *reader, const json_t *json,
                        struct weir_ion_doc_pipeline *out);
} types[] = {
    [WEIR_PIPELINE_TRAINING] = {"training", read_training},
    [WEIR_PIPELINE_PREDICTION] = {"prediction", read_prediction},
    [WEIR_PIPELINE_PREPARATION] = {"preparation", doc_read_preparation},
    [WEIR_PIPELINE_EVALUATION] = {"evaluation", doc_read_evaluation},
    [WEIR_PIPELINE_COMPARISON] = {"comparison", doc_read_comparison},
};

const char *weir_pipeline_type_name(enum weir_pipeline_type type)
{
    return types[type].name;
}

static weir_status read_pipeline(const struct doc_reader *reader, const json_t *json,
                                 struct weir_ion_doc_pipeline *out)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types) && type != NULL; i++) {
        if (strcmp(type, types[i].name) == 0) {
            return types[i].read(reader, json, out);
        }
    }
    static const char expected[] = "training, prediction, preparation, evaluation or comparison";
    return type == NULL
               ? weir_error_set(reader->err, WEIR_ERR_INVALID, "%s.type: expected %s", reader->path,
                                expected)
               : weir_error_set(reader->err, WEIR_ERR_INVALID, "%s.type: \"%.40s\" is not %s",
                                reader->path, type, expected);
}

static weir_status read_pipelines(const struct doc_reader *root, const json_t *json,
                                  const json_t *links, struct weir_ion_doc *doc)
{
    size_t n = json_array_size(json);
    bool has_links = json_array_size(links) > 0; /* From a model to a deployment they need none. */
    if (!json_is_array(json) || (n == 0 && !has_links) || n > WEIR_ION_PIPELINES_MAX) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.pipelines: expected an array of 1 to %d pipelines", root->path,
                              WEIR_ION_PIPELINES_MAX);
    }
    doc->pipelines = WEIR_ARENA_ARRAY(root->arena, n + 1, struct weir_ion_doc_pipeline);
    for (size_t i = 0; i < n; i++) {
        struct doc_reader reader = doc_reader_at(root, "pipelines", i);
        struct weir_ion_doc_pipeline pipeline = {0};
        WEIR_TRY(read_pipeline(&reader, json_array_get(json, i), &pipeline));
        if (weir_ion_doc_pipeline(doc, pipeline.name) != NULL) {
            return weir_error_set(root->err, WEIR_ERR_INVALID,
                                  "%s.name: there are two pipelines \"%s\"", reader.path,
                                  pipeline.name);
        }
        if (pipeline.type == WEIR_PIPELINE_TRAINING && pipeline.registers == NULL) {
            pipeline.registers = weir_arena_printf(root->arena, "%s.%s", doc->name, pipeline.name);
        }
        doc->pipelines[doc->n_pipelines++] = pipeline;
    }
    return WEIR_OK;
}

/** One end of a link must be a pipeline of the type. */
static weir_status check_end(const struct doc_reader *reader, const struct weir_ion_doc *doc,
                             const char *key, const char *name, enum weir_pipeline_type type)
{
    const struct weir_ion_doc_pipeline *pipeline = weir_ion_doc_pipeline(doc, name);
    if (pipeline == NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.%s: there is no pipeline \"%.63s\"", reader->path, key, name);
    }
    if (pipeline->type != type) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.%s: \"%s\" is not a %s pipeline: links lead from training to "
                              "prediction",
                              reader->path, key, name, weir_pipeline_type_name(type));
    }
    return WEIR_OK;
}

/** A link begins at a training pipeline, or at a registered model: {model: NAME}. */
static weir_status read_from(const struct doc_reader *parent, const json_t *json,
                             const struct weir_ion_doc *doc, struct weir_ion_doc_link *out)
{
    struct doc_reader reader = doc_reader_at(parent, "from", SIZE_MAX);
    if (json_is_string(json)) {
        out->from = weir_arena_strdup(reader.arena, json_string_value(json));
        return check_end(parent, doc, "from", out->from, WEIR_PIPELINE_TRAINING);
    }
    if (!json_is_object(json)) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s: expected the name of a training pipeline, or {model: NAME}",
                              reader.path);
    }
    struct link_from from = {0};
    WEIR_TRY(doc_read_object(&reader, &link_from_resource, json, &from));
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    if (from.alias != NULL && (from.alias[0] == '\0' || strlen(from.alias) > ALIAS_MAX_BYTES ||
                               from.alias[strspn(from.alias, letters)] != '\0')) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s.alias: \"%.60s\" is not the name of an alias", reader.path,
                              from.alias);
    }
    out->model = from.model;
    out->alias = from.alias;
    out->from =
        weir_arena_printf(reader.arena, WEIR_ION_FROM_MODEL "%s%s%s", from.model,
                          from.alias != NULL ? "@" : "", from.alias != NULL ? from.alias : "");
    return WEIR_OK;
}

/** A link leads to a prediction pipeline, or to a deployment: {deployment: NAME}. */
static weir_status read_to(const struct doc_reader *parent, const json_t *json,
                           const struct weir_ion_doc *doc, struct weir_ion_doc_link *out)
{
    struct doc_reader reader = doc_reader_at(parent, "to", SIZE_MAX);
    if (json_is_string(json)) {
        out->to = weir_arena_strdup(reader.arena, json_string_value(json));
        return check_end(parent, doc, "to", out->to, WEIR_PIPELINE_PREDICTION);
    }
    if (!json_is_object(json)) {
        return weir_error_set(reader.err, WEIR_ERR_INVALID,
                              "%s: expected the name of a prediction pipeline, or {deployment: "
                              "NAME}",
                              reader.path);
    }
    struct link_to to = {0};
    WEIR_TRY(doc_read_object(&reader, &link_to_resource, json, &to));
    out->deployment = to.deployment;
    out->to = weir_arena_printf(reader.arena, WEIR_ION_TO_DEPLOYMENT "%s", to.deployment);
    return WEIR_OK;
}

/** A policy that tries versions needs requests to try them on. */
static weir_status check_tries(const struct doc_reader *reader,
                               const struct weir_ion_doc_link *link)
{
    for (size_t i = 0; i < link->policies.n && link->deployment == NULL; i++) {
        if (weir_policy_ops(&link->policies.items[i])->trial_state != NULL) {
            return weir_error_set(reader->err, WEIR_ERR_INVALID,
                                  "%s.policy: %s is for a link that leads to a deployment (to: "
                                  "{deployment: NAME})",
                                  reader->path, link->policies.items[i].kind->name);
        }
    }
    return WEIR_OK;
}

/** "MODEL@VERSION" */
static weir_status read_default(const struct doc_reader *reader, const char *text,
                                struct weir_ion_doc_link *out)
{
    const char *at = text != NULL ? strrchr(text, '@') : NULL;
    if (text == NULL) {
        return WEIR_OK;
    }
    size_t n_digits = at != NULL ? strspn(at + 1, "0123456789") : 0;
    if (n_digits == 0 || n_digits > 15 || at[1 + n_digits] != '\0' || at[1] == '0') {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.default: expected MODEL@VERSION, got \"%.80s\"", reader->path,
                              text);
    }
    out->default_model = weir_arena_printf(reader->arena, "%.*s", (int)(at - text), text);
    out->default_version = strtoll(at + 1, NULL, 10);
    return weir_model_name_is_valid(out->default_model)
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_INVALID,
                                "%s.default: \"%.80s\" is not the name of a model", reader->path,
                                out->default_model);
}

static weir_status read_link(const struct doc_reader *reader, const json_t *json,
                             const struct weir_ion_doc *doc, struct weir_ion_doc_link *out)
{
    struct link link = {0};
    WEIR_TRY(doc_read_object(reader, &link_resource, json, &link));
    struct weir_ion_doc_link read = {0};
    WEIR_TRY(read_from(reader, json_object_get(json, "from"), doc, &read));
    WEIR_TRY(read_to(reader, json_object_get(json, "to"), doc, &read));
    const struct weir_ion_doc_link *other = weir_ion_doc_link_into(doc, read.to);
    if (other != NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.to: two links lead into \"%s\" (the other from \"%s\"): it "
                              "serves the models of one",
                              reader->path, read.to, other->from);
    }
    WEIR_TRY(weir_policy_chain_read(json_object_get(json, "policy"),
                                    weir_arena_printf(reader->arena, "%s.policy", reader->path),
                                    reader->arena, &read.policies, reader->err));
    WEIR_TRY(check_tries(reader, &read));
    WEIR_TRY(read_default(reader, link.by_default, &read));
    read.id = weir_arena_printf(reader->arena, "%s:%s", read.from, read.to);
    *out = read;
    return WEIR_OK;
}

/** Whom the network was trained on, it holds apart better than any impostor. */
static weir_status check_impostors(const struct doc_reader *root, const struct weir_ion_doc *doc,
                                   size_t i_pipeline)
{
    const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i_pipeline];
    const struct weir_ion_doc_link *link = weir_ion_doc_link_into(doc, pipeline->name);
    const struct weir_ion_doc_pipeline *training = weir_ion_doc_pipeline(doc, link->from);
    if (pipeline->impostors != NULL && training != NULL && training->dataset != NULL &&
        strcmp(pipeline->impostors, training->dataset) == 0) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.pipelines[%zu].gallery.impostors: \"%s\" is what pipeline \"%s\" "
                              "learns from: name people that no model was trained on",
                              root->path, i_pipeline, pipeline->impostors, training->name);
    }
    return WEIR_OK;
}

/** Each prediction needs a link into it. */
static weir_status check_predictions(const struct doc_reader *root, const struct weir_ion_doc *doc)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_PREDICTION) {
            continue;
        }
        if (weir_ion_doc_link_into(doc, pipeline->name) == NULL) {
            return weir_error_set(
                root->err, WEIR_ERR_INVALID,
                "%s.pipelines[%zu]: no link leads into \"%s\": it would never get "
                "a model",
                root->path, i, pipeline->name);
        }
        WEIR_TRY(check_impostors(root, doc, i));
    }
    return WEIR_OK;
}

static weir_status read_links(const struct doc_reader *root, const json_t *json,
                              struct weir_ion_doc *doc)
{
    size_t n = json_array_size(json);
    if (json != NULL && !json_is_null(json) && (!json_is_array(json) || n > WEIR_ION_LINKS_MAX)) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.links: expected an array of at most %d links", root->path,
                              WEIR_ION_LINKS_MAX);
    }
    doc->links = WEIR_ARENA_ARRAY(root->arena, n + doc->n_pipelines + 1, struct weir_ion_doc_link);
    doc->feeds = WEIR_ARENA_ARRAY(root->arena, n + 1, struct weir_ion_doc_feed);
    for (size_t i = 0; i < n; i++) {
        struct doc_reader reader = doc_reader_at(root, "links", i);
        const json_t *link = json_array_get(json, i);
        if (doc_is_feed(doc, link)) {
            WEIR_TRY(doc_read_feed(&reader, link, doc, &doc->feeds[doc->n_feeds]));
            doc->n_feeds++;
        } else {
            WEIR_TRY(read_link(&reader, link, doc, &doc->links[doc->n_links]));
            doc->links[doc->n_links].i_link = i;
            doc->n_links++;
        }
    }
    WEIR_TRY(doc_imply_links(root, doc));
    return check_predictions(root, doc);
}

weir_status weir_ion_doc_parse(const json_t *document, struct weir_arena *arena,
                               struct weir_ion_doc *out, struct weir_error *err)
{
    struct doc_reader root = {.path = "$", .arena = arena, .err = err};
    struct document top = {.kind = "ion", .project = "default"};
    struct weir_ion_doc doc = {0};
    WEIR_TRY(doc_read_object(&root, &document_resource, document, &top));
    if (top.kind == NULL || strcmp(top.kind, "ion") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.kind: \"%.40s\" is not \"ion\"",
                              top.kind != NULL ? top.kind : "");
    }
    doc.name = top.name;
    doc.project = top.project != NULL ? top.project : "default";
    WEIR_TRY(read_pipelines(&root, json_object_get(document, "pipelines"),
                            json_object_get(document, "links"), &doc));
    WEIR_TRY(doc_read_cuts(&root, &doc));
    WEIR_TRY(read_links(&root, json_object_get(document, "links"), &doc));
    WEIR_TRY(doc_check_feeds(&root, &doc));
    *out = doc;
    return WEIR_OK;
}

const struct weir_ion_doc_pipeline *weir_ion_doc_pipeline(const struct weir_ion_doc *doc,
                                                          const char *name)
{
    for (size_t i = 0; name != NULL && i < doc->n_pipelines; i++) {
        if (strcmp(doc->pipelines[i].name, name) == 0) {
            return &doc->pipelines[i];
        }
    }
    return NULL;
}

const char *weir_ion_doc_model(const struct weir_ion_doc *doc, const char *training)
{
    const struct weir_ion_doc_pipeline *pipeline = weir_ion_doc_pipeline(doc, training);
    return pipeline != NULL && pipeline->registers != NULL ? pipeline->registers : "";
}

const struct weir_ion_doc_link *weir_ion_doc_link(const struct weir_ion_doc *doc, const char *id)
{
    for (size_t i = 0; id != NULL && i < doc->n_links; i++) {
        if (strcmp(doc->links[i].id, id) == 0) {
            return &doc->links[i];
        }
    }
    return NULL;
}

const struct weir_ion_doc_link *weir_ion_doc_link_into(const struct weir_ion_doc *doc,
                                                       const char *to)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        if (strcmp(doc->links[i].to, to) == 0) {
            return &doc->links[i];
        }
    }
    return NULL;
}
