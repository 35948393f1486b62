#include "predict/decision.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

struct decision *decision_create(void)
{
    struct decision *decision = weir_xalloc(sizeof *decision);
    *decision = (struct decision){.score = NAN, .threshold = NAN, .brightness = NAN};
    weir_arena_init(&decision->arena, 0);
    return decision;
}

void decision_destroy(struct decision *decision)
{
    if (decision != NULL) {
        if (decision->passage != NULL) {
            film_fini(&decision->passage->film);
        }
        weir_arena_fini(&decision->arena);
        free(decision);
    }
}

void decision_keep(struct decision *decision)
{
    struct weir_arena *arena = &decision->arena;
    struct decision_label *labels =
        WEIR_ARENA_ARRAY(arena, decision->n_labels + 1, struct decision_label);
    for (size_t i = 0; i < decision->n_labels; i++) {
        labels[i] = (struct decision_label){weir_arena_strdup(arena, decision->labels[i].label),
                                            decision->labels[i].score};
    }
    decision->labels = decision->labels != NULL ? labels : NULL;
    decision->person = weir_arena_strdup(arena, decision->person);
    decision->label = weir_arena_strdup(arena, decision->label);
}

static json_t *text(const char *value)
{
    return weir_json_string(value, "?");
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *labels_of(const struct decision *decision)
{
    json_t *labels = decision->labels != NULL ? json_array() : json_null();
    for (size_t i = 0; i < decision->n_labels; i++) {
        const struct decision_label *one = &decision->labels[i];
        json_array_append_new(labels,
                              json_pack("{s:s,s:f}", "label", one->label, "score", one->score));
    }
    return labels;
}

static json_t *box_of(const struct decision *decision)
{
    const struct weir_box *box = &decision->box;
    if (!decision->has_box) {
        return json_null();
    }
    return json_pack("{s:f,s:f,s:f,s:f,s:I}", "x", (double)box->x, "y", (double)box->y, "w",
                     (double)box->w, "h", (double)box->h, "of", (json_int_t)decision->n_boxes);
}

json_t *decision_quality_to_json(const struct weir_face_quality *quality)
{
    json_t *json = json_object();
    json_object_set_new(json, "width", number((double)quality->width));
    json_object_set_new(json, "sharpness", number((double)quality->sharpness));
    json_object_set_new(json, "yaw", number((double)quality->yaw));
    json_object_set_new(json, "pitch", number((double)quality->pitch));
    json_object_set_new(json, "roll", number((double)quality->roll));
    json_object_set_new(json, "brightness", number((double)quality->brightness));
    return json;
}

static json_t *quality_of(const struct decision *decision)
{
    if (!decision->has_quality && decision->refused == NULL) {
        return json_null();
    }
    json_t *json =
        decision->has_quality ? decision_quality_to_json(&decision->quality) : json_object();
    if (decision->refused != NULL) {
        json_object_set_new(json, "refused", text(decision->refused));
    }
    return json;
}

static json_t *visitor_of(const struct visitor *visitor)
{
    char first[WEIR_TIME_TEXT_BYTES];
    if (visitor->times == 0) {
        return json_null();
    }
    weir_time_format(visitor->first_ms, first);
    return json_pack("{s:s,s:I,s:s}", "id", visitor->id, "times", (json_int_t)visitor->times,
                     "first_ms", first);
}

static json_t *time_of(int64_t time_ms)
{
    char text_of_it[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, text_of_it);
    return json_string(text_of_it);
}

static json_t *frame_of(const struct film *film, size_t i)
{
    const struct film_frame *frame = &film->frames[i];
    const struct weir_box *box = &frame->box;
    return json_pack("{s:o,s:o,s:o,s:b,s:o,s:{s:f,s:f,s:f,s:f},s:b,s:I}", "time_ms",
                     time_of(frame->time_ms), "score", number(frame->score), "person",
                     text(frame->person), "counts", frame->is_counted, "why", text(frame->why),
                     "box", "x", (double)box->x, "y", (double)box->y, "w", (double)box->w, "h",
                     (double)box->h, "is_best", i == film->i_best, "bytes",
                     (json_int_t)frame->jpeg_bytes);
}

static json_t *frames_of(const struct film *film)
{
    json_t *frames = json_array();
    for (size_t i = 0; i < film->n; i++) {
        json_array_append_new(frames, frame_of(film, i));
    }
    return frames;
}

static json_t *nearest_of(const struct decision_passage *passage)
{
    json_t *nearest = json_array();
    for (size_t i = 0; i < passage->n_nearest; i++) {
        const struct decision_near *near = &passage->nearest[i];
        json_array_append_new(nearest, json_pack("{s:o,s:o}", "person", text(near->person), "score",
                                                 number(near->score)));
    }
    return nearest;
}

static json_t *rule_of(const struct decision_rule *rule)
{
    return rule->m == 0 ? json_null()
                        : json_pack("{s:I,s:I,s:f,s:f,s:I}", "n", (json_int_t)rule->n, "m",
                                    (json_int_t)rule->m, "accept", rule->accept, "deny", rule->deny,
                                    "gone_ms", (json_int_t)rule->gone_ms);
}

static json_t *passage_of(const struct decision_passage *passage)
{
    if (passage == NULL) {
        return json_null();
    }
    json_t *refused = json_object();
    for (size_t i = 0; i < passage->n_refused; i++) {
        json_object_set_new(refused, passage->refused[i].why, json_integer(passage->refused[i].n));
    }
    return json_pack("{s:s,s:o,s:o,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "id", passage->id, "first",
                     time_of(passage->first_ms), "last", time_of(passage->last_ms), "n_frames",
                     (json_int_t)passage->n_frames, "n_counted", (json_int_t)passage->n_counted,
                     "n_named", (json_int_t)passage->n_named, "refused", refused, "rule",
                     rule_of(&passage->rule), "nearest", nearest_of(passage), "frames",
                     frames_of(&passage->film), "visitor", visitor_of(&passage->visitor));
}

static json_t *counted_of(const struct decision_count *count)
{
    return json_pack("{s:s,s:s,s:s?,s:I}", "place", count->place, "what", count->what, "to",
                     count->to, "n", (json_int_t)count->n);
}

json_t *decision_to_json(const struct decision *decision)
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
    json_object_set_new(json, "labels", labels_of(decision));
    json_object_set_new(json, "score", number(decision->score));
    json_object_set_new(json, "threshold", number(decision->threshold));
    json_object_set_new(json, "model_version", json_integer(decision->model_version));
    json_object_set_new(json, "gallery_version", json_integer(decision->gallery_version));
    json_object_set_new(json, "list_revision", json_integer(decision->list_revision));
    json_object_set_new(json, "latency_us", json_integer(decision->latency_us));
    json_object_set_new(json, "brightness", number(decision->brightness));
    if (decision->counted != NULL) {
        json_object_set_new(json, "counted", counted_of(decision->counted));
    }
    if (decision->n_boxes > 0 || decision->refused != NULL || decision->passage != NULL) {
        json_object_set_new(json, "box", box_of(decision));
        json_object_set_new(json, "quality", quality_of(decision));
        json_object_set_new(json, "passage", passage_of(decision->passage));
    }
    json_object_set_new(json, "error", text(decision->error));
    json_object_set_new(json, "is_sandbox", json_boolean(decision->is_sandbox));
    json_object_set_new(json, "image", text(decision->image[0] != '\0' ? decision->image : NULL));
    return json;
}
