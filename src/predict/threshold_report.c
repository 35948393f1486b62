#include "predict/threshold_report.h"

#include <math.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *threshold_report(const struct serving *serving, const char *replica)
{
    const struct gallery *gallery = serving->gallery;
    const struct calibration *found = &gallery->calibration;
    bool is_by_impostors = found->n_impostors > 0;
    size_t n_scores = is_by_impostors ? found->n_impostors : found->n_between;
    size_t n_people = is_by_impostors ? found->n_impostor_people : gallery->n_persons;
    json_t *json = json_object();
    json_object_set_new(json, "deployment_revision", json_integer(serving->revision));
    json_object_set_new(json, "replica", json_string(replica));
    json_object_set_new(json, "threshold", number(found->threshold));
    json_object_set_new(json, "threshold_low", number(found->threshold_low));
    json_object_set_new(json, "threshold_high", number(found->threshold_high));
    json_object_set_new(json, "deny_threshold", number(found->deny_threshold));
    json_object_set_new(json, "rule", json_string(calibration_rule_text(found->rule)));
    json_object_set_new(json, "scores", json_integer((json_int_t)n_scores));
    json_object_set_new(json, "people", json_integer((json_int_t)n_people));
    json_object_set_new(json, "gallery_people", json_integer((json_int_t)gallery->n_persons));
    json_object_set_new(json, "asked_rate", number(gallery->rates.accept));
    json_object_set_new(json, "expected_rate", number(found->expected_rate));
    json_object_set_new(json, "refused_share", number(found->refused_share));
    json_object_set_new(json, "impostors_enrolled",
                        json_integer((json_int_t)gallery->n_known_impostors));
    json_object_set_new(json, "photos_skipped", json_integer((json_int_t)gallery->n_damaged));
    json_object_set_new(json, "model_version", json_integer(serving->model->version));
    json_object_set_new(json, "gallery_version", json_integer(gallery->version));
    json_object_set_new(json, "impostors_version", json_integer(gallery->impostors_version));
    return json;
}
