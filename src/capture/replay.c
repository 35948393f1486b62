#include "capture/replay.h"

#include "base/buf.h"
#include "base/grow.h"
#include "ion/ion.h"
#include "ion/policy.h"

#include "base/view_table.h"

#include "capture/replay_views.def"

#include "base/view_end.h"

#include <stdlib.h>
#include <string.h>

/* A snapshot from outside may differ by very much: what does not fit here is left out. */
#define DIFFERENCE_MAX_BYTES ((size_t)16 << 10)

#define ROWS_MAX 20000

/* A policy decision of the span: as it was, and made again. */
struct row {
    struct weir_policy_decision *was;
    bool is_by_hand;
    const struct weir_policy *policy; /* of the new chain; NULL: it has none of that kind */
    size_t i_policy;                  /* in the new chain */
    struct weir_policy_verdict again; /* verdict NULL: nothing asks any more */
    bool is_same;                     /* verdict and rule, byte for byte */
    bool differs;                     /* the verdict is another */
    char *why;
};

struct replaying {
    const struct weir_snapshot_file *file;
    const struct weir_replay_rules *rules;
    struct weir_arena *arena;
    int64_t from_ms, to_ms;
    struct row *rows;
    size_t n_rows, cap_rows;
    int64_t n_same, n_reworded, n_differ, n_by_hand;
    bool differs;
};

/* ---- the rows -------------------------------------------------------------------------------- */

static void copy_texts(struct weir_arena *arena, struct weir_policy_decision *decision)
{
    char **const texts[] = {&decision->id,        &decision->ion,           &decision->link,
                            &decision->candidate, &decision->model_version, &decision->policy,
                            &decision->inputs,    &decision->rule,          &decision->verdict,
                            &decision->actor,     &decision->note};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        *texts[i] = weir_arena_strdup(arena, *texts[i] != NULL ? *texts[i] : "");
    }
}

static weir_status take_row(void *context, const void *record, struct weir_error *err)
{
    struct replaying *replaying = context;
    struct weir_policy_decision *was =
        WEIR_ARENA_NEW(replaying->arena, struct weir_policy_decision);
    *was = *(const struct weir_policy_decision *)record;
    if (was->time_ms < replaying->from_ms || was->time_ms > replaying->to_ms) {
        return WEIR_OK;
    }
    if (replaying->n_rows == ROWS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the span holds more than %d policy decisions: take a shorter one",
                              ROWS_MAX);
    }
    weir_arena_grow(replaying->arena, &replaying->rows, sizeof *replaying->rows, replaying->n_rows,
                    &replaying->cap_rows);
    copy_texts(replaying->arena, was);
    replaying->rows[replaying->n_rows++] =
        (struct row){.was = was, .is_by_hand = strcmp(was->policy, "none") == 0};
    return weir_arena_check(replaying->arena, "snapshot", err);
}

/* ---- one decision ---------------------------------------------------------------------------- */

