/** Tests: ION documents from YAML, events in one line, and a state as text. */
#ifndef WEIR_ION_ION_FIXTURE_H
#define WEIR_ION_ION_FIXTURE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/test_main.h"
#include "ion/ion.h"

#include <string.h>

/** As ck_assert, without the message that Check sends for every assertion that holds. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ck_abort_msg("%s", #condition);                                                        \
        }                                                                                          \
    } while (0)

/** Parse a document; also gives its JSON text. */
static inline struct weir_ion_doc *doc_from_yaml(struct weir_arena *arena, const char *yaml,
                                                 char **out_text)
{
    struct weir_error err;
    json_t *json = NULL;
    struct weir_ion_doc *doc = WEIR_ARENA_NEW(arena, struct weir_ion_doc);
    if (weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &err) != WEIR_OK ||
        weir_ion_doc_parse(json, arena, doc, &err) != WEIR_OK) {
        ck_abort_msg("%s: %s", yaml, err.message);
    }
    *out_text = weir_json_text(json, arena);
    json_decref(json);
    return doc;
}

/** Each decision can be made again from its row. */
static inline void require_replays(const struct weir_ion_actions *actions, struct weir_arena *arena)
{
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_policy_decision *row = &actions->items[i].decision;
        struct weir_policy_verdict told;
        struct weir_error err;
        if (actions->items[i].type != WEIR_ION_ACTION_DECIDED || strcmp(row->policy, "none") == 0) {
            continue;
        }
        ck_assert_int_eq(weir_policy_replay(row->inputs, arena, &told, &err), WEIR_OK);
        ck_assert_str_eq(told.verdict, row->verdict);
        ck_assert_str_eq(told.rule, row->rule);
    }
}

/** The version as a candidate; it is there. */
static inline struct weir_ion_candidate *require_candidate(const struct weir_ion_state *state,
                                                           int64_t version)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (state->candidates[i].version == version) {
            return &state->candidates[i];
        }
    }
    ck_abort_msg("no version %d", (int)version);
    return NULL;
}

/** Training "t" → prediction "p" under the policy; triggers and replicas as given (YAML flow). */
static inline struct weir_ion_event applied_as(struct weir_arena *arena, const char *policy,
                                               const char *triggers, const char *replicas)
{
    char *text;
    char *yaml = weir_arena_printf(
        arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m, triggers: %s},"
        " {name: p, type: prediction, replicas: %s, source: {kind: http},"
        " gallery: {dataset: people, default: allow}}], links: [{from: t, to: p, policy: %s}]}",
        triggers, replicas, policy);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(arena, yaml, &text);
    event.document = text;
    return event;
}

static inline struct weir_ion_event applied(struct weir_arena *arena, const char *policy,
                                            const char *triggers, int replicas)
{
    return applied_as(arena, policy, triggers, weir_arena_printf(arena, "%d", replicas));
}

/** A version of a model; pipeline: NULL if no training made it. */
static inline struct weir_ion_event model_of(struct weir_arena *arena, const char *name,
                                             const char *pipeline, int64_t version, const char *id)
{
    struct weir_ion_model *made = WEIR_ARENA_NEW(arena, struct weir_ion_model);
    *made = (struct weir_ion_model){name, id, version, "b10b", "{\"accuracy\":0.9}", NULL, NULL};
    return (struct weir_ion_event){
        .type = WEIR_ION_EVENT_MODEL, .pipeline = pipeline, .models = made, .n_models = 1};
}

static inline struct weir_ion_event model(struct weir_arena *arena, const char *pipeline,
                                          int64_t version)
{
    return model_of(arena, weir_arena_printf(arena, "x.%s", pipeline), pipeline, version,
                    weir_arena_printf(arena, "%s-v%lld", pipeline, (long long)version));
}

static inline const struct weir_ion_candidate *serving(const struct weir_ion_state *state,
                                                       const char *link)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (strcmp(state->candidates[i].link, link) == 0 &&
            strcmp(state->candidates[i].state, WEIR_CANDIDATE_SERVING) == 0) {
            return &state->candidates[i];
        }
    }
    return NULL;
}

static inline struct weir_ion_pipeline *pipeline_of(struct weir_ion_state *state, const char *name)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        if (strcmp(state->pipelines[i].name, name) == 0) {
            return &state->pipelines[i];
        }
    }
    ck_abort_msg("no pipeline %s", name);
    return NULL;
}

static inline size_t n_actions(const struct weir_ion_actions *actions,
                               enum weir_ion_action_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < actions->n; i++) {
        n += actions->items[i].type == type;
    }
    return n;
}

static inline void dump_record(struct weir_buf *buf, const struct weir_resource *resource,
                               const void *record)
{
    json_t *json = weir_record_to_json(resource, record);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    weir_buf_printf(buf, "%s\n", text);
    free(text);
    json_decref(json);
}

/** All records of a state, as text in the arena. */
static inline char *dump_state(const struct weir_ion_state *state, struct weir_arena *arena)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 16 << 20);
    dump_record(&buf, &weir_ion_resource, &state->ion);
    for (size_t i = 0; i < state->n_pipelines; i++) {
        dump_record(&buf, &weir_ion_pipeline_resource, &state->pipelines[i]);
    }
    for (size_t i = 0; i < state->n_candidates; i++) {
        dump_record(&buf, &weir_ion_candidate_resource, &state->candidates[i]);
    }
    for (size_t i = 0; i < state->n_triggers; i++) {
        if (strcmp(state->triggers[i].state, "REMOVED") != 0) { /* the store has none of those */
            dump_record(&buf, &weir_ion_trigger_resource, &state->triggers[i]);
        }
    }
    char *text = weir_arena_strdup(arena, buf.data);
    REQUIRE(buf.status == WEIR_OK);
    weir_buf_fini(&buf);
    return text;
}

/** All actions, as text in the arena. */
static inline char *dump_actions(const struct weir_ion_actions *actions, struct weir_arena *arena)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 16 << 20);
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_ion_action *action = &actions->items[i];
        weir_buf_printf(&buf, "%d %s %s %lld %s %s %s\n", (int)action->type,
                        action->key != NULL ? action->key : "-",
                        action->pipeline != NULL ? action->pipeline : "-",
                        (long long)action->number, action->job != NULL ? action->job : "-",
                        action->kind != NULL ? action->kind : "-",
                        action->message != NULL ? action->message : "-");
        if (action->type == WEIR_ION_ACTION_DECIDED) {
            dump_record(&buf, &weir_policy_decision_resource, &action->decision);
        }
        if (action->type == WEIR_ION_ACTION_FIRED) {
            dump_record(&buf, &weir_trigger_firing_resource, &action->firing);
        }
    }
    char *text = weir_arena_strdup(arena, buf.data);
    REQUIRE(buf.status == WEIR_OK);
    weir_buf_fini(&buf);
    return text;
}

#endif
