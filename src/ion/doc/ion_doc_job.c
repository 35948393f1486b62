/* Pipelines that run jobs other than trainings, and what all pipelines have. */
#include "ion/doc/ion_doc_reader.h"

#include <string.h>

struct evaluation {
    char *name, *type, *dataset, *against, *parameters, *triggers, *restart;
    int64_t max_restarts;
    bool critical;
};

struct program {
    char *name, *type, *kind, *registers, *dataset, *parameters, *triggers, *restart;
    int64_t max_restarts;
    bool critical;
};

struct preparation {
    char *name, *type, *dataset, *output, *parameters, *triggers, *restart;
    int64_t max_restarts;
    bool critical;
};

// clang-format off
static const struct weir_field program_fields[] = {
    WEIR_FIELD(program, name,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "name within the ION"),
    WEIR_FIELD(program, type,         TEXT, WEIR_FIELD_REQUIRED, "", "training"),
    WEIR_FIELD(program, kind,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "kind of its jobs"),
    WEIR_FIELD(program, registers,    TEXT, WEIR_FIELD_MODEL, "", "name of the model that it makes"),
    WEIR_FIELD(program, dataset,      TEXT, WEIR_FIELD_NAME, "", "dataset that it reads"),
    WEIR_FIELD(program, parameters,   JSON, WEIR_FIELD_REQUIRED, "", "options of its jobs"),
    WEIR_FIELD(program, max_restarts, INT,  0, "", "restarts of its job after a failure"),
    WEIR_FIELD(program, triggers,     JSON, 0, "", "when it runs"),
    WEIR_FIELD(program, restart,      JSON, 0, "", "whether it runs again after it has ended"),
    WEIR_FIELD(program, critical,     BOOL, 0, "", "whether the ION is down if it fails"),
};
static const struct weir_field preparation_fields[] = {
    WEIR_FIELD(preparation, name,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "name within the ION"),
    WEIR_FIELD(preparation, type,         TEXT, WEIR_FIELD_REQUIRED, "", "preparation"),
    WEIR_FIELD(preparation, dataset,      TEXT, WEIR_FIELD_NAME, "", "dataset that it reads"),
    WEIR_FIELD(preparation, output,       TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "dataset whose versions it makes"),
    WEIR_FIELD(preparation, parameters,   JSON, WEIR_FIELD_REQUIRED, "", "options of its command"),
    WEIR_FIELD(preparation, max_restarts, INT,  0, "", "restarts of its job after a failure"),
    WEIR_FIELD(preparation, triggers,     JSON, 0, "", "when it runs"),
    WEIR_FIELD(preparation, restart,      JSON, 0, "", "whether it runs again after it has ended"),
    WEIR_FIELD(preparation, critical,     BOOL, 0, "", "whether the ION is down if it fails"),
};
#define EVALUATION_FIELDS                                                                              \
    WEIR_FIELD(evaluation, name,         TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "name within the ION"),      \
    WEIR_FIELD(evaluation, type,         TEXT, WEIR_FIELD_REQUIRED, "", "evaluation or comparison"),                   \
    WEIR_FIELD(evaluation, dataset,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "dataset that it measures on"), \
    WEIR_FIELD(evaluation, parameters,   JSON, 0, "", "how it measures"),                                              \
    WEIR_FIELD(evaluation, max_restarts, INT,  0, "", "restarts of its job after a failure"),                          \
    WEIR_FIELD(evaluation, triggers,     JSON, 0, "", "when it runs beside"),                                          \
    WEIR_FIELD(evaluation, restart,      JSON, 0, "", "whether it runs again after it has ended"),                     \
    WEIR_FIELD(evaluation, critical,     BOOL, 0, "", "whether the ION is down if it fails")
static const struct weir_field evaluation_fields[] = {EVALUATION_FIELDS};
static const struct weir_field comparison_fields[] = {
    EVALUATION_FIELDS,
    WEIR_FIELD(evaluation, against, JSON, WEIR_FIELD_REQUIRED, "", "where the other model serves"),
};
// clang-format on

static const struct weir_resource evaluation_resource =
    WEIR_RESOURCE("evaluation", "", evaluation, evaluation_fields);
static const struct weir_resource comparison_resource =
    WEIR_RESOURCE("comparison", "", evaluation, comparison_fields);
static const struct weir_resource program_resource =
    WEIR_RESOURCE("training by a program", "", program, program_fields);
static const struct weir_resource preparation_resource =
    WEIR_RESOURCE("preparation", "", preparation, preparation_fields);

static weir_status check_triggers(const struct doc_reader *reader,
                                  const struct weir_ion_doc_pipeline *pipeline)
{
    const struct weir_trigger *trigger =
        weir_trigger_of_kind(&pipeline->triggers, &weir_trigger_kind_new_data);
    return pipeline->dataset != NULL || trigger == NULL
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_INVALID,
                                "%s.triggers[%td]: new-data needs a dataset whose versions it is "
                                "to see: name it in %s.dataset",
                                reader->path, trigger - pipeline->triggers.items, reader->path);
}

