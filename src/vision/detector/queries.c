#include "vision/detector/queries.h"

static bool is_rows(const struct detector_port *port, int64_t least, int64_t most)
{
    int64_t n = port->rank >= 2 ? port->dims[port->rank - 2] : 0;
    return port->rank >= 2 && port->rank <= 3 && (n < 0 || (n >= least && n <= most));
}

bool queries_fit(struct detector_plan *plan, int64_t least, int64_t most)
{
    static const char *const names[] = {"logits|score|class", "boxes"};
    bool is_named = detector_roles_named(plan, names, 2);
    if (!is_named && plan->n_outputs != 2) {
        return false;
    }
    if (!is_named) {
        bool is_first = detector_port_is(plan, 0, 0, 4) && !detector_port_is(plan, 1, 0, 4);
        plan->roles[QUERIES_BOXES] = is_first ? 0 : 1;
        plan->roles[QUERIES_LOGITS] = is_first ? 1 : 0;
        plan->n_roles = 2;
    }
    const struct detector_port *logits = &plan->outputs[plan->roles[QUERIES_LOGITS]];
    const struct detector_port *boxes = &plan->outputs[plan->roles[QUERIES_BOXES]];
    int64_t n = boxes->rank >= 2 ? boxes->dims[boxes->rank - 2] : 0;
    (void)snprintf(plan->why, sizeof plan->why,
                   "its outputs are logits and boxes of %lld questions (to 200 they are taken for "
                   "detr's, from there on for rt-detr's)",
                   (long long)n);
    return is_rows(logits, least, most) && is_rows(boxes, least, most) &&
           logits->dims[logits->rank - 2] == n && (n > 0 || plan->is_asked) &&
           detector_port_is(plan, plan->roles[QUERIES_BOXES], 0, 4);
}

weir_status queries_read(const struct detector_answer *answer, struct queries *out,
                         struct weir_error *err)
{
    struct queries queries = {.n = detector_dim(answer, QUERIES_LOGITS, 1),
                              .n_columns = detector_dim(answer, QUERIES_LOGITS, 0)};
    queries.n = queries.n_columns > 0 ? queries.n : 0;
    WEIR_TRY(detector_values(answer, QUERIES_LOGITS, queries.n * queries.n_columns, &queries.logits,
                             err));
    WEIR_TRY(detector_values(answer, QUERIES_BOXES, queries.n * 4, &queries.boxes, err));
    *out = queries;
    return WEIR_OK;
}

void queries_add(const struct detector_answer *answer, const struct queries *queries, size_t i,
                 float score, int32_t class_id, struct harvest *harvest)
{
    const float *box = queries->boxes + 4 * i;
    float w = (float)answer->width, h = (float)answer->height;
    harvest_add_centred(harvest, score, class_id,
                        (const float[]){box[0] * w, box[1] * h, box[2] * w, box[3] * h}, NULL);
}
