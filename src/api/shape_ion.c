/** What answers have about IONs: pipelines, links, candidates, triggers. */
#include "api/shape_private.h"

#include "ion/firing.h"
#include "ion/ion.h"
#include "ion/kpi.h"
#include "ion/replica.h"
#include "ion/revision.h"

static const struct api_member model_of_deployment_members[] = {
    ALWAYS("name", "text", "Model"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member gallery_of_deployment_members[] = {
    ALWAYS("dataset", "text", "Dataset"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member deployment_members[] = {
    MAY_MISS("model", "deployed model", "Model that frames are decided by"),
    MAY_MISS("gallery", "deployed gallery", "Gallery that people are recognised by"),
};
static const struct api_member pipeline_members[] = {
    OR_NULL("deployment", "pipeline deployment",
            "What replicas must serve; secrets are shown as ***"),
    OR_NULL("threshold", "threshold", "How a replica set the threshold last"),
    MAY_MISS("dataset", "text", "Dataset that a run begins with, gallery of a prediction"),
    MAY_MISS("output", "text", "Dataset that a preparation makes"),
    MAY_MISS("against", "text", "Where the model serves that a comparison compares with"),
    MAY_MISS("critical", "bool", "The ION is down if it fails"),
    MAY_MISS("restart", "text", "Restart rule"),
    MAY_MISS("model", "text", "Architecture that is trained"),
    MAY_MISS("workers", "integer", "Workers of a training"),
    MAY_MISS("kind", "text", "Kind of a training's jobs; null: it is no training"),
    MAY_MISS("registers", "text",
             "Model that a training makes versions of; null: it is no training"),
    MAY_MISS("parameter_servers", "integer", "Parameter servers of a training"),
    MAY_MISS("schedule", "text", "When it runs by itself"),
    MAY_MISS("new_data", "bool", "It runs whenever its dataset gets a new version"),
    MAY_MISS("replicas", "integer", "Replicas of a prediction"),
    MAY_MISS("gallery_dataset", "text", "Dataset of the gallery"),
    MAY_MISS("impostors", "text", "Dataset of people who belong to nobody"),
    MAY_MISS("false_accept_rate", "number", "Share of impostors that may be accepted"),
    MAY_MISS("false_deny_rate", "number", "Share of impostors that may be taken for the deny list"),
    MAY_MISS("gallery_default", "text", "What becomes of people on no list"),
    MAY_MISS("source", "any", "Where frames come from; its token is shown as ***"),
    MAY_MISS("triggers", "list of armed trigger",
             "What makes it run, in the order of the document"),
};
static const struct api_member waiting_members[] = {
    ALWAYS("version", "integer", "Version of the model"),
    ALWAYS("model", "text", "Model"),
    ALWAYS("state", "text", "PENDING_REVIEW, WAITING, APPROVED, SHADOW, CANARY or AB"),
    ALWAYS("position", "integer", "Policy of the chain where it stands, from 0"),
    OR_NULL("policy", "text", "That policy"),
    OR_NULL("why", "text", "What it waits for, in words"),
    ALWAYS("until_ms", "integer", "When the policy is asked again, ms since 1970; 0: no time"),
    ALWAYS("approvals", "list of any", "Who has approved it there: by, roles, time_ms"),
};
static const struct api_member link_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Training pipeline, or model/NAME of a registered model"),
    ALWAYS("to", "text", "Prediction pipeline, or deployment/NAME"),
    ALWAYS("policy", "text", "Policies that let versions through, in words"),
    ALWAYS("policies", "list of text", "Their kinds, in the order of the chain"),
    OR_NULL("serving_version", "integer", "What replicas serve"),
    OR_NULL("serving_model", "text", "Its model"),
    OR_NULL("wanted_version", "integer", "What the link has chosen"),
    OR_NULL("deployment_state", "text", "Of that one: DEPLOYING, SERVING or DEPLOY_FAILED"),
    ALWAYS("pending_versions", "list of integer", "What waits for a person"),
    ALWAYS("waiting", "list of waiting version",
           "What stands in the chain, for a person or a time"),
};
static const struct api_member start_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Pipeline, or model/NAME of a registered model"),
    ALWAYS("to", "text", "Pipeline that is started"),
    OR_NULL("dataset", "text", "Dataset whose versions start it; null: versions of a model do"),
};
static const struct api_member arm_members[] = {
    ALWAYS("version", "integer", "Version"),
    ALWAYS("is_live", "bool", "It served before the comparison"),
    ALWAYS("n", "integer", "Samples"),
    OR_NULL("mean", "number", "Their mean; of conversion and error the rate"),
    OR_NULL("variance", "number", "Of the samples"),
    OR_NULL("low", "number", "Of a rate, its 95 % interval (Wilson)"),
    OR_NULL("high", "number", "Of a rate, its 95 % interval (Wilson)"),
};
static const struct api_member comparison_members[] = {
    ALWAYS("ion", "text", "ION"),
    ALWAYS("link", "text", "Link, FROM:TO"),
    ALWAYS("deployment", "text", "Deployment whose requests are shared"),
    ALWAYS("model", "text", "Model"),
    ALWAYS("metric", "text", "conversion, error or a KPI"),
    ALWAYS("is_rate", "bool", "Samples are yes or no"),
    ALWAYS("is_less_better", "bool", "Less of it is better"),
    ALWAYS("confidence", "number", "That is asked for"),
    ALWAYS("min_samples", "integer", "Of each version, before they are compared"),
    ALWAYS("share_percent", "number", "Of the requests, that the candidate answers"),
    ALWAYS("begun_ms", "time", "Since when samples count (ms)"),
    ALWAYS("until_ms", "time", "When its time is over (ms)"),
    ALWAYS("left_s", "integer", "Until then"),
    ALWAYS("arms", "list of arm", "The version that serves, and the candidate"),
    OR_NULL("difference", "number", "Of the candidate's mean from the other's"),
    OR_NULL("difference_low", "number", "Its interval, which holds however often one looks"),
    OR_NULL("difference_high", "number", "Its interval, which holds however often one looks"),
    OR_NULL("uplift", "number", "The difference as a share of the other's mean"),
    OR_NULL("z", "number", "The difference in standard errors"),
    OR_NULL("p", "number", "One-sided, of a single look: that it is better by chance"),
    OR_NULL("p_better", "number", "The same however often one looks; what decides"),
    OR_NULL("p_worse", "number", "That it is worse by chance, however often one looks"),
};
#define ION_MEMBERS                                                                                \
    ALWAYS("pipelines", "list of pipeline", "Its pipelines"),                                      \
        ALWAYS("links", "list of link", "Its links, in the order of the document"),                \
        ALWAYS("starts", "list of starting link",                                                  \
               "Its links that start pipelines: with a dataset's versions, or with models to "     \
               "measure"),                                                                         \
        MAY_MISS("firings", "list of trigger firing",                                              \
                 "The newest firings of its triggers, newest first"),                              \
        MAY_MISS("comparisons", "list of ab_comparison",                                           \
                 "Versions that are compared among the requests of its deployments"),              \
        MAY_MISS("health", "health", "Is all well?")
static const struct api_member ion_members[] = {ION_MEMBERS};
static const struct api_member applied_ion_members[] = {
    ION_MEMBERS,
    ALWAYS("warnings", "list of text", "What looks wrong from here, but may be right elsewhere"),
    MAY_MISS("effects", "list of effect", "Of a dry run: what would come of it"),
};
static const struct api_member effect_members[] = {
    ALWAYS("kind", "text", "start, stop, deploy, decide or alert"),
    OR_NULL("pipeline", "text", "Pipeline that it is about"),
    OR_NULL("link", "text", "Link that it is about"),
    ALWAYS("text", "text", "In a sentence"),
};
static const struct api_member candidate_members[] = {
    ALWAYS("link_from", "text", "Training pipeline of the link, or model/NAME"),
    ALWAYS("link_to", "text", "Prediction pipeline of the link, or deployment/NAME"),
    OR_NULL("metrics", "map of any", "Measured quality"),
};

static const struct api_shape shapes[] = {
    SHAPE("deployed model", NULL, NULL, model_of_deployment_members),
    SHAPE("deployed gallery", NULL, NULL, gallery_of_deployment_members),
    SHAPE("pipeline deployment", NULL, NULL, deployment_members),
    RECORD("pipeline", weir_ion_pipeline_resource, "ion name type state", pipeline_members),
    SHAPE("waiting version", NULL, NULL, waiting_members),
    SHAPE("link", NULL, NULL, link_members),
    SHAPE("starting link", NULL, NULL, start_members),
    SHAPE("arm", NULL, NULL, arm_members),
    SHAPE("ab_comparison", NULL, NULL, comparison_members),
    RECORD("ION", weir_ion_resource, "project state mode created_by created_ms updated_ms",
           ion_members),
    {"applied ION", &weir_ion_resource, "project state mode created_by created_ms updated_ms",
     "POST /api/v1/ions", NULL, applied_ion_members, WEIR_ARRAY_LEN(applied_ion_members)},
    SHAPE("effect", NULL, NULL, effect_members),
    PLAIN_RECORD("revision", weir_ion_revision_resource, "ion document time_ms"),
    RECORD("candidate", weir_ion_candidate_resource,
           "ion link model model_version blob state created_ms", candidate_members),
    PLAIN_RECORD("kpi", weir_kpi_resource, "ion time_ms"),
    PLAIN_RECORD("member", weir_ion_member_resource, "ion person time_ms"),
    PLAIN_RECORD("policy decision", weir_policy_decision_resource,
                 "ion link candidate model_version policy rule verdict actor time_ms"),
    PLAIN_RECORD("replica", weir_ion_replica_resource, "ion pipeline replica time_ms"),
    PLAIN_RECORD("armed trigger", weir_ion_trigger_resource, "pipeline kind state armed_ms"),
    PLAIN_RECORD("trigger firing", weir_trigger_firing_resource,
                 "pipeline kind training reason time_ms"),
};

const struct api_shape_list api_shapes_of_ions = API_SHAPE_LIST(shapes);
