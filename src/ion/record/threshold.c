#include "ion/threshold.h"

#include "ion/ion.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// clang-format off
static const struct weir_field threshold_fields[] = {
    WEIR_FIELD(weir_threshold, deployment_revision, INT,  WEIR_FIELD_REQUIRED, "", "Deployment that it belongs to"),
    WEIR_FIELD(weir_threshold, replica,             TEXT, 0, "", "Replica that reports"),
    WEIR_FIELD(weir_threshold, threshold,           F64,  WEIR_FIELD_REQUIRED, "", "Score from which a face counts as known"),
    WEIR_FIELD(weir_threshold, threshold_low,       F64,  0, "", "Lower end of its 90 % interval: other impostors would have set it so; null: not known"),
    WEIR_FIELD(weir_threshold, threshold_high,      F64,  0, "", "Upper end of that interval"),
    WEIR_FIELD(weir_threshold, deny_threshold,      F64,  0, "", "The same for people on the deny list; null: the threshold of all"),
    WEIR_FIELD(weir_threshold, rule,                TEXT, WEIR_FIELD_REQUIRED, "", "By what it was set: impostors, gallery, both, blind"),
    WEIR_FIELD(weir_threshold, scores,              INT,  0, "", "Scores that it was set by"),
    WEIR_FIELD(weir_threshold, people,              INT,  0, "", "People whose photos gave them"),
    WEIR_FIELD(weir_threshold, gallery_people,      INT,  0, "", "People in the gallery; 0: nobody, or not known"),
    WEIR_FIELD(weir_threshold, asked_rate,          F64,  0, "", "The gallery's false_accept_rate"),
    WEIR_FIELD(weir_threshold, expected_rate,       F64,  0, "", "Share of impostors expected at or above it; null: not known"),
    WEIR_FIELD(weir_threshold, refused_share,       F64,  0, "", "Share of the gallery's own photos below it"),
    WEIR_FIELD(weir_threshold, impostors_enrolled,  INT,  0, "", "Impostors left out because they are in the gallery"),
    WEIR_FIELD(weir_threshold, photos_skipped,      INT,  0, "", "Photos left out because they are damaged"),
    WEIR_FIELD(weir_threshold, model_version,       INT,  0, "", "Model version"),
    WEIR_FIELD(weir_threshold, gallery_version,     INT,  0, "", "Version of the gallery's dataset"),
    WEIR_FIELD(weir_threshold, impostors_version,   INT,  0, "", "Version of the impostors' dataset; 0: none"),
    WEIR_FIELD(weir_threshold, time_ms,             TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was reported"),
};
// clang-format on

const struct weir_threshold weir_threshold_unknown = {.threshold_low = NAN,
                                                      .threshold_high = NAN,
                                                      .deny_threshold = NAN,
                                                      .asked_rate = NAN,
                                                      .expected_rate = NAN,
                                                      .refused_share = NAN};

/* What older versions stored lacks intervals and the deny list's: such are not known, not 0. */
const struct weir_resource weir_threshold_resource = WEIR_RESOURCE(
    "threshold", "", weir_threshold, threshold_fields, .unknown = &weir_threshold_unknown);

static const char sql_set[] =
    "UPDATE ion_pipelines SET threshold = :threshold WHERE id = :id AND type = 'prediction'";

/* Reports are compared without who made them, when, and for which deployment. */
static char *text_of(const struct weir_threshold *report, bool is_whole, struct weir_arena *arena)
{
    json_t *json = weir_record_to_json(&weir_threshold_resource, report);
    if (!is_whole) {
        (void)json_object_del(json, "replica");
        (void)json_object_del(json, "deployment_revision");
        (void)json_object_del(json, "time_ms");
    }
    char *text = weir_json_text(json, arena);
    json_decref(json);
    return text;
}

weir_status weir_threshold_store(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 const struct weir_threshold *report, bool *out_is_new,
                                 struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_ion_pipeline row;
    weir_arena_init(&arena, 0);
    *out_is_new = false;
    char *id = weir_arena_printf(&arena, "%s:%s", ion, pipeline);
    weir_status status = weir_txn_get(txn, &weir_ion_pipeline_resource, id, &arena, &row, err);
    if (status == WEIR_OK && weir_ion_service_of(&row) == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "ion \"%s\" has no prediction pipeline \"%s\"", ion, pipeline);
    }
    const struct weir_threshold *before = status == WEIR_OK ? row.service.threshold : NULL;
    bool is_late = before != NULL && before->deployment_revision > report->deployment_revision;
    if (status == WEIR_OK && !is_late) {
        *out_is_new = before == NULL ||
                      strcmp(text_of(before, false, &arena), text_of(report, false, &arena)) != 0;
        status =
            weir_txn_exec(txn, sql_set,
                          WEIR_BINDS(WEIR_BIND_TEXT("id", id),
                                     WEIR_BIND_TEXT("threshold", text_of(report, true, &arena))),
                          NULL, err);
    }
    weir_arena_fini(&arena);
    return status;
}

/* What the threshold costs, and what holds for the deny list: behind the sentence. */
static const char *price_of(const struct weir_threshold *report, struct weir_arena *arena)
{
    const char *refused = "", *barred = "";
    if (isfinite(report->refused_share)) {
        refused = weir_arena_printf(arena, " %.3g %% of the gallery's own photos are below it.",
                                    100 * report->refused_share);
    }
    if (isfinite(report->deny_threshold) && report->deny_threshold < report->threshold) {
        barred = weir_arena_printf(arena, " People on the deny list are recognised from %.3f on.",
                                   report->deny_threshold);
    }
    return weir_arena_printf(arena, "%s%s", refused, barred);
}

char *weir_threshold_sentence(const struct weir_threshold *report, const char *pipeline,
                              struct weir_arena *arena)
{
    const char *price = price_of(report, arena), *interval = "";
    if (!isfinite(report->expected_rate)) {
        return weir_arena_printf(arena,
                                 "Pipeline %s takes faces for known from a score of %.3f on. How "
                                 "many impostors get that is not known: the gallery names no "
                                 "impostors.%s",
                                 pipeline, report->threshold, price);
    }
    if (isfinite(report->threshold_low) && isfinite(report->threshold_high)) {
        interval = weir_arena_printf(arena, " (%.3f to %.3f by other impostors)",
                                     report->threshold_low, report->threshold_high);
    }
    return weir_arena_printf(
        arena,
        "Pipeline %s takes faces for known from a score of %.3f%s on: %.3g %% of impostors are "
        "expected there (asked: %.3g %%), by %" PRId64 " scores of %" PRId64 " impostors.%s",
        pipeline, report->threshold, interval, 100 * report->expected_rate,
        100 * report->asked_rate, report->scores, report->people, price);
}
