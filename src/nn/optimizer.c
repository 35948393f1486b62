#include "nn/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATES_MAX 2

/** Elements [first, end) of the slab that share a weight decay. */
struct segment {
    size_t first, end;
    float decay;
};

/** What an update of one step needs besides the slabs; worked out once per call, in double. */
struct step_scalars {
    float lr, momentum, beta1, beta2, epsilon;
    float rest1, rest2; /**< 1 - beta1, 1 - beta2: rounded once, 1 - 0.999f would be off by 1e-5. */
    float step_size;    /**< adam: lr / (1 - beta1^t) */
    float sqrt_bc2;     /**< adam: sqrt(1 - beta2^t) */
};

typedef void (*update_fn)(const struct step_scalars *scalars, float decay, size_t n,
                          float *restrict w, const float *restrict g, float *const *states);

struct weir_optimizer {
    struct weir_optimizer_config config;
    update_fn update;
    struct segment *segments; /**< By first element, not overlapping. */
    size_t n_segments;
    struct weir_optimizer_state states[STATES_MAX];
    size_t n_states;
};

/* ---- rules: one loop each, written so that the compiler can vectorise it ------------------ */

static void sgd_plain(const struct step_scalars *scalars, float decay, size_t n, float *restrict w,
                      const float *restrict g, float *const *states)
{
    (void)states;
    const float lr = scalars->lr;
    for (size_t i = 0; i < n; i++) {
        w[i] -= lr * (g[i] + decay * w[i]);
    }
}

static void sgd_momentum(const struct step_scalars *scalars, float decay, size_t n,
                         float *restrict w, const float *restrict g, float *const *states)
{
    const float lr = scalars->lr, momentum = scalars->momentum;
    float *restrict v = states[0];
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + decay * w[i]);
        w[i] -= lr * v[i];
    }
}

static void sgd_nesterov(const struct step_scalars *scalars, float decay, size_t n,
                         float *restrict w, const float *restrict g, float *const *states)
{
    const float lr = scalars->lr, momentum = scalars->momentum;
    float *restrict v = states[0];
    for (size_t i = 0; i < n; i++) {
        float decayed = g[i] + decay * w[i];
        v[i] = momentum * v[i] + decayed;
        w[i] -= lr * (decayed + momentum * v[i]);
    }
}

static void adam(const struct step_scalars *scalars, float decay, size_t n, float *restrict w,
                 const float *restrict g, float *const *states)
{
    const float beta1 = scalars->beta1, beta2 = scalars->beta2, epsilon = scalars->epsilon;
    const float rest1 = scalars->rest1, rest2 = scalars->rest2;
    const float step_size = scalars->step_size, sqrt_bc2 = scalars->sqrt_bc2;
    float *restrict m = states[0];
    float *restrict s = states[1];
    for (size_t i = 0; i < n; i++) {
        float decayed = g[i] + decay * w[i];
        m[i] = beta1 * m[i] + rest1 * decayed;
        s[i] = beta2 * s[i] + rest2 * decayed * decayed;
        w[i] -= step_size * m[i] / (sqrtf(s[i]) / sqrt_bc2 + epsilon);
    }
}

/* ---- table -------------------------------------------------------------------------------- */

static const struct weir_optimizer_type types[] = {
    {.name = "sgd", .doc = "Stochastic gradient descent with momentum, or Nesterov's."},
    {.name = "adam", .doc = "Adam (Kingma and Ba, ICLR 2015), weight decay in the gradient."},
};

const struct weir_optimizer_type *weir_optimizer_types(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(types);
    return types;
}

weir_status weir_optimizer_defaults(const char *name, struct weir_optimizer_config *out,
                                    struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            *out = (struct weir_optimizer_config){.name = types[i].name,
                                                  .momentum = 0.9,
                                                  .beta1 = 0.9,
                                                  .beta2 = 0.999,
                                                  .epsilon = 1e-8};
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: expected one of %s, %s, got \"%.64s\"",
                          types[0].name, types[1].name, name);
}

/* ---- creation ----------------------------------------------------------------------------- */

static weir_status config_check(const struct weir_optimizer_config *config, struct weir_error *err)
{
    struct weir_optimizer_config known;
    WEIR_TRY(weir_optimizer_defaults(config->name, &known, err));

    const struct {
        const char *name;
        double value, end; /* Accepted: [0, end). */
    } ranges[] = {{"weight decay", config->weight_decay, INFINITY},
                  {"momentum", config->momentum, 1},
                  {"beta1", config->beta1, 1},
                  {"beta2", config->beta2, 1},
                  {"epsilon", config->epsilon, INFINITY}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(ranges); i++) {
        if (!(ranges[i].value >= 0 && ranges[i].value < ranges[i].end)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "optimizer: %s: expected a number in [0, %g), got %g",
                                  ranges[i].name, ranges[i].end, ranges[i].value);
        }
    }
    bool is_adam = strcmp(config->name, "adam") == 0;
    if (is_adam && !(config->epsilon > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: epsilon: expected a number > 0");
    }
    if (config->is_nesterov && (is_adam || config->momentum == 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "optimizer: Nesterov needs sgd with a momentum > 0");
    }
    return WEIR_OK;
}

