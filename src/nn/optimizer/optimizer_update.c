/* Updates: rules applied to ranges, after the norms that some of them need. */
#include "optimizer_private.h"

#include "nn/run/net.h"

#include <assert.h>
#include <math.h>

/* What PyTorch adds to a norm before it divides by it. */
#define CLIP_EPSILON 1e-6

static struct step_scalars scalars_of(const struct weir_optimizer *optimizer, double lr,
                                      uint64_t step)
{
    const struct weir_optimizer_config *config = &optimizer->config;
    double t = (double)step + 1;
    double bc1 = optimizer->has_moments ? 1 - pow(config->beta1, t) : 1;
    double bc2 = optimizer->has_moments ? 1 - pow(config->beta2, t) : 1;
    return (struct step_scalars){
        .lr = (float)lr,
        .momentum = (float)config->momentum,
        .alpha = (float)config->alpha,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .epsilon = (float)config->epsilon,
        .rest_alpha = (float)(1 - config->alpha),
        .rest1 = (float)(1 - config->beta1),
        .rest2 = (float)(1 - config->beta2),
        .step_size = (float)(lr / bc1),
        .bc1 = (float)bc1,
        .sqrt_bc2 = (float)sqrt(bc2),
        .scale = optimizer->scale,
    };
}

/** Index of the first segment that ends behind `elem`. */
static size_t segment_find(const struct weir_optimizer *optimizer, size_t elem)
{
    size_t low = 0, high = optimizer->n_segments;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (optimizer->segments[middle].end > elem) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/** The part of a segment that lies in [first, end). */
struct segment_part {
    size_t from, to; /**< from >= to: none. */
    float *states[OPTIMIZER_STATES_MAX];
};

static struct segment_part part_of(const struct weir_optimizer *optimizer,
                                   const struct optimizer_segment *segment, size_t first,
                                   size_t end)
{
    struct segment_part part = {.from = WEIR_MAX(first, segment->first),
                                .to = WEIR_MIN(end, segment->end)};
    for (size_t j = 0; j < optimizer->n_states; j++) {
        part.states[j] = optimizer->states[j].data + part.from;
    }
    return part;
}

/* `gradients` are multiplied by the scalars' scale. */
static void apply(struct weir_optimizer *optimizer, const struct step_scalars *scalars,
                  float *weights, const float *gradients, size_t first, size_t n)
{
    for (size_t i = segment_find(optimizer, first); i < optimizer->n_segments; i++) {
        const struct optimizer_segment *segment = &optimizer->segments[i];
        const struct segment_part part = part_of(optimizer, segment, first, first + n);
        if (part.from >= part.to) {
            break;
        }
        optimizer->rule->update(scalars, &segment->traits, part.to - part.from, weights + part.from,
                                gradients + (part.from - first), part.states);
    }
}

void weir_optimizer_apply(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                          size_t first, size_t n, double lr, uint64_t step)
{
    const struct step_scalars scalars = scalars_of(optimizer, lr, step);
    apply(optimizer, &scalars, weights, gradients + first, first, n);
}

void weir_optimizer_apply_gradients(struct weir_optimizer *optimizer, float *weights,
                                    const struct weir_gradients *gradients, double lr,
                                    uint64_t step)
{
    struct step_scalars scalars = scalars_of(optimizer, lr, step);
    assert(!weir_optimizer_needs_all(&optimizer->config));
    scalars.scale = gradients->scale;
    apply(optimizer, &scalars, weights, gradients->values, gradients->first_elem,
          gradients->n_elems);
}

/* ---- norms -------------------------------------------------------------------------------- */

double *weir_optimizer_sums(const struct weir_optimizer *optimizer, size_t *out_n)
{
    *out_n = optimizer->n_slots * (optimizer_is_layerwise(&optimizer->config) ? 2 : 1);
    return optimizer->sums;
}

static bool is_last_pass(const struct weir_optimizer *optimizer, size_t i_pass)
{
    return i_pass + 1 == weir_optimizer_n_passes(optimizer);
}

/** Of what a segment and a tile have in common. */
static void measure_slot(struct weir_optimizer *optimizer, const struct step_scalars *scalars,
                         const struct optimizer_segment *segment, const struct segment_part *part,
                         bool is_last, const float *weights, const float *gradients)
{
    double (*square_sum)(const float *, size_t) = optimizer->rules->square_sum;
    const struct optimizer_rule *rule = optimizer->rule;
    const size_t n = part->to - part->from;
    const float *w = weights + part->from, *g = gradients + part->from;
    double *sum = &optimizer->sums[segment->first_slot + optimizer_tile_of(part->from) -
                                   optimizer_tile_of(segment->first)];
    *sum = is_last && rule->prepare != NULL
               ? rule->prepare(scalars, &segment->traits, n, w, g, part->states)
               : square_sum(g, n);
    if (is_last && optimizer_is_layerwise(&optimizer->config)) {
        sum[optimizer->n_slots] = segment->is_adapted ? square_sum(w, n) : 0;
    }
}

void weir_optimizer_measure(struct weir_optimizer *optimizer, size_t i_pass, const float *weights,
                            const float *gradients, size_t first, size_t n, double lr,
                            uint64_t step)
{
    const struct step_scalars scalars = scalars_of(optimizer, lr, step);
    const bool is_last = is_last_pass(optimizer, i_pass);
    for (size_t i = segment_find(optimizer, first); i < optimizer->n_segments; i++) {
        const struct optimizer_segment *segment = &optimizer->segments[i];
        size_t from = WEIR_MAX(first, segment->first);
        if (from >= first + n) {
            break;
        }
        for (size_t end = WEIR_MIN(first + n, segment->end); from < end;) {
            size_t tile_end = (optimizer_tile_of(from) + 1) * WEIR_OPTIMIZER_TILE;
            const struct segment_part part =
                part_of(optimizer, segment, from, WEIR_MIN(end, tile_end));
            measure_slot(optimizer, &scalars, segment, &part, is_last, weights, gradients);
            from = part.to;
        }
    }
}

static double add_up(const double *sums, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += sums[i];
    }
    return sum;
}

