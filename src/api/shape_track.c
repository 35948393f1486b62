/** What answers and bodies have about tracking: experiments, runs, their files, models and versions. */
#include "api/shape_private.h"

#include "deploy/deploy.h"
#include "track/artifact.h"
#include "track/comparison.h"
#include "track/experiment.h"
#include "track/model_baseline.h"
#include "track/track.h"

static const struct api_member registered_members[] = {
    ALWAYS("model", "text", "Model"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member experiment_members[] = {
    ALWAYS("tags", "map of text", "Tags"),
    ALWAYS("n_runs", "integer", "Runs that are not deleted"),
};
static const struct api_member new_experiment_members[] = {
    ALWAYS("name", "text", "Name, once in a project"),
    MAY_MISS("project", "text", "Project; else the only one the caller has, or \"default\""),
    MAY_MISS("artifact_location", "text", "Where its runs' artifacts go; else to the server"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content"),
    MAY_MISS("tags", "map of text", "Tags"),
};
static const struct api_member changed_experiment_members[] = {
    MAY_MISS("name", "text", "Another name"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
};
static const struct api_member new_run_members[] = {
    MAY_MISS("name", "text", "Name; else its identifier"),
    MAY_MISS("project", "text", "Project; else the only one the caller has, or \"default\""),
    MAY_MISS("experiment", "any",
             "Number of its experiment, or a name that is made where it is new; else \"Default\""),
    MAY_MISS("params", "map of any", "Parameters"),
    MAY_MISS("tags", "map of any", "Tags"),
    MAY_MISS("user", "text", "Whom the program names as its user"),
    MAY_MISS("start_ms", "integer", "When it began (ms since 1970); else now"),
};
static const struct api_member changed_run_members[] = {
    MAY_MISS("status", "text", "RUNNING, SCHEDULED, FINISHED, FAILED or KILLED"),
    MAY_MISS("summary", "any", "What came out"),
    MAY_MISS("name", "text", "Another name"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
    MAY_MISS("params", "map of any", "Parameters, each of which is written once"),
    MAY_MISS("lifecycle", "text", "active or deleted"),
};
static const struct api_member run_summary_members[] = {
    ALWAYS("n", "integer", "Runs that the filter fits"),
    ALWAYS("metrics", "list of text", "Names of metrics that the newest 1000 of them have"),
    ALWAYS("params", "list of text", "Names of their parameters"),
    ALWAYS("logged_params", "list of text",
           "Those that programs logged: others are of what a job was started with"),
    ALWAYS("tags", "list of text", "Names of their tags"),
};
static const struct api_member run_group_members[] = {
    OR_NULL("value", "text", "What the runs of the group have; null: they have none"),
    ALWAYS("n_runs", "integer", "Runs of the group"),
    ALWAYS("n_measured", "integer", "Runs of it whose metric is a number"),
    OR_NULL("mean", "number", "Of their last measurements"),
    OR_NULL("least", "number", "The least of them"),
    OR_NULL("greatest", "number", "The greatest of them"),
};
static const struct api_member run_groups_members[] = {
    ALWAYS("items", "list of run group", "Groups by value, the runs without one first"),
    OR_NULL("next", "text", "Cursor of the page after this one; null: it is the last"),
};
static const struct api_member upload_part_members[] = {
    ALWAYS("number", "integer", "From 1 on"),
    ALWAYS("bytes", "integer", "Its size (bytes)"),
    ALWAYS("sha256", "text", "Of its bytes"),
};
static const struct api_member upload_members[] = {
    ALWAYS("parts", "list of upload part", "The parts that came"),
};
static const struct api_member run_input_members[] = {
    ALWAYS("name", "text", "What the program calls the data"),
    ALWAYS("digest", "text", "What tells its versions apart"),
    OR_NULL("context", "text", "What it was read for: training …"),
    OR_NULL("source_type", "text", "Kind of its source"),
    OR_NULL("source", "text", "Where it came from, as the program says"),
};
static const struct api_member run_lineage_members[] = {
    ALWAYS("inputs", "list of run input", "Data that the program says it read"),
    ALWAYS("versions", "list of model version",
           "Model versions that came of the run, the oldest first, without what is large"),
};
static const struct api_member run_members[] = {
    ALWAYS("params", "map of text", "Parameters, also those inside of `parameters`, as \"a.b\""),
    ALWAYS("tags", "map of text", "Tags"),
    ALWAYS("experiment_name", "text", "Name of its experiment"),
    ALWAYS("metrics", "map of number", "Last measurement of each key; null = not a number"),
    OR_NULL("epoch", "number", "Epoch that it is in"),
    OR_NULL("epochs", "number", "Epochs in all"),
    OR_NULL("progress", "number", "How far it is, 0 to 1"),
    OR_NULL("loss", "number", "Of the last mini-batches of training"),
    OR_NULL("accuracy", "number", "Of the last mini-batches of training"),
    OR_NULL("images_per_second", "number", "How fast it trains"),
    OR_NULL("validation_loss", "number", "Of data that is not trained with"),
    OR_NULL("validation_accuracy", "number", "Of data that is not trained with"),
    OR_NULL("model", "any", "Architecture that is trained"),
    OR_NULL("parameters", "map of any", "What it was started with; secrets are shown as ***"),
    OR_NULL("registered", "registered version", "Model version that came of it"),
    OR_NULL("started_ms", "time", "When its job began to run; null while it waits"),
};
static const struct api_member model_version_members[] = {
    OR_NULL("signature", "map of any", "What it takes and gives, and what runs it"),
    MAY_MISS("executor", "text", "What runs it, by its signature"),
    {"changes", "text", true, true,
     "Of a push: what it takes or gives otherwise than the version before it; null: nothing"},
    MAY_MISS("aliases", "list of text", "Its names"),
    MAY_MISS("tags", "map of text", "Tags"),
    MAY_MISS("deployments", "list of text", "Where it has a share, or is the mirror"),
    OR_NULL("parameters", "map of any", "Training parameters"),
    OR_NULL("metrics", "map of any", "Measured quality"),
};
static const struct api_member model_members[] = {
    MAY_MISS("tags", "map of text", "Tags; a list leaves them out"),
};
static const struct api_member changed_model_members[] = {
    MAY_MISS("description", "any", "What it is; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
};
static const struct api_member changed_version_members[] = {
    MAY_MISS("description", "any", "What it is; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
    MAY_MISS("stage", "text", "None, Staging, Production or Archived; changes nothing that runs"),
    MAY_MISS("archive_others", "bool", "The others of that stage become Archived"),
};
static const struct api_member new_version_members[] = {
    MAY_MISS("labels", "list of text",
             "Names of its classes, in their order; else as the file says"),
    MAY_MISS("preprocess", "map of any",
             "How a picture becomes its input: width, height, fit, mean, std …"),
    MAY_MISS("alias", "text", "Name that the version is given"),
    MAY_MISS("project", "text", "Of a model that is made by it: whose it is"),
};
static const struct api_member baseline_members[] = {
    ALWAYS("baseline", "map of any", "{features: {NAME: {kind, histogram or counts}}}"),
};
static const struct api_member found_comparison_members[] = {
    OR_NULL("comparison", "comparison",
            "Of the run; of an ION's version the newest, and one with what serves before all"),
    OR_NULL("why", "text", "Why there is none, and how to get one"),
};
static const struct api_member found_disagreements_members[] = {
    ALWAYS("items", "list of disagreement", "By kind, the surest first"),
    OR_NULL("next", "text", "Cursor of the page after this one; null: it is the last"),
    OR_NULL("why", "text", "Why no samples were compared, and how to get some"),
};

static const struct api_shape shapes[] = {
    SHAPE("registered version", NULL, NULL, registered_members),
    RECORD("experiment", weir_experiment_resource, "name project created_ms updated_ms",
           experiment_members),
    SHAPE_OF_BODY("new experiment", "POST /api/v1/experiments", new_experiment_members),
    SHAPE_OF_BODY("changed experiment", "PATCH /api/v1/experiments/{id}",
                  changed_experiment_members),
    SHAPE_OF_BODY("new run", "POST /api/v1/runs", new_run_members),
    SHAPE_OF_BODY("changed run", "PATCH /api/v1/runs/{id}", changed_run_members),
    RECORD("run", weir_run_resource, "name project kind status created_ms", run_members),
    SHAPE("run input", NULL, NULL, run_input_members),
    SHAPE("upload part", NULL, NULL, upload_part_members),
    RECORD("upload", weir_artifact_upload_resource, "run path created_ms", upload_members),
    PLAIN_RECORD("comparison", weir_comparison_resource,
                 "run model version live_model live_version dataset dataset_version confusions"
                 " time_ms"),
    SHAPE("found comparison", NULL, "GET /api/v1/ions/{name}/comparison", found_comparison_members),
    SHAPE("comparison of run", NULL, "GET /api/v1/runs/{id}/comparison", found_comparison_members),
    PLAIN_RECORD("disagreement", weir_disagreement_resource,
                 "id run kind file label answer live_answer"),
    SHAPE("found disagreements", NULL, "GET /api/v1/ions/{name}/disagreements",
          found_disagreements_members),
    SHAPE("disagreements of run", NULL, "GET /api/v1/runs/{id}/disagreements",
          found_disagreements_members),
    PLAIN_RECORD("model alias", weir_model_alias_resource, "model alias updated_ms"),
    RECORD("model version", weir_model_version_resource, "model created_ms", model_version_members),
    BODY("new model version", weir_model_version_resource, "POST /api/v1/models/{name}/versions",
         new_version_members),
    SHAPE("run lineage", NULL, "GET /api/v1/runs/{id}/lineage", run_lineage_members),
    SHAPE("run summary", NULL, "GET /api/v1/runs/summary", run_summary_members),
    SHAPE("run group", NULL, NULL, run_group_members),
    SHAPE("run groups", NULL, "GET /api/v1/runs/groups", run_groups_members),
    RECORD("model baseline", weir_model_baseline_resource, "time_ms", baseline_members),
    PLAIN_RECORD("metric", weir_metric_resource, "run"),
    RECORD("model", weir_model_resource, "project created_ms", model_members),
    SHAPE_OF_BODY("changed model", "PATCH /api/v1/models/{name}", changed_model_members),
    SHAPE_OF_BODY("changed version", "PATCH /api/v1/models/{name}/versions/{version}",
                  changed_version_members),
};

const struct api_shape_list api_shapes_of_tracking = API_SHAPE_LIST(shapes);
