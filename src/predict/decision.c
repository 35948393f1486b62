#include "predict/decision.h"

#include "base/clock.h"

#include <math.h>

static json_t *text(const char *value)
{
    return weir_json_string(value, "?");
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *decision_to_json(struct decision *decision)
{
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(decision->time_ms, time);
    json_t *json = json_object();
    json_object_set_new(json, "id", text(decision->id));
    json_object_set_new(json, "ion", text(decision->ion));
    json_object_set_new(json, "pipeline", text(decision->pipeline));
    json_object_set_new(json, "replica", text(decision->replica));
    json_object_set_new(json, "camera", text(decision->camera));
    json_object_set_new(json, "frame", json_integer(decision->frame));
    if (decision->key != NULL) {
        json_object_set_new(json, "key", text(decision->key));
    }
    json_object_set_new(json, "time_ms", text(time));
    json_object_set_new(json, "verdict", text(verdict_text(decision->verdict)));
    json_object_set_new(json, "person", text(decision->person));
    json_object_set_new(json, "label", text(decision->label));
    json_object_set_new(json, "labels", decision->labels != NULL ? decision->labels : json_null());
    decision->labels = NULL;
    json_object_set_new(json, "score", number(decision->score));
    json_object_set_new(json, "threshold", number(decision->threshold));
    json_object_set_new(json, "model_version", json_integer(decision->model_version));
    json_object_set_new(json, "gallery_version", json_integer(decision->gallery_version));
    json_object_set_new(json, "list_revision", json_integer(decision->list_revision));
    json_object_set_new(json, "latency_us", json_integer(decision->latency_us));
    json_object_set_new(json, "brightness", number(decision->brightness));
    json_object_set_new(json, "error", text(decision->error));
    json_object_set_new(json, "is_sandbox", json_boolean(decision->is_sandbox));
    json_object_set_new(json, "image", json_null());
    return json;
}
