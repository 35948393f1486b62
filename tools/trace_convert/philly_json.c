/**
 * Philly's cluster_job_log: a list of jobs with their attempts. A job's run time is the sum of its
 * attempts', its size that of the largest. Jobs without a complete attempt tell of no work.
 */

#include "sim/import.h"

#include "base/json.h"

#include <string.h>

struct place {
    const char *what;
    size_t i_job;
};

static weir_status refuse(const struct place *place, const char *member, const char *expected,
                          struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: $[%zu].%s: expected %s", place->what,
                          place->i_job, member, expected);
}

static const char *text_of(struct weir_sim_trace *trace, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_string(value)
               ? trace_text(trace, json_string_value(value), json_string_length(value))
               : NULL;
}

/** @return Whether the moment is there: null, "None" and "" are not. */
static bool read_time(const json_t *object, const char *member, int64_t *out_ms, bool *out_is_wrong)
{
    const json_t *value = json_object_get(object, member);
    *out_is_wrong = false;
    if (value == NULL || json_is_null(value)) {
        return false;
    }
    const char *text = json_string_value(value);
    if (text != NULL && (text[0] == '\0' || strcmp(text, "None") == 0)) {
        return false;
    }
    if (text == NULL || !trace_time_parse(text, strlen(text), out_ms)) {
        *out_is_wrong = true;
        return false;
    }
    return true;
}

static int64_t count_devices(const json_t *attempt)
{
    const json_t *details = json_object_get(attempt, "detail");
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(details); i++) {
        n += (int64_t)json_array_size(json_object_get(json_array_get(details, i), "gpus"));
    }
    return n;
}

static weir_status read_attempts(const struct place *place, const json_t *object,
                                 struct weir_sim_job *job, struct weir_error *err)
{
    const json_t *attempts = json_object_get(object, "attempts");
    int64_t total_ms = 0, n_devices = 0;
    bool has_run = false, is_wrong;
    if (!json_is_array(attempts)) {
        return refuse(place, "attempts", "a list", err);
    }
    for (size_t i = 0; i < json_array_size(attempts); i++) {
        const json_t *attempt = json_array_get(attempts, i);
        int64_t start, end;
        bool has_start = read_time(attempt, "start_time", &start, &is_wrong);
        if (is_wrong) {
            return refuse(place, "attempts[].start_time", "a time such as 2017-10-07 01:12:09",
                          err);
        }
        bool has_end = read_time(attempt, "end_time", &end, &is_wrong);
        if (is_wrong || (has_start && has_end && end < start)) {
            return refuse(place, "attempts[].end_time", "a time behind start_time", err);
        }
        if (has_start && has_end) {
            total_ms = WEIR_MIN(total_ms + (end - start), WEIR_SIM_TIME_MAX + 1);
            n_devices = WEIR_MAX(n_devices, count_devices(attempt));
            has_run = true;
        }
    }
    if (n_devices > 1 << 20 || total_ms > WEIR_SIM_TIME_MAX) {
        return refuse(place, "attempts", "fewer devices and shorter times", err);
    }
    job->n_devices = (int32_t)n_devices;
    job->duration_ms = has_run ? total_ms : WEIR_SIM_UNKNOWN;
    return WEIR_OK;
}

static weir_status read_job(const struct place *place, const json_t *object,
                            struct weir_sim_trace *trace, struct weir_error *err)
{
    struct weir_sim_job *job;
    bool is_wrong;
    if (!json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: $[%zu]: expected an object", place->what,
                              place->i_job);
    }
    WEIR_TRY(trace_add(trace, place->what, &job, err));
    job->name = text_of(trace, object, "jobid");
    job->queue = text_of(trace, object, "vc");
    job->user = text_of(trace, object, "user");
    bool has_submit = read_time(object, "submitted_time", &job->submit_ms, &is_wrong);
    if (is_wrong) {
        return refuse(place, "submitted_time", "a time such as 2017-10-07 01:11:39", err);
    }
    WEIR_TRY(read_attempts(place, object, job, err));
    if (!has_submit || job->n_devices == 0) {
        trace_leave_out(trace);
    }
    return WEIR_OK;
}

static weir_status import(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL;
    struct place place = {.what = what};
    WEIR_TRY(weir_json_parse(text, len, what, &document, err));
    if (!json_is_array(document)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: $: expected a list of jobs, as cluster_job_log has it", what);
    }
    for (place.i_job = 0; place.i_job < json_array_size(document); place.i_job++) {
        WEIR_TRY(read_job(&place, json_array_get(document, place.i_job), trace, err));
    }
    return WEIR_OK;
}

const struct weir_sim_format convert_philly_json = {
    "philly", "cluster_job_log of philly-traces (JSON)", .import = import};