/** What a tensor's rate is multiplied by: 1 where a norm is 0, as the authors' programs do. */
static float trust_of(double above, double below)
{
    return above > 0 && below > 0 ? (float)(above / below) : 1.0f;
}

/** lars and lamb: the rate of a tensor from its norms. */
static float rate_of(const struct weir_optimizer *optimizer,
                     const struct optimizer_segment *segment)
{
    const double *sums = optimizer->sums + segment->first_slot;
    const size_t n_slots = segment_slots(segment);
    const double norm = sqrt(add_up(sums, n_slots));
    const double norm_w = sqrt(add_up(sums + optimizer->n_slots, n_slots));
    if (optimizer->rule->prepare != NULL) {
        return trust_of(norm_w, norm);
    }
    const double norm_g = (double)optimizer->scale * norm;
    const double below = norm_g > 0 ? norm_g + (double)segment->traits.decay * norm_w : 0;
    return trust_of((double)(float)optimizer->config.trust * norm_w, below);
}

void weir_optimizer_conclude(struct weir_optimizer *optimizer, size_t i_pass)
{
    const double clip_norm = optimizer->config.clip_norm;
    if (i_pass == 0 && clip_norm > 0) {
        double norm = sqrt(add_up(optimizer->sums, optimizer->n_slots));
        double scale = clip_norm / (norm + CLIP_EPSILON);
        /* 1 if it is not a number: that stays where it is. */
        optimizer->scale = scale < 1 ? (float)scale : 1;
    }
    for (size_t i = 0; is_last_pass(optimizer, i_pass) && i < optimizer->n_segments; i++) {
        struct optimizer_segment *segment = &optimizer->segments[i];
        segment->traits.trust = segment->is_adapted ? rate_of(optimizer, segment) : 1;
    }
}

static void measure_all(struct weir_optimizer *optimizer, const float *weights,
                        const float *gradients, size_t first, size_t n, double lr, uint64_t step)
{
    assert(!weir_optimizer_needs_all(&optimizer->config) || optimizer->n_segments == 0 ||
           (first <= optimizer->segments[0].first &&
            first + n >= optimizer->segments[optimizer->n_segments - 1].end));
    for (size_t i = 0; i < weir_optimizer_n_passes(optimizer); i++) {
        weir_optimizer_measure(optimizer, i, weights, gradients, first, n, lr, step);
        weir_optimizer_conclude(optimizer, i);
    }
}

void weir_optimizer_update(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                           size_t first, size_t n, double lr, uint64_t step)
{
    measure_all(optimizer, weights, gradients, first, n, lr, step);
    weir_optimizer_apply(optimizer, weights, gradients, first, n, lr, step);
}

/* What the ranges of one update share. */
struct net_update {
    struct weir_optimizer *optimizer;
    float *weights;
    const float *gradients;
    double lr;
    uint64_t step;
};

static void update_range(void *context, size_t first_elem, size_t n_elems)
{
    const struct net_update *job = context;
    weir_optimizer_apply(job->optimizer, job->weights, job->gradients, first_elem, n_elems, job->lr,
                         job->step);
}

void weir_optimizer_update_net(struct weir_optimizer *optimizer, struct weir_net *net,
                               const float *gradients, double lr, uint64_t step)
{
    if (gradients == NULL && optimizer_gpu_update(optimizer, net, lr, step) == WEIR_OK) {
        return;
    }
    optimizer_gpu_detach(optimizer);
    size_t n_elems;
    const float *own = weir_net_gradients(net, &n_elems);
    struct net_update job = {.optimizer = optimizer,
                             .weights = weir_net_weights(net, NULL),
                             .gradients = gradients ? gradients : own,
                             .lr = lr,
                             .step = step};
    if (!net_note_gradients(net, job.gradients)) {
        return;
    }
    measure_all(optimizer, job.weights, job.gradients, 0, n_elems, lr, step);
    weir_net_update(net, update_range, &job);
}
