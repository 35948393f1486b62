#include "ion/claim.h"

#include "stats/claim.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static const char sql_unknown[] =
    "SELECT coalesce(sum(n), 0) FROM unknown_days"
    " WHERE ion = :ion AND pipeline = :pipeline AND day BETWEEN :first AND :last";
static const char sql_first[] = "SELECT coalesce(min(first_ms), -1) FROM decision_totals"
                                " WHERE ion = :ion AND pipeline = :pipeline AND is_sandbox = 0";

weir_status weir_unknown_count(struct weir_txn *txn, const char *ion, const char *pipeline,
                               int64_t now_ms, struct weir_unknown *out, struct weir_error *err)
{
    int64_t last = now_ms / DAY_MS, first = last - WEIR_UNKNOWN_DAYS + 1, first_ms;
    struct weir_unknown found = {.days = NAN};
    WEIR_TRY(weir_txn_query_int(
        txn, sql_first,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline)), 0, &first_ms,
        err));
    WEIR_TRY(weir_txn_query_int(
        txn, sql_unknown,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline),
                   WEIR_BIND_INT("first", first), WEIR_BIND_INT("last", last)),
        0, &found.n, err));
    if (first_ms >= 0) {
        int64_t since_ms = WEIR_MAX(first_ms, first * DAY_MS);
        found.days = WEIR_MAX(1.0, (double)(now_ms - since_ms) / (double)DAY_MS);
    }
    *out = found;
    return WEIR_OK;
}

/* ---- the figures ----------------------------------------------------------------------------- */

static bool has_impostors(const struct weir_threshold *threshold)
{
    return strcmp(threshold->rule, "impostors") == 0 || strcmp(threshold->rule, "both") == 0;
}

static struct weir_claim gallery_of(const struct weir_threshold *threshold,
                                    struct weir_arena *arena)
{
    bool is_known = threshold->gallery_people > 0;
    return (struct weir_claim){
        "gallery_people", is_known ? (double)threshold->gallery_people : NAN, "people",
        is_known ? weir_arena_printf(arena,
                                     "The people whom each face is compared with: version %" PRId64
                                     " of the gallery.",
                                     threshold->gallery_version)
                 : "The gallery is empty, or the replica that reported does not say how many are "
                   "in it."};
}

static struct weir_claim searches_of(const struct weir_threshold *threshold,
                                     struct weir_arena *arena)
{
    const char *none = "The gallery names no impostors: nobody who is not enrolled was searched "
                       "for in it. Name some in gallery.impostors.";
    if (!has_impostors(threshold)) {
        return (struct weir_claim){"impostor_searches", 0, "searches", none};
    }
    return (struct weir_claim){
        "impostor_searches", (double)threshold->scores, "searches",
        weir_arena_printf(
            arena, "Photos of %" PRId64 " impostors, each searched for in the whole gallery.",
            threshold->people)};
}

static struct weir_claim claimable_of(const struct weir_threshold *threshold,
                                      struct weir_arena *arena)
{
    double n = has_impostors(threshold) ? (double)threshold->people : 0;
    const char *rests_on =
        n > 0
            ? weir_arena_printf(arena,
                                "3 / %.0f, with 95 %%: by impostors, not by their photos, as those "
                                "of one person say nearly the same. Below it nothing is known.",
                                n)
            : "Without impostors no rate can be claimed.";
    return (struct weir_claim){"claimable_rate", weir_claimable_rate(n), "share", rests_on};
}

static struct weir_claim measured_of(const struct weir_threshold *threshold)
{
    bool is_known = isfinite(threshold->expected_rate);
    return (struct weir_claim){
        "measured_rate", threshold->expected_rate, "share",
        is_known ? "The share of these searches that would name somebody at the threshold, as the "
                   "replica found."
                 : "How many impostors reach the threshold is not known without impostors."};
}

static struct weir_claim unknown_of(const struct weir_unknown *unknown, struct weir_arena *arena)
{
    bool is_known = isfinite(unknown->days);
    return (struct weir_claim){
        "unknown_a_day", is_known ? (double)unknown->n / unknown->days : NAN, "per day",
        is_known
            ? weir_arena_printf(arena,
                                "%" PRId64 " decisions of the last %.1f days knew nobody. People "
                                "who are enrolled and were not recognised are among them.",
                                unknown->n, unknown->days)
            : "The pipeline has decided nothing yet."};
}

/* Each of the unknown is one search of the whole gallery. */
static double admits(double unknown, double rate)
{
    return weir_false_admits_a_day((unknown), rate, 1, 1);
}

static struct weir_claim admits_of(double claimable, double measured, double unknown,
                                   struct weir_arena *arena)
{
    struct weir_claim figure = {"false_admits_a_day", NAN, "per day", NULL};
    if (!isfinite(measured) || !isfinite((unknown))) {
        figure.rests_on = !isfinite(measured)
                              ? "Not known: how many impostors reach the threshold is not."
                              : "Not known before the pipeline has decided something.";
        return figure;
    }
    double rate = fmax(measured, claimable);
    const char *by =
        rate > measured
            ? weir_arena_printf(arena,
                                "which is what can be claimed; as measured it were %.3g a day",
                                admits((unknown), measured))
            : "as measured";
    figure.value = admits((unknown), rate);
    figure.rests_on = weir_arena_printf(
        arena,
        "%.3g (unknown) a day, of whom %.3g %% are taken for somebody, %s. Whoever that is must be "
        "let in for them to be. A photograph shown to the camera is not counted: no "
        "liveness is claimed.",
        (unknown), 100 * rate, by);
    return figure;
}

void weir_claims_of(const struct weir_threshold *threshold, const struct weir_unknown *unknown,
                    struct weir_arena *arena, struct weir_claim out[WEIR_CLAIMS])
{
    out[0] = gallery_of(threshold, arena);
    out[1] = searches_of(threshold, arena);
    out[2] = claimable_of(threshold, arena);
    out[3] = measured_of(threshold);
    out[4] = unknown_of((unknown), arena);
    out[5] = admits_of(out[2].value, out[3].value, out[4].value, arena);
}