static int segment_compare(const void *a, const void *b)
{
    const struct segment *x = a;
    const struct segment *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/** Trainable parameters as sorted segments, neighbours of equal decay joined. */
static weir_status segments_make(struct weir_optimizer *optimizer, const struct weir_param *params,
                                 size_t n_params, struct weir_error *err)
{
    struct segment *segments = calloc(n_params + 1, sizeof *segments);
    if (segments == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory for %zu parameters",
                              n_params);
    }
    optimizer->segments = segments;
    size_t n = 0;
    for (size_t i = 0; i < n_params; i++) {
        if (params[i].is_trainable && params[i].n_elems > 0) {
            float decay = params[i].is_decayed ? (float)optimizer->config.weight_decay : 0.0f;
            segments[n++] = (struct segment){params[i].first_elem,
                                             params[i].first_elem + params[i].n_elems, decay};
        }
    }
    qsort(segments, n, sizeof *segments, segment_compare);
    size_t n_joined = 0;
    for (size_t i = 0; i < n; i++) {
        struct segment *last = n_joined == 0 ? NULL : &segments[n_joined - 1];
        if (last != NULL && segments[i].first < last->end) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "optimizer: two parameters overlap at element %zu",
                                  segments[i].first);
        }
        if (last != NULL && segments[i].first == last->end && segments[i].decay == last->decay) {
            last->end = segments[i].end;
        } else {
            segments[n_joined++] = segments[i];
        }
    }
    optimizer->n_segments = n_joined;
    return WEIR_OK;
}

static weir_status states_make(struct weir_optimizer *optimizer, struct weir_error *err)
{
    static const char *const adam_names[] = {"optimizer.adam.first_moment",
                                             "optimizer.adam.second_moment"};
    static const char *const sgd_names[] = {"optimizer.sgd.momentum"};
    const char *const *names = sgd_names;
    size_t n_states = 1;
    if (strcmp(optimizer->config.name, "adam") == 0) {
        names = adam_names;
        n_states = 2;
        optimizer->update = adam;
    } else if (optimizer->config.momentum == 0) {
        n_states = 0;
        optimizer->update = sgd_plain;
    } else {
        optimizer->update = optimizer->config.is_nesterov ? sgd_nesterov : sgd_momentum;
    }
    size_t n_elems =
        optimizer->n_segments == 0 ? 0 : optimizer->segments[optimizer->n_segments - 1].end;
    for (size_t i = 0; i < n_states; i++) {
        /* One spare element: calloc(0) may give NULL without being out of memory. */
        float *data = n_elems < SIZE_MAX ? calloc(n_elems + 1, sizeof *data) : NULL;
        if (data == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM,
                                  "optimizer: no memory for a state of %zu elements", n_elems);
        }
        optimizer->states[i] =
            (struct weir_optimizer_state){.name = names[i], .data = data, .n_elems = n_elems};
        optimizer->n_states = i + 1;
    }
    return WEIR_OK;
}

weir_status weir_optimizer_create(const struct weir_optimizer_config *config,
                                  const struct weir_param *params, size_t n_params,
                                  struct weir_optimizer **out, struct weir_error *err)
{
    WEIR_TRY(config_check(config, err));
    struct weir_optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (optimizer == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory");
    }
    weir_status status = WEIR_OK;
    optimizer->config = *config;
    WEIR_TRY_GOTO(segments_make(optimizer, params, n_params, err), status, destroy);
    WEIR_TRY_GOTO(states_make(optimizer, err), status, destroy);
    *out = optimizer;
    return WEIR_OK;
destroy:
    weir_optimizer_destroy(optimizer);
    return status;
}

void weir_optimizer_destroy(struct weir_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    for (size_t i = 0; i < optimizer->n_states; i++) {
        free(optimizer->states[i].data);
    }
    free(optimizer->segments);
    free(optimizer);
}

/* ---- update ------------------------------------------------------------------------------- */

static struct step_scalars scalars_of(const struct weir_optimizer_config *config, double lr,
                                      uint64_t step)
{
    double t = (double)step + 1;
    return (struct step_scalars){
        .lr = (float)lr,
        .momentum = (float)config->momentum,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .epsilon = (float)config->epsilon,
        .rest1 = (float)(1 - config->beta1),
        .rest2 = (float)(1 - config->beta2),
        .step_size = (float)(lr / (1 - pow(config->beta1, t))),
        .sqrt_bc2 = (float)sqrt(1 - pow(config->beta2, t)),
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

void weir_optimizer_update(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                           size_t first, size_t n, double lr, uint64_t step)
{
    const struct step_scalars scalars = scalars_of(&optimizer->config, lr, step);
    size_t end = first + n;
    for (size_t i = segment_find(optimizer, first); i < optimizer->n_segments; i++) {
        const struct segment *segment = &optimizer->segments[i];
        size_t from = WEIR_MAX(first, segment->first);
        size_t to = WEIR_MIN(end, segment->end);
        if (from >= to) {
            break;
        }
        float *states[STATES_MAX] = {NULL};
        for (size_t j = 0; j < optimizer->n_states; j++) {
            states[j] = optimizer->states[j].data + from;
        }
        optimizer->update(&scalars, segment->decay, to - from, weights + from, gradients + from,
                          states);
    }
}

/* ---- states ------------------------------------------------------------------------------- */

const struct weir_optimizer_state *weir_optimizer_states(const struct weir_optimizer *optimizer,
                                                         size_t *out_n)
{
    *out_n = optimizer->n_states;
    return optimizer->states;
}

weir_status weir_optimizer_restore(struct weir_optimizer *optimizer, const char *name,
                                   const float *data, size_t n_elems, struct weir_error *err)
{
    for (size_t i = 0; i < optimizer->n_states; i++) {
        const struct weir_optimizer_state *state = &optimizer->states[i];
        if (strcmp(state->name, name) != 0) {
            continue;
        }
        if (state->n_elems != n_elems) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: the checkpoint has %zu elements, this model has %zu", name,
                                  n_elems, state->n_elems);
        }
        if (n_elems > 0) {
            memcpy(state->data, data, n_elems * sizeof *data);
        }
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "optimizer %s has no state \"%s\"",
                          optimizer->config.name, name);
}
