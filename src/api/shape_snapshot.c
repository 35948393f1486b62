/** What answers have about snapshots: their files, the state at a moment, a replay. */
#include "api/shape_private.h"

#include "capture/snapshot.h"

static const struct api_member snapshot_members[] = {
    MAY_MISS("rows", "map of integer", "Records by table; of a single one"),
    MAY_MISS("files", "list of snapshot file", "What is in it; of a single one"),
};
static const struct api_member snapshot_file_members[] = {
    ALWAYS("name", "text", "In the folder timeline-export/"),
    ALWAYS("bytes", "integer", "Size"),
    ALWAYS("sha256", "text", "SHA-256"),
};
static const struct api_member state_pipeline_members[] = {
    ALWAYS("name", "text", "Name"),
    ALWAYS("type", "text", "training, prediction, preparation, evaluation or comparison"),
};
static const struct api_member state_waiting_members[] = {
    ALWAYS("version", "integer", "Version"),
    OR_NULL("policy", "text", "Where it stood"),
    OR_NULL("rule", "text", "What it waited for, in words"),
    OR_NULL("since_ms", "time", "Since when"),
};
static const struct api_member state_link_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Pipeline, or model/NAME"),
    ALWAYS("to", "text", "Pipeline"),
    OR_NULL("policy", "any", "As the document had it"),
    OR_NULL("version", "integer", "That it had chosen by then"),
    OR_NULL("model", "text", "Whose version"),
    OR_NULL("since_ms", "time", "Since when"),
    OR_NULL("verdict", "text", "promote, set or rollback"),
    OR_NULL("rule", "text", "Why, in words"),
    OR_NULL("actor", "text", "Who, or policy"),
    ALWAYS("waiting", "list of snapshot waiting", "Versions that waited"),
};
static const struct api_member state_count_members[] = {
    ALWAYS("n", "integer", "Decisions since the span began"),
    ALWAYS("grant", "integer", "Of them"),
    ALWAYS("deny", "integer", "Of them"),
    ALWAYS("unknown", "integer", "Of them"),
    ALWAYS("error", "integer", "Of them"),
    ALWAYS("label", "integer", "Of them"),
};
static const struct api_member state_members[] = {
    ALWAYS("time_ms", "time", "The moment"),
    ALWAYS("revision", "integer", "Of the document by then"),
    OR_NULL("document", "any", "As it was; secrets are shown as ***"),
    ALWAYS("pipelines", "list of snapshot pipeline", "Of that document"),
    ALWAYS("links", "list of snapshot link", "With what each served and what waited"),
    ALWAYS("health", "list of health report", "The last report of each signal by then"),
    ALWAYS("alerts", "list of alert", "That were open"),
    ALWAYS("events", "list of event", "By then, newest first, 200 at most"),
    ALWAYS("decisions", "snapshot decisions", "Counted from the span's begin"),
    MAY_MISS("course", "list of snapshot part", "With points: what was decided in each part"),
};
static const struct api_member state_part_members[] = {
    ALWAYS("time_ms", "time", "Its end"),    ALWAYS("n", "integer", "Decisions in it"),
    ALWAYS("grant", "integer", "Of them"),   ALWAYS("deny", "integer", "Of them"),
    ALWAYS("unknown", "integer", "Of them"), ALWAYS("error", "integer", "Of them"),
    ALWAYS("label", "integer", "Of them"),
};
static const struct api_member told_members[] = {
    ALWAYS("verdict", "text", "pass, promote, wait, skip, reject"),
    ALWAYS("rule", "text", "In words"),
    MAY_MISS("options", "any", "The policy, with its options"),
};
static const struct api_member replayed_decision_members[] = {
    ALWAYS("id", "text", "Of the policy decision"),
    ALWAYS("time_ms", "time", "When it was made"),
    ALWAYS("link", "text", "FROM:TO"),
    ALWAYS("version", "integer", "Of the model"),
    ALWAYS("policy", "text", "That decided"),
    ALWAYS("position", "integer", "In its chain, from 0"),
    ALWAYS("recorded", "told verdict", "What was decided"),
    OR_NULL("replayed", "told verdict", "What would have been; null: nothing asks any more"),
    ALWAYS("differs", "bool", "Is the verdict another?"),
    OR_NULL("why", "text", "Which option changed, and the rule; null: all is the same"),
};
static const struct api_member replayed_policies_members[] = {
    ALWAYS("n", "integer", "Policy decisions of the span"),
    ALWAYS("n_same", "integer", "Of them, the same again, byte for byte"),
    ALWAYS("n_reworded", "integer", "Of them, the same verdict, said otherwise"),
    ALWAYS("n_differ", "integer", "Of them, another verdict"),
    ALWAYS("n_by_hand", "integer", "Of them, made by people without a policy"),
    ALWAYS("decisions", "list of replayed decision", "In their order"),
};
static const struct api_member replayed_version_members[] = {
    ALWAYS("link", "text", "FROM:TO"),
    ALWAYS("version", "integer", "Of the model"),
    ALWAYS("recorded", "told verdict", "What became of it"),
    OR_NULL("replayed", "told verdict", "What would have; null: there is no such link"),
    ALWAYS("differs", "bool", "Are they different?"),
    OR_NULL("why", "text", "If so, why"),
};
static const struct api_member drift_window_members[] = {
    ALWAYS("time_ms", "time", "Of its last value"),
    ALWAYS("window", "integer", "Number, from 0"),
    ALWAYS("n_values", "integer", "In it"),
    ALWAYS("p_value", "number", "How often one like this comes if nothing has changed"),
    ALWAYS("effect", "number", "How large the difference is"),
    ALWAYS("kind", "text", "location, spread, shape or none"),
    ALWAYS("drifted", "bool", "Does it differ?"),
    ALWAYS("confirmed", "bool", "Do enough of the last ones?"),
    ALWAYS("level", "number", "How far what is too slow for a window has added up: 1 is an alarm"),
    ALWAYS("alarm", "bool", "Is it drift, confirmed or added up?"),
};
static const struct api_member replayed_signal_members[] = {
    ALWAYS("pipeline", "text", "Pipeline"),
    ALWAYS("replica", "text", "Replica"),
    ALWAYS("model_version", "integer", "Version that decided"),
    ALWAYS("signal", "text", "score or brightness"),
    ALWAYS("n_values", "integer", "Compared"),
    ALWAYS("n_windows", "integer", "Tested"),
    OR_NULL("recorded_alarm", "time", "First that was reported then"),
    OR_NULL("replayed_alarm", "time", "First with these thresholds"),
    ALWAYS("differs", "bool", "Is there one where there was none, or the other way round?"),
    OR_NULL("why", "text", "If so, why; or why it was not tested"),
    ALWAYS("windows", "list of replayed window", "The first 1000"),
};
static const struct api_member replayed_drift_members[] = {
    ALWAYS("false_alarm_rate", "number", "Per window; 0: nothing was tested"),
    ALWAYS("min_effect", "number", "Least effect"),
    ALWAYS("window", "integer", "Values in a window"),
    ALWAYS("confirm_k", "integer", "Windows that must differ"),
    ALWAYS("confirm_n", "integer", "Of so many"),
    ALWAYS("signals", "list of replayed signal", "By replica and model version"),
};
static const struct api_member replay_members[] = {
    ALWAYS("is_same", "bool", "Nothing would have been decided otherwise"),
    ALWAYS("policies", "replayed policies", "Each decision made again"),
    ALWAYS("candidates", "list of replayed version",
           "Where each version gets in the document's chains; empty without a document"),
    ALWAYS("drift", "replayed drift", "Detectors over the decisions' values"),
};

