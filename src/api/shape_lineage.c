/** What answers say of lineage, and model cards. */
#include "api/shape_private.h"

static const struct api_member lineage_code_members[] = {
    OR_NULL("version", "text", "Version of the program"),
    OR_NULL("commit", "text", "Git commit"),
    OR_NULL("branch", "text", "Git branch"),
    OR_NULL("repository", "text", "Where the repository is"),
    OR_NULL("dirty", "text", "true: with changes that were not committed"),
    OR_NULL("patch", "text", "Blob of these changes"),
    OR_NULL("manifest", "text", "Blob that lists the files it brought along"),
    OR_NULL("source", "text", "Command or file"),
};
static const struct api_member lineage_read_members[] = {
    ALWAYS("name", "text", "Dataset, or what the program calls the data"),
    OR_NULL("version", "integer",
            "Version of the server's dataset; null: of no dataset, or not known"),
    OR_NULL("digest", "text", "What the program says tells versions apart"),
    ALWAYS("as", "text", "dataset, validation, or what the program says: training …"),
};
static const struct api_member lineage_run_members[] = {
    ALWAYS("id", "text", "Identifier"),
    ALWAYS("name", "text", "Name"),
    ALWAYS("kind", "text", "Kind"),
    ALWAYS("status", "text", "Status"),
    ALWAYS("project", "text", "Project"),
    OR_NULL("job", "text", "Job that ran it"),
    OR_NULL("ion", "text", "ION that started it"),
    OR_NULL("pipeline", "text", "Pipeline of that"),
    OR_NULL("created_by", "text", "Who started it"),
    OR_NULL("user", "text", "Whom its program names"),
    OR_NULL("trigger", "text", "Why it was started"),
    OR_NULL("weights", "text", "File of weights that it began with"),
    OR_NULL("created_ms", "time", "When it was started"),
    OR_NULL("finished_ms", "time", "When it ended"),
    OR_NULL("deleted_ms", "time", "When it was deleted"),
    ALWAYS("code", "lineage code", "What ran"),
    ALWAYS("parameters", "map of text", "What it was started with"),
    ALWAYS("reads", "list of lineage read", "Data that it read"),
    OR_NULL("parent", "text", "Run whose checkpoints it went on from"),
};
static const struct api_member lineage_forgotten_members[] = {
    OR_NULL("person", "text", "Whose photos were deleted"),
    OR_NULL("n_files", "integer", "Files that went with them"),
    OR_NULL("actor", "text", "Who had it done"),
    OR_NULL("reason", "text", "Why"),
    OR_NULL("time_ms", "time", "When"),
};
static const struct api_member lineage_dataset_members[] = {
    ALWAYS("dataset", "text", "Dataset"),
    ALWAYS("version", "integer", "Version"),
    ALWAYS("is_there", "bool", "It is there, for the caller"),
    OR_NULL("digest", "text", "SHA-256 over names and contents"),
    OR_NULL("n_files", "integer", "Files"),
    OR_NULL("n_classes", "integer", "Classes"),
    OR_NULL("bytes", "integer", "Size of all files (bytes)"),
    OR_NULL("created_by", "text", "Who made it: a user, or ion/NAME for a preparation"),
    OR_NULL("created_ms", "time", "When"),
    OR_NULL("run", "text", "Run whose program wrote its files"),
    ALWAYS("forgotten", "list of lineage forgotten", "People who were deleted from it"),
};
static const struct api_member lineage_version_members[] = {
    ALWAYS("id", "text", "Identifier"),
    ALWAYS("model", "text", "Model"),
    ALWAYS("version", "integer", "Number"),
    OR_NULL("run", "text", "Run that made it"),
    OR_NULL("source", "text", "Where its files came from, as its maker says"),
    OR_NULL("source_run", "text", "The run, as its maker says"),
    OR_NULL("dataset", "text", "Dataset it was trained with"),
    OR_NULL("dataset_version", "integer", "Version of that"),
    OR_NULL("code_version", "text", "Version of the program that made it"),
    OR_NULL("blob", "text", "SHA-256 of its file"),
    OR_NULL("stage", "text", "Stage"),
    OR_NULL("created_by", "text", "Who registered it"),
    OR_NULL("deleted_by", "text", "Who deleted it"),
    ALWAYS("bytes", "integer", "Size of its file (bytes)"),
    OR_NULL("created_ms", "time", "When it was registered"),
    OR_NULL("deleted_ms", "time", "When it was deleted"),
};
static const struct api_member lineage_decisions_members[] = {
    OR_NULL("n_made", "integer", "Decisions with an effect that were ever made; null: not known"),
    OR_NULL("n_kept", "integer", "Decisions that are there, with an effect or tried"),
    OR_NULL("n_tried", "integer", "Decisions that were only tried"),
    OR_NULL("first_ms", "time", "When the first was made"),
    OR_NULL("last_ms", "time", "When the last was made"),
    ALWAYS("is_whole", "bool", "All are counted; else there were at least so many"),
    OR_NULL("why", "text", "Why not, in a sentence"),
};
static const struct api_member lineage_place_members[] = {
    ALWAYS("candidate", "text", "Candidate: the version on this link"),
    ALWAYS("ion", "text", "ION"),
    ALWAYS("link", "text", "Link, FROM:TO"),
    OR_NULL("pipeline", "text", "Prediction pipeline that the link leads to"),
    OR_NULL("deployment", "text", "Or the deployment"),
    ALWAYS("model", "text", "Model"),
    ALWAYS("version", "integer", "Its version"),
    ALWAYS("state", "text", "State of the candidate, as the link has it"),
    OR_NULL("made_by", "text", "Who triggered its training by hand, or registered it"),
    OR_NULL("served_ms", "time", "When it began to serve last"),
    OR_NULL("created_ms", "time", "When it came to the link"),
    ALWAYS("policies", "list of policy decision",
           "What policies and people decided about it, in order"),
    ALWAYS("are_policies_gone", "bool", "It served, and what the policies said is no longer kept"),
    OR_NULL("decisions", "lineage decisions",
            "Null for a deployment, whose answers are not kept, and in a decision's lineage"),
};
static const struct api_member lineage_gallery_members[] = {
    ALWAYS("ion", "text", "ION"),
    ALWAYS("pipeline", "text", "Prediction pipeline"),
    ALWAYS("dataset", "text", "Dataset that was its gallery"),
    ALWAYS("version", "integer", "Version of that"),
    ALWAYS("decisions", "lineage decisions", "Made with this version as the gallery"),
};
static const struct api_member lineage_revision_members[] = {
    ALWAYS("revision", "integer", "Revision of the ION"),
    OR_NULL("actor", "text", "Who applied it"),
    OR_NULL("time_ms", "time", "When"),
};
static const struct api_member lineage_name_members[] = {
    ALWAYS("dataset", "text", "Dataset"),
    ALWAYS("version", "integer", "Version"),
};
static const struct api_member lineage_reader_members[] = {
    ALWAYS("id", "text", "Identifier of the run"),
    ALWAYS("name", "text", "Name"),
    ALWAYS("kind", "text", "Kind"),
    ALWAYS("status", "text", "Status"),
    OR_NULL("created_by", "text", "Who started it"),
    OR_NULL("created_ms", "time", "When it was started"),
};
#define LINEAGE_MEMBERS                                                                            \
    ALWAYS("runs", "list of lineage run", "Runs on the way back, the nearest first"),              \
        ALWAYS("datasets", "list of lineage dataset", "Dataset versions on the way back"),         \
        ALWAYS("unknown", "list of text", "What is not known, a sentence each"),                   \
        ALWAYS("is_cut", "bool", "There is more than is named")
