/* What a measurement found, to its run. */
#include "batch/disagree.h"
#include "batch/measure.h"
#include "batch/spec.h"

#include "base/log.h"
#include "client/client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RETRY_MS 300000

static void add(json_t *metrics, const char *key, double value)
{
    json_array_append_new(metrics,
                          json_pack("{s:s,s:i,s:f}", "key", key, "step", 0, "value", value));
}

static json_t *figures(const struct measure_found *found)
{
    const struct measure_score *first = &found->scores[0], *second = &found->scores[1];
    double n = (double)first->n;
    json_t *metrics = json_array();
    add(metrics, "accuracy", measure_accuracy(first));
    add(metrics, "loss", first->loss / n);
    add(metrics, "samples", n);
    add(metrics, "errors", (double)found->n_errors);
    if (found->pairs != NULL) {
        add(metrics, "live_accuracy", measure_accuracy(second));
        add(metrics, "live_loss", second->loss / n);
        add(metrics, "disagreement", (double)found->pairs->n_other / n);
        add(metrics, "difference", measure_accuracy(first) - measure_accuracy(second));
        add(metrics, "p_value", measure_p_value(found->pairs));
        add(metrics, "better", measure_better(found->pairs, found->spec->alpha));
        add(metrics, "only_model", (double)found->pairs->only_first);
        add(metrics, "only_live", (double)found->pairs->only_second);
        add(metrics, "loss_m2", found->pairs->loss_m2);
    }
    return metrics;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static json_t *score(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *sample_of(struct disagree *disagree)
{
    struct disagree_sample rows[DISAGREE_KEPT_MAX];
    size_t n = disagree_choose(disagree, rows);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct disagree_sample *row = &rows[i];
        const char *sha256 = row->sha256[0] != '\0' ? row->sha256 : NULL;
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s?,s:s,s:s,s:o,s:s,s:o}", "kind",
                                        disagree_kind_name(disagree_kind_of(row)), "file",
                                        row->file, "sha256", sha256, "label", row->label, "answer",
                                        row->answer, "score", score(row->score), "live_answer",
                                        row->live_answer, "live_score", score(row->live_score)));
    }
    return list;
}

static json_t *confusions_of(const struct disagree *disagree)
{
    struct disagree_confusion found[DISAGREE_CONFUSIONS_MAX];
    size_t n = disagree_confusions(disagree, found);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:I,s:I}", "label", found[i].label, "answer", found[i].answer,
                            "n", (json_int_t)found[i].n, "live_n", (json_int_t)found[i].live_n));
    }
    return list;
}

static json_t *comparison_of(const struct measure_found *found)
{
    struct disagree *disagree = found->disagree;
    return json_pack("{s:I,s:I,s:f,s:f,s:f,s:i,s:I,s:I,s:I,s:o,s:o}", "n_samples",
                     (json_int_t)found->scores[0].n, "n_errors", (json_int_t)found->n_errors,
                     "accuracy", measure_accuracy(&found->scores[0]), "live_accuracy",
                     measure_accuracy(&found->scores[1]), "p_value", measure_p_value(found->pairs),
                     "better", measure_better(found->pairs, found->spec->alpha), "n_live_right",
                     (json_int_t)disagree_count(disagree, DISAGREE_LIVE_RIGHT), "n_candidate_right",
                     (json_int_t)disagree_count(disagree, DISAGREE_CANDIDATE_RIGHT), "n_both_wrong",
                     (json_int_t)disagree_count(disagree, DISAGREE_BOTH_WRONG), "confusions",
                     confusions_of(disagree), "disagreements", sample_of(disagree));
}

/* ---- to the server --------------------------------------------------------------------------- */

static weir_status send(const struct measure_found *found, struct weir_client *client,
                        const char *method, const char *path, const json_t *body,
                        struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    weir_arena_init(&arena, 0);
    return weir_client_call_retry(
        client, method, weir_client_path(&arena, path, (const char *[]){found->spec->run}, 1), body,
        RETRY_MS, &answer, err);
}

/* People may look at it; nothing waits for it. */
static void tell_comparison(const struct measure_found *found, struct weir_client *client)
{
    struct weir_error why = {0};
    WEIR_AUTO(weir_json_auto_free) json_t *body = comparison_of(found);
    if (send(found, client, "PUT", "/api/v1/runs/{}/comparison", body, &why) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "comparison_not_kept", WEIR_KV_STR("error", why.message));
    }
}

/* The figures are what the job is for: without them it has not ended well. */
weir_status measure_tell(const struct measure_found *found, struct weir_client *client,
                         struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_pack("{s:o}", "metrics", figures(found));
    char *text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)printf("%s\n", text != NULL ? text : "{}");
    free(text);
    if (client == NULL || found->spec->run == NULL) {
        return WEIR_OK;
    }
    if (found->pairs != NULL) {
        tell_comparison(found, client);
    }
    return send(found, client, "POST", "/api/v1/runs/{}/metrics", body, err);
}