weir_status doc_read_restart(const struct doc_reader *parent, const json_t *json,
                             struct weir_ion_doc_pipeline *out)
{
    struct doc_reader reader = doc_reader_at(parent, "restart", SIZE_MAX);
    return weir_restart_read(json, reader.path, reader.arena, &out->restart, reader.err);
}

weir_status doc_read_job(const struct doc_reader *reader, const json_t *json,
                         struct weir_ion_doc_pipeline *out)
{
    const json_t *parameters = json_object_get(json, "parameters");
    WEIR_TRY(doc_check_range(reader, "max_restarts", out->max_restarts, 0, 1000));
    if (parameters != NULL && !json_is_null(parameters) && !json_is_object(parameters)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s.parameters: expected an object",
                              reader->path);
    }
    if (!json_is_object(parameters)) {
        out->parameters = "{}";
    }
    WEIR_TRY(doc_read_restart(reader, json_object_get(json, "restart"), out));
    return doc_read_triggers(reader, json_object_get(json, "triggers"), out);
}

weir_status doc_read_program(const struct doc_reader *reader, const json_t *json,
                             struct weir_ion_doc_pipeline *out)
{
    struct program read = {0};
    WEIR_TRY(doc_read_object(reader, &program_resource, json, &read));
    if (!json_is_object(json_object_get(json, "parameters"))) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.parameters: expected an object with the options of the program, "
                              "such as {argv: [python3, train.py]}",
                              reader->path);
    }
    *out = (struct weir_ion_doc_pipeline){
        .name = read.name,
        .type = WEIR_PIPELINE_TRAINING,
        .is_critical = read.critical,
        .kind = read.kind,
        .registers = read.registers,
        .dataset = read.dataset,
        .workers = 1,
        .max_restarts = read.max_restarts,
        .parameters = read.parameters,
    };
    WEIR_TRY(doc_read_job(reader, json, out));
    return check_triggers(reader, out);
}

weir_status doc_read_preparation(const struct doc_reader *reader, const json_t *json,
                                 struct weir_ion_doc_pipeline *out)
{
    struct preparation read = {0};
    WEIR_TRY(doc_read_object(reader, &preparation_resource, json, &read));
    if (!json_is_object(json_object_get(json, "parameters"))) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.parameters: expected an object with the options of the command, "
                              "such as {argv: [python3, prepare.py]}",
                              reader->path);
    }
    if (read.dataset != NULL && strcmp(read.dataset, read.output) == 0) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.output: \"%s\" is what it reads: name another dataset, or a run "
                              "that fails would have spoiled it",
                              reader->path, read.output);
    }
    *out = (struct weir_ion_doc_pipeline){
        .name = read.name,
        .type = WEIR_PIPELINE_PREPARATION,
        .is_critical = read.critical,
        .dataset = read.dataset,
        .output = read.output,
        .workers = 1,
        .max_restarts = read.max_restarts,
        .parameters = read.parameters,
    };
    WEIR_TRY(doc_read_job(reader, json, out));
    return check_triggers(reader, out);
}

static weir_status read_measuring(const struct doc_reader *reader,
                                  const struct weir_resource *resource,
                                  enum weir_pipeline_type type, const json_t *json,
                                  struct weir_ion_doc_pipeline *out)
{
    struct evaluation read = {.max_restarts = 3};
    WEIR_TRY(doc_read_object(reader, resource, json, &read));
    *out = (struct weir_ion_doc_pipeline){
        .name = read.name,
        .type = type,
        .is_critical = read.critical,
        .dataset = read.dataset,
        .workers = 1,
        .max_restarts = read.max_restarts,
        .parameters = read.parameters,
    };
    return doc_read_job(reader, json, out);
}

weir_status doc_read_evaluation(const struct doc_reader *reader, const json_t *json,
                                struct weir_ion_doc_pipeline *out)
{
    return read_measuring(reader, &evaluation_resource, WEIR_PIPELINE_EVALUATION, json, out);
}

weir_status doc_read_comparison(const struct doc_reader *reader, const json_t *json,
                                struct weir_ion_doc_pipeline *out)
{
    const json_t *against = json_object_get(json, "against");
    const char *name = json_string_value(against);
    const char *deployment = json_string_value(json_object_get(against, "deployment"));
    WEIR_TRY(read_measuring(reader, &comparison_resource, WEIR_PIPELINE_COMPARISON, json, out));
    if (name == NULL && deployment == NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.against: expected the name of a prediction pipeline, or "
                              "{deployment: NAME}: what serves there is what it compares with",
                              reader->path);
    }
    out->against = name != NULL
                       ? weir_arena_strdup(reader->arena, name)
                       : weir_arena_printf(reader->arena, WEIR_ION_TO_DEPLOYMENT "%s", deployment);
    return WEIR_OK;
}