static const struct api_member decision_lineage_members[] = {
    ALWAYS("decision", "decision", "The decision"),
    OR_NULL("forgotten", "lineage forgotten", "The person whom it recognised was forgotten"),
    OR_NULL("revision", "lineage revision", "What was applied when it was made"),
    OR_NULL("gallery", "lineage name", "Who was known"),
    OR_NULL("place", "lineage place", "What served, and what let it through until then"),
    ALWAYS("is_certain", "bool", "It is known which model that was"),
    OR_NULL("version", "lineage version", "Model version"),
    LINEAGE_MEMBERS,
};
static const struct api_member version_lineage_members[] = {
    ALWAYS("version", "lineage version", "The version"),
    ALWAYS("places", "list of lineage place", "Links that it came to"),
    ALWAYS("deployments", "list of text", "Deployments where it has a share"),
    LINEAGE_MEMBERS,
};
static const struct api_member dataset_lineage_members[] = {
    ALWAYS("dataset", "lineage dataset", "The version"),
    ALWAYS("read_by", "list of lineage reader", "Runs that read it, or what came of it"),
    ALWAYS("made", "list of lineage name", "Dataset versions that came of it"),
    ALWAYS("versions", "list of lineage version", "Model versions that came of it"),
    ALWAYS("places", "list of lineage place", "Links that these came to"),
    ALWAYS("galleries", "list of lineage gallery", "Pipelines that it was the gallery of"),
    LINEAGE_MEMBERS,
};
static const struct api_member card_class_members[] = {
    ALWAYS("name", "text", "Class"),
    ALWAYS("n_files", "integer", "Its files"),
};
static const struct api_member card_data_members[] = {
    OR_NULL("dataset", "text", "Dataset it was trained with"),
    OR_NULL("version", "integer", "Version of that"),
    ALWAYS("classes", "list of card class",
           "The first 100 classes; without people who were forgotten"),
    ALWAYS("n_others", "integer", "Classes beside these"),
    OR_NULL("why", "text", "Why they are not counted"),
};
static const struct api_member card_evaluation_members[] = {
    ALWAYS("run", "text", "Run that measured"),
    ALWAYS("name", "text", "Its name"),
    OR_NULL("dataset", "text", "On which dataset"),
    OR_NULL("dataset_version", "integer", "Version of that"),
    OR_NULL("created_by", "text", "Who had it done"),
    OR_NULL("created_ms", "time", "When"),
    ALWAYS("metrics", "map of number", "Figures; null = not a number"),
};
static const struct api_member card_accuracy_members[] = {
    OR_NULL("name", "text", "Camera; null: all"),
    ALWAYS("n", "integer", "Decisions whose truth is known"),
    ALWAYS("right", "integer", "Right ones of these"),
    OR_NULL("accuracy", "number", "Their share"),
    OR_NULL("low", "number", "From here (95 %)"),
    OR_NULL("high", "number", "To here"),
};
static const struct api_member card_signal_members[] = {
    ALWAYS("signal", "text", "What was compared with the training data"),
    ALWAYS("statistic", "text", "How: ks, chi2 …"),
    OR_NULL("value", "number", "Value of the statistic"),
    OR_NULL("p_value", "number", "Chance of it without drift"),
    ALWAYS("drifted", "bool", "Taken as drift"),
    ALWAYS("n_samples", "integer", "Samples in the window"),
    OR_NULL("time_ms", "time", "When"),
};
static const struct api_member card_live_members[] = {
    ALWAYS("ion", "text", "ION"),
    ALWAYS("pipeline", "text", "Pipeline that serves the version"),
    ALWAYS("since_ms", "time", "Figures are those since then"),
    ALWAYS("accuracy", "card accuracy", "Of all decisions whose truth is known"),
    ALWAYS("cameras", "list of card accuracy", "The same by camera"),
    ALWAYS("signals", "list of card signal", "The newest report of each signal"),
};
static const struct api_member card_members[] = {
    ALWAYS("made_ms", "time", "When the card was made"),
    ALWAYS("model", "model", "The model"),
    ALWAYS("version", "model version",
           "The version, without its baseline, with the first 1,000 labels"),
    OR_NULL("architecture", "text", "What was trained, as its parameters say"),
    OR_NULL("n_labels", "integer", "Labels that it has; null: none"),
    ALWAYS("lineage", "version lineage", "Where it came from and what it reached"),
    ALWAYS("data", "card data", "What it was trained with"),
    ALWAYS("baseline", "list of text", "What its baseline has"),
    ALWAYS("evaluations", "list of card evaluation",
           "The newest 50 measurements on named datasets"),
    ALWAYS("live", "list of card live", "How it does where it serves now"),
    ALWAYS("limits", "list of text", "What is not known, a sentence each"),
};