/* The policy of the chain that stands for one of that kind and place: at its place, else the first. */
static bool find_policy(const struct weir_policy_chain *chain, const char *kind, int64_t position,
                        size_t *out)
{
    if (position >= 0 && (size_t)position < chain->n &&
        strcmp(chain->items[position].kind->name, kind) == 0) {
        *out = (size_t)position;
        return true;
    }
    for (size_t i = 0; i < chain->n; i++) {
        if (strcmp(chain->items[i].kind->name, kind) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* The inputs of a decision with another policy in place of its own. */
static char *inputs_with(const char *inputs, const struct weir_policy_chain *chain, size_t i_policy,
                         bool is_new, struct weir_arena *arena)
{
    json_t *json = json_loads(inputs, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    bool is_last = json_is_true(json_object_get(json, "is_last")) || is_new;
    json_object_set_new(json, "policy", json_loads(chain->items[i_policy].text, 0, NULL));
    json_object_set_new(json, "i_policy", json_integer((json_int_t)i_policy));
    json_object_set_new(json, "is_last", json_boolean(is_last && i_policy + 1 == chain->n));
    if (is_new) { /* it has just come there, and nobody has said anything */
        json_object_set(json, "since_ms", json_object_get(json, "now_ms"));
        json_object_set_new(json, "approvals", json_null());
    }
    char *text = weir_json_text(json, arena);
    json_decref(json);
    return text;
}

/* "min_interval_s is 60, it was 7200": how two policies of a kind differ. NULL: they do not. */
static char *options_differ(const char *was, const char *now, struct weir_arena *arena)
{
    json_t *a = json_loads(was, 0, NULL), *b = json_loads(now, 0, NULL), *value;
    struct weir_buf text;
    weir_buf_init(&text, DIFFERENCE_MAX_BYTES);
    const char *key;
    json_object_foreach(b, key, value)
    {
        json_t *before = json_object_get(a, key);
        if (!json_equal(before, value)) {
            char *x = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            char *y = before != NULL ? json_dumps(before, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
            weir_buf_printf(&text, "%s%s is %s, it was %s", text.len > 0 ? "; " : "", key,
                            x != NULL ? x : "", y != NULL ? y : "not given");
            free(x);
            free(y);
        }
    }
    json_object_foreach(a, key, value)
    {
        if (json_object_get(b, key) == NULL) {
            weir_buf_printf(&text, "%s%s is not given any more", text.len > 0 ? "; " : "", key);
        }
    }
    json_decref(a);
    json_decref(b);
    if (text.len == 0 && text.status != WEIR_OK) {
        text.status = WEIR_OK;
        weir_buf_printf(&text, "what differs is too long to be told");
    }
    char *copy = text.len > 0 ? weir_arena_memdup(arena, text.data, text.len) : NULL;
    weir_buf_fini(&text);
    return copy;
}

static char *policy_text_of(const struct row *row, struct weir_arena *arena)
{
    json_t *inputs = json_loads(row->was->inputs, 0, NULL);
    json_t *policy = json_object_get(inputs, "policy");
    char *text = policy != NULL ? weir_json_text(policy, arena) : weir_arena_strdup(arena, "{}");
    json_decref(inputs);
    return text;
}

static void compare(struct replaying *replaying, struct row *row)
{
    row->differs = strcmp(row->again.verdict, row->was->verdict) != 0;
    row->is_same = !row->differs && strcmp(row->again.rule, row->was->rule) == 0;
    if (row->is_same) {
        return;
    }
    char *options = row->policy != NULL ? options_differ(policy_text_of(row, replaying->arena),
                                                         row->policy->text, replaying->arena)
                                        : NULL;
    row->why = weir_arena_printf(replaying->arena, "%s%s%s", options != NULL ? options : "",
                                 options != NULL ? ": " : "", row->again.rule);
}

static weir_status again(struct replaying *replaying, struct row *row, struct weir_error *err)
{
    const char *inputs = row->was->inputs;
    struct weir_error why;
    if (row->policy != NULL) {
        const struct weir_ion_doc_link *link =
            weir_ion_doc_link(replaying->rules->doc, row->was->link);
        inputs = inputs_with(inputs, &link->policies, row->i_policy, false, replaying->arena);
    }
    weir_status status = inputs != NULL
                             ? weir_policy_replay(inputs, replaying->arena, &row->again, &why)
                             : weir_error_set(&why, WEIR_ERR_INVALID, "its inputs are not JSON");
    if (status != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "policy decision %s cannot be made again: %s",
                              row->was->id, why.message);
    }
    row->again.rule = weir_arena_strdup(replaying->arena, row->again.rule);
    compare(replaying, row);
    return WEIR_OK;
}

static void nobody_asks(struct replaying *replaying, struct row *row, const char *why)
{
    row->again = (struct weir_policy_verdict){0};
    row->differs = true;
    row->why = weir_arena_strdup(replaying->arena, why);
}

static weir_status replay_row(struct replaying *replaying, struct row *row, struct weir_error *err)
{
    if (row->is_by_hand) {
        replaying->n_by_hand++;
        return WEIR_OK;
    }
    if (replaying->rules->doc != NULL) {
        const struct weir_ion_doc_link *link =
            weir_ion_doc_link(replaying->rules->doc, row->was->link);
        if (link == NULL) {
            nobody_asks(replaying, row, "the document has no such link");
        } else if (find_policy(&link->policies, row->was->policy, row->was->position,
                               &row->i_policy)) {
            row->policy = &link->policies.items[row->i_policy];
        } else {
            nobody_asks(replaying, row,
                        weir_arena_printf(replaying->arena, "the link's chain has no %s any more",
                                          row->was->policy));
        }
    }
    if (!row->differs) {
        WEIR_TRY(again(replaying, row, err));
    }
    replaying->n_same += row->is_same;
    replaying->n_differ += row->differs;
    replaying->n_reworded += !row->is_same && !row->differs;
    replaying->differs = replaying->differs || row->differs;
    return WEIR_OK;
}

static json_t *row_json(const struct replaying *replaying, const struct row *row)
{
    const struct weir_policy_decision *was = row->was;
    json_t *policy = json_loads(policy_text_of(row, replaying->arena), 0, NULL);
    bool is_again = row->again.verdict != NULL;
    const struct replay_told again = {.verdict = row->again.verdict,
                                      .rule = row->again.rule,
                                      .options = !is_again ? NULL
                                                 : row->policy != NULL
                                                     ? json_loads(row->policy->text, 0, NULL)
                                                     : json_incref(policy)};
    return WEIR_VIEW_JSON(
        replay_decision, .id = was->id, .time_ms = was->time_ms, .link = was->link,
        .version = was->version, .policy = was->policy, .position = was->position,
        .recorded = {was->verdict, was->rule, policy != NULL ? policy : json_null()},
        .replayed = is_again ? &again : NULL, .differs = row->differs, .why = row->why);
}

/* ---- one candidate --------------------------------------------------------------------------- */

/* The last row of the candidate that the policy of the chain made again; NULL: it was never asked. */
static const struct row *last_of(const struct replaying *replaying, const char *candidate,
                                 size_t i_policy)
{
    for (size_t i = replaying->n_rows; i > 0; i--) {
        const struct row *row = &replaying->rows[i - 1];
        if (strcmp(row->was->candidate, candidate) == 0 && row->policy != NULL &&
            row->i_policy == i_policy && row->again.verdict != NULL) {
            return row;
        }
    }
    return NULL;
}

/* Where the candidate gets in the new chain. `last`: its last row of all. */
static weir_status go_through(struct replaying *replaying, const struct weir_policy_chain *chain,
                              const struct row *last, struct weir_policy_verdict *out,
                              struct weir_error *err)
{
    struct weir_policy_verdict told = {0};
    for (size_t i = 0; i < chain->n; i++) {
        const struct row *row = last_of(replaying, last->was->candidate, i);
        struct weir_error why;
        if (row != NULL) {
            told = row->again;
        } else {
            const char *inputs = inputs_with(last->was->inputs, chain, i, true, replaying->arena);
            if (inputs == NULL ||
                weir_policy_replay(inputs, replaying->arena, &told, &why) != WEIR_OK) {
                return weir_error_set(err, WEIR_ERR_CORRUPT, "policy decision %s cannot be used",
                                      last->was->id);
            }
        }
        if (strcmp(told.verdict, WEIR_VERDICT_PASS) != 0 &&
            strcmp(told.verdict, WEIR_VERDICT_PROMOTE) != 0) {
            *out = told;
            return WEIR_OK;
        }
    }
    told.verdict = WEIR_VERDICT_PROMOTE;
    *out = told;
    return WEIR_OK;
}

static weir_status add_candidate(struct replaying *replaying, const struct row *last,
                                 json_t *candidates, struct weir_error *err)
{
    const struct weir_ion_doc_link *link =
        weir_ion_doc_link(replaying->rules->doc, last->was->link);
    struct weir_policy_verdict told = {.verdict = NULL, .rule = "the document has no such link"};
    if (last->is_by_hand) {
        return WEIR_OK; /* a person's word stands */
    }
    if (link != NULL) {
        WEIR_TRY(go_through(replaying, &link->policies, last, &told, err));
    }
    bool differs = told.verdict == NULL || strcmp(told.verdict, last->was->verdict) != 0;
    const struct replay_told replayed = {.verdict = told.verdict, .rule = told.rule};
    json_array_append_new(
        candidates,
        WEIR_VIEW_JSON(replay_version, .link = last->was->link, .version = last->was->version,
                       .recorded = {.verdict = last->was->verdict, .rule = last->was->rule},
                       .replayed = told.verdict != NULL ? &replayed : NULL, .differs = differs,
                       .why = differs ? told.rule : NULL));
    replaying->differs = replaying->differs || differs;
    return WEIR_OK;
}

/* Each candidate once, by its last row. */
static weir_status add_candidates(struct replaying *replaying, json_t *candidates,
                                  struct weir_error *err)
{
    json_t *later = json_object();
    weir_status status = WEIR_OK;
    size_t *order = WEIR_ARENA_ARRAY(replaying->arena, replaying->n_rows + 1, size_t), n = 0;
    for (size_t i = replaying->n_rows; i > 0; i--) {
        const char *candidate = replaying->rows[i - 1].was->candidate;
        if (json_object_get(later, candidate) == NULL) {
            json_object_set_new(later, candidate, json_true());
            order[n++] = i - 1;
        }
    }
    json_decref(later);
    for (size_t i = n; i > 0 && status == WEIR_OK; i--) {
        status = add_candidate(replaying, &replaying->rows[order[i - 1]], candidates, err);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static weir_status replay_all(struct replaying *replaying, json_t *decisions, json_t *candidates,
                              json_t **out_drift, bool *out_drift_differs, struct weir_error *err)
{
    WEIR_TRY(weir_snapshot_span(replaying->file, &replaying->from_ms, &replaying->to_ms, err));
    WEIR_TRY(
        weir_snapshot_rows(replaying->file, &weir_noun_policy_decision, take_row, replaying, err));
    for (size_t i = 0; i < replaying->n_rows; i++) {
        WEIR_TRY(replay_row(replaying, &replaying->rows[i], err));
        if (!replaying->rows[i].is_by_hand) {
            json_array_append_new(decisions, row_json(replaying, &replaying->rows[i]));
        }
        WEIR_TRY(weir_arena_check(replaying->arena, "replay", err));
    }
    if (replaying->rules->doc != NULL) {
        WEIR_TRY(add_candidates(replaying, candidates, err));
    }
    return replay_drift(replaying->file, replaying->rules, replaying->arena, out_drift,
                        out_drift_differs, err);
}

weir_status weir_snapshot_replay(const struct weir_snapshot_file *file,
                                 const struct weir_replay_rules *rules, struct weir_arena *arena,
                                 json_t **out, struct weir_error *err)
{
    struct replaying replaying = {.file = file, .rules = rules, .arena = arena};
    json_t *decisions = json_array(), *candidates = json_array(), *drift = NULL;
    bool drift_differs = false;
    weir_status status = replay_all(&replaying, decisions, candidates, &drift, &drift_differs, err);
    if (status != WEIR_OK) {
        json_decref(decisions);
        json_decref(candidates);
        json_decref(drift);
        return status;
    }
    *out = WEIR_VIEW_JSON(replay_answer, .is_same = !replaying.differs && !drift_differs,
                          .policies = {.n = (int64_t)replaying.n_rows,
                                       .n_same = replaying.n_same,
                                       .n_reworded = replaying.n_reworded,
                                       .n_differ = replaying.n_differ,
                                       .n_by_hand = replaying.n_by_hand,
                                       .decisions = decisions},
                          .candidates = candidates, .drift = drift);
    return WEIR_OK;
}