static const struct api_shape shapes[] = {
    SHAPE("snapshot pipeline", NULL, NULL, state_pipeline_members),
    SHAPE("snapshot waiting", NULL, NULL, state_waiting_members),
    SHAPE("snapshot link", NULL, NULL, state_link_members),
    SHAPE("snapshot decisions", NULL, NULL, state_count_members),
    SHAPE("snapshot part", NULL, NULL, state_part_members),
    SHAPE("snapshot state", NULL, "GET /api/v1/snapshots/{name}/state", state_members),
    SHAPE("told verdict", NULL, NULL, told_members),
    SHAPE("replayed decision", NULL, NULL, replayed_decision_members),
    SHAPE("replayed policies", NULL, NULL, replayed_policies_members),
    SHAPE("replayed version", NULL, NULL, replayed_version_members),
    SHAPE("replayed window", NULL, NULL, drift_window_members),
    SHAPE("replayed signal", NULL, NULL, replayed_signal_members),
    SHAPE("replayed drift", NULL, NULL, replayed_drift_members),
    SHAPE("replay", NULL, "POST /api/v1/snapshots/{name}/replay", replay_members),
    SHAPE("snapshot file", NULL, NULL, snapshot_file_members),
    RECORD("snapshot", weir_snapshot_resource, "id ion project models created_ms from_ms to_ms",
           snapshot_members),
};

const struct api_shape_list api_shapes_of_snapshots = API_SHAPE_LIST(shapes);