static const struct api_shape shapes[] = {
    SHAPE("lineage code", NULL, NULL, lineage_code_members),
    SHAPE("lineage read", NULL, NULL, lineage_read_members),
    SHAPE("lineage run", NULL, NULL, lineage_run_members),
    SHAPE("lineage forgotten", NULL, NULL, lineage_forgotten_members),
    SHAPE("lineage dataset", NULL, NULL, lineage_dataset_members),
    SHAPE("lineage version", NULL, NULL, lineage_version_members),
    SHAPE("lineage decisions", NULL, NULL, lineage_decisions_members),
    SHAPE("lineage place", NULL, NULL, lineage_place_members),
    SHAPE("lineage gallery", NULL, NULL, lineage_gallery_members),
    SHAPE("lineage revision", NULL, NULL, lineage_revision_members),
    SHAPE("lineage name", NULL, NULL, lineage_name_members),
    SHAPE("lineage reader", NULL, NULL, lineage_reader_members),
    SHAPE("decision lineage", NULL, "GET /api/v1/decisions/{id}/lineage", decision_lineage_members),
    SHAPE("version lineage", NULL, "GET /api/v1/models/{name}/versions/{version}/lineage",
          version_lineage_members),
    SHAPE("dataset lineage", NULL, "GET /api/v1/datasets/{name}/versions/{version}/lineage",
          dataset_lineage_members),
    SHAPE("card class", NULL, NULL, card_class_members),
    SHAPE("card data", NULL, NULL, card_data_members),
    SHAPE("card evaluation", NULL, NULL, card_evaluation_members),
    SHAPE("card accuracy", NULL, NULL, card_accuracy_members),
    SHAPE("card signal", NULL, NULL, card_signal_members),
    SHAPE("card live", NULL, NULL, card_live_members),
    SHAPE("model card", NULL, "GET /api/v1/models/{name}/versions/{version}/card", card_members),
};

const struct api_shape_list api_shapes_of_lineage = API_SHAPE_LIST(shapes);
