/* What kinds of detectors have in common: shapes, and the harvest of what they find. */
#include "vision/detector_harvest.h"

#include <string.h>

/* ---- which output is what ---------------------------------------------------------------------- */

bool detector_dim_is(const struct detector_plan *plan, int64_t dim, int64_t wanted)
{
    return dim == wanted || (dim < 0 && plan->is_asked);
}

bool detector_port_is(const struct detector_plan *plan, size_t i, size_t rank, int64_t last)
{
    const struct detector_port *port = &plan->outputs[i];
    return port->rank > 0 && (rank == 0 || port->rank == rank) &&
           detector_dim_is(plan, port->dims[port->rank - 1], last);
}

size_t detector_port_named(const struct detector_plan *plan, const char *words)
{
    for (const char *word = words; *word != '\0';) {
        char text[32];
        size_t len = strcspn(word, "|");
        (void)snprintf(text, sizeof text, "%.*s", (int)len, word);
        for (size_t i = 0; i < plan->n_outputs; i++) {
            if (strcasestr(plan->outputs[i].name, text) != NULL) {
                return i;
            }
        }
        word += len + (word[len] == '|');
    }
    return plan->n_outputs;
}

bool detector_roles_named(struct detector_plan *plan, const char *const *words, size_t n)
{
    size_t roles[DETECTOR_ROLES_MAX];
    for (size_t i = 0; i < n; i++) {
        roles[i] = detector_port_named(plan, words[i]);
        for (size_t k = 0; k < i; k++) {
            if (roles[k] == roles[i]) {
                return false;
            }
        }
        if (roles[i] == plan->n_outputs) {
            return false;
        }
    }
    memcpy(plan->roles, roles, n * sizeof *roles);
    plan->n_roles = n;
    return true;
}

void detector_roles_in_order(struct detector_plan *plan, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        plan->roles[i] = i;
    }
    plan->n_roles = n;
}

/* ---- what an answer has -------------------------------------------------------------------------- */

static size_t count_values(const struct weir_detector_output *output)
{
    size_t n = 1;
    for (size_t i = 0; i < output->rank; i++) {
        if (output->dims[i] < 0 || __builtin_mul_overflow(n, (size_t)output->dims[i], &n)) {
            return 0;
        }
    }
    return n;
}

weir_status detector_values(const struct detector_answer *answer, size_t role, size_t n,
                            const float **out, struct weir_error *err)
{
    const struct weir_detector_output *output = answer->roles[role];
    size_t n_there = count_values(output);
    if (n_there != n) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the detector's output \"%.60s\" has %zu numbers, and of an input of "
                              "%d×%d it must have %zu",
                              output->name, n_there, answer->width, answer->height, n);
    }
    *out = output->values;
    return WEIR_OK;
}

size_t detector_rows(const struct detector_answer *answer, size_t role, size_t columns)
{
    return columns > 0 ? count_values(answer->roles[role]) / columns : 0;
}

size_t detector_dim(const struct detector_answer *answer, size_t role, size_t i_from_last)
{
    const struct weir_detector_output *output = answer->roles[role];
    int64_t dim = i_from_last < output->rank ? output->dims[output->rank - 1 - i_from_last] : 0;
    return dim > 0 ? (size_t)dim : 0;
}

/* ---- the harvest ----------------------------------------------------------------------------------- */

/* The heap's rule: none is surer than those below it, so that the least sure is first. */
static void sink_down(struct weir_detection *heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1, right = left + 1;
        least = left < n && heap[left].score < heap[least].score ? left : least;
        least = right < n && heap[right].score < heap[least].score ? right : least;
        if (least == i) {
            return;
        }
        struct weir_detection other = heap[i];
        heap[i] = heap[least];
        heap[least] = other;
        i = least;
    }
}

static void keep(struct harvest *harvest, const struct weir_detection *one)
{
    if (harvest->n < WEIR_DETECTIONS_MAX) {
        harvest->items[harvest->n++] = *one;
        for (size_t i = harvest->n / 2; harvest->n == WEIR_DETECTIONS_MAX && i-- > 0;) {
            sink_down(harvest->items, harvest->n, i);
        }
    } else if (one->score > harvest->items[0].score) {
        harvest->items[0] = *one;
        sink_down(harvest->items, harvest->n, 0);
    }
}

static bool is_wanted(const struct harvest *harvest, int32_t class_id)
{
    for (size_t i = 0; i < harvest->n_classes; i++) {
        if (harvest->classes[i] == class_id) {
            return true;
        }
    }
    return harvest->n_classes == 0;
}

/* Is it cut off by a side of the tile where the picture goes on? Another tile has it whole. */
static bool is_cut_off(const struct harvest *harvest, const float box[4])
{
    const struct detector_tile *tile = harvest->tile;
    return (tile->goes_on[0] && box[0] < tile->margin) ||
           (tile->goes_on[1] && box[1] < tile->margin) ||
           (tile->goes_on[2] && box[2] > (float)harvest->width - tile->margin) ||
           (tile->goes_on[3] && box[3] > (float)harvest->height - tile->margin);
}

static float across(const struct harvest *harvest, float u)
{
    return harvest->tile->map.m[0] * u + harvest->tile->map.m[2];
}

static float down(const struct harvest *harvest, float v)
{
    return harvest->tile->map.m[4] * v + harvest->tile->map.m[5];
}

static bool points_of(const struct harvest *harvest, const float *points,
                      struct weir_detection *out)
{
    bool is_finite = points != NULL;
    for (size_t i = 0; is_finite && i < WEIR_FACE_POINTS; i++) {
        out->points[2 * i] = across(harvest, points[2 * i]);
        out->points[2 * i + 1] = down(harvest, points[2 * i + 1]);
        is_finite = isfinite(out->points[2 * i]) && isfinite(out->points[2 * i + 1]);
    }
    return is_finite;
}

void harvest_add(struct harvest *harvest, float score, int32_t class_id, const float box[4],
                 const float *points)
{
    if (!(score >= harvest->threshold) || !is_wanted(harvest, class_id)) {
        return;
    }
    float x = across(harvest, box[0]), y = down(harvest, box[1]);
    struct weir_detection one = {
        .box = {x, y, across(harvest, box[2]) - x, down(harvest, box[3]) - y},
        .score = fminf(score, 1),
        .class_id = class_id,
    };
    bool is_finite = isfinite(x) && isfinite(y) && isfinite(one.box.w) && isfinite(one.box.h);
    if (is_finite && one.box.w > 0 && one.box.h > 0 && !is_cut_off(harvest, box)) {
        one.has_points = points_of(harvest, points, &one);
        if (!one.has_points) {
            memset(one.points, 0, sizeof one.points);
        }
        keep(harvest, &one);
    }
}

void harvest_add_centred(struct harvest *harvest, float score, int32_t class_id, const float box[4],
                         const float *points)
{
    const float corners[4] = {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2,
                              box[1] + box[3] / 2};
    harvest_add(harvest, score, class_id, corners, points);
}
