#include "nn/optimizer.h"

#include "base/names.h"
#include "optimizer_rules.h"
#include "slab.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longest text of an optimiser: all settings fit many times. */
#define TEXT_MAX 256
/* What PyTorch adds to a norm before it divides by it. */
#define CLIP_EPSILON 1e-6

/** Elements [first, end) of the slab that are treated alike. */
struct segment {
    size_t first, end;
    size_t first_slot; /**< Of its sums. */
    struct run_traits traits;
    bool is_adapted; /**< It is a tensor with a rate of its own. */
};

struct weir_optimizer {
    struct weir_optimizer_config config;
    const struct optimizer_rule_table *rules;
    const struct optimizer_rule *rule;
    struct segment *segments; /**< By first element, not overlapping. */
    size_t n_segments;
    struct weir_optimizer_state states[OPTIMIZER_STATES_MAX];
    struct slab slabs[OPTIMIZER_STATES_MAX]; /**< Of the states: in huge pages, as weights are. */
    size_t n_states;
    bool has_moments; /**< adam and its kin: those of early steps are made larger. */

    /* Of optimisers that need norms. A slot is what a segment and a tile have in common. */
    size_t n_slots;
    double
        *sums; /**< Of gradients or directions, by slot; then of weights, if tensors have rates. */
    float scale; /**< Of the gradients: below 1 where their norm is clipped. */
};

/* ---- table -------------------------------------------------------------------------------- */

static const struct weir_optimizer_type types[] = {
    {.name = "sgd",
     .doc = "Stochastic gradient descent with momentum, or Nesterov's (nesterov=1).",
     .keys = "nesterov ",
     .learning_rate = 0.05,
     .epsilon = 1e-8},
    {.name = "rmsprop",
     .doc = "RMSProp (Hinton) with momentum, as in PyTorch.",
     .keys = "alpha epsilon ",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "adam",
     .doc = "Adam (Kingma and Ba, ICLR 2015), weight decay in the gradient.",
     .keys = "beta1 beta2 epsilon ",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "adamw",
     .doc = "Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019).",
     .keys = "beta1 beta2 epsilon ",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "lars",
     .doc = "SGD with a rate per tensor (You et al., 2017), for batches of thousands.",
     .keys = "trust ",
     .learning_rate = 2,
     .epsilon = 0},
    {.name = "lamb",
     .doc = "Adam with a rate per tensor (You et al., ICLR 2020), for batches of thousands.",
     .keys = "beta1 beta2 epsilon ",
     .learning_rate = 0.002,
     .epsilon = 1e-6},
};

const struct weir_optimizer_type *weir_optimizer_types(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(types);
    return types;
}

static const struct weir_optimizer_type *type_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

weir_status weir_optimizer_defaults(const char *name, struct weir_optimizer_config *out,
                                    struct weir_error *err)
{
    const struct weir_optimizer_type *type = type_find(name);
    if (type != NULL) {
        *out = (struct weir_optimizer_config){.name = type->name,
                                              .momentum = 0.9,
                                              .alpha = 0.99,
                                              .beta1 = 0.9,
                                              .beta2 = 0.999,
                                              .epsilon = type->epsilon,
                                              .trust = 0.001};
        return WEIR_OK;
    }
    struct weir_names known = {0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        weir_names_add(&known, types[i].name, strlen(types[i].name));
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: expected one of %s, got \"%.64s\"",
                          known.text, name);
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool type_takes(const struct weir_optimizer_type *type, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = type->keys; *at != '\0'; at = strchr(at, ' ') + 1) {
        if (strncmp(at, key, len) == 0 && at[len] == ' ') {
            return true;
        }
    }
    return false;
}

static weir_status setting_read(char *setting, struct weir_optimizer_config *config,
                                struct weir_error *err)
{
    const struct weir_optimizer_type *type = type_find(config->name);

    const struct {
        const char *key;
        double *value;
    } numbers[] = {{"alpha", &config->alpha},
                   {"beta1", &config->beta1},
                   {"beta2", &config->beta2},
                   {"epsilon", &config->epsilon},
                   {"trust", &config->trust}};

    char *text = setting, *end = NULL;
    const char *key = strsep(&text, "=");
    if (!type_takes(type, key)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "optimizer: %s has no setting \"%.64s\"; it takes: %s", type->name,
                              key, type->keys);
    }
    double value = text != NULL ? strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0' || !isfinite(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: %s: expected %s=number", key, key);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].key, key) == 0) {
            *numbers[i].value = value;
            return WEIR_OK;
        }
    }
    if (value != 0 && value != 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: nesterov: expected 0 or 1");
    }
    config->is_nesterov = value == 1;
    return WEIR_OK;
}

weir_status weir_optimizer_parse(const char *text, struct weir_optimizer_config *out,
                                 struct weir_error *err)
{
    char copy[TEXT_MAX];
    struct weir_optimizer_config config;
    int len = snprintf(copy, sizeof copy, "%s", text);
    if (len < 0 || len >= (int)sizeof copy) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: text is over %d bytes", TEXT_MAX);
    }
    char *settings = copy;
    WEIR_TRY(weir_optimizer_defaults(strsep(&settings, ":"), &config, err));
    while (settings != NULL) {
        WEIR_TRY(setting_read(strsep(&settings, ","), &config, err));
    }
    *out = config;
    return WEIR_OK;
}

/* ---- creation ----------------------------------------------------------------------------- */

weir_status weir_optimizer_check(const struct weir_optimizer_config *config, struct weir_error *err)
{
    struct weir_optimizer_config known;
    WEIR_TRY(weir_optimizer_defaults(config->name, &known, err));

    const struct {
        const char *name;
        double value, end; /* Accepted: [0, end). */
    } ranges[] = {{"weight decay", config->weight_decay, INFINITY},
                  {"clip norm", config->clip_norm, INFINITY},
                  {"momentum", config->momentum, 1},
                  {"alpha", config->alpha, 1},
                  {"beta1", config->beta1, 1},
                  {"beta2", config->beta2, 1},
                  {"epsilon", config->epsilon, INFINITY},
                  {"trust", config->trust, INFINITY}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(ranges); i++) {
        if (!(ranges[i].value >= 0 && ranges[i].value < ranges[i].end)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "optimizer: %s: expected a number in [0, %g), got %g",
                                  ranges[i].name, ranges[i].end, ranges[i].value);
        }
    }
    const struct weir_optimizer_type *type = type_find(config->name);
    if (type_takes(type, "epsilon") && !(config->epsilon > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: epsilon: expected a number > 0");
    }
    if (type_takes(type, "trust") && !(config->trust > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "optimizer: trust: expected a number > 0");
    }
    if (config->is_nesterov && (!type_takes(type, "nesterov") || config->momentum == 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "optimizer: Nesterov needs sgd with a momentum > 0");
    }
    return WEIR_OK;
}

/** Do tensors have rates of their own? */
static bool is_layerwise(const struct weir_optimizer_config *config)
{
    return strcmp(config->name, "lars") == 0 || strcmp(config->name, "lamb") == 0;
}

bool weir_optimizer_needs_all(const struct weir_optimizer_config *config)
{
    return is_layerwise(config) || config->clip_norm > 0;
}

size_t weir_optimizer_n_passes(const struct weir_optimizer *optimizer)
{
    /* lamb's directions are made of gradients that were clipped. */
    const bool is_clipped = optimizer->config.clip_norm > 0;
    return optimizer->rule->prepare != NULL && is_clipped
               ? 2
               : weir_optimizer_needs_all(&optimizer->config);
}

static size_t tile_of(size_t elem)
{
    return elem / WEIR_OPTIMIZER_TILE;
}

static int segment_compare(const void *a, const void *b)
{
    const struct segment *x = a;
    const struct segment *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/** Trainable parameters as sorted segments; neighbours of equal decay are joined, but for tensors
 *  with rates of their own. */
static weir_status segments_make(struct weir_optimizer *optimizer, const struct weir_param *params,
                                 size_t n_params, struct weir_error *err)
{
    struct segment *segments = calloc(n_params + 1, sizeof *segments);
    if (segments == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory for %zu parameters",
                              n_params);
    }
    optimizer->segments = segments;
    const bool is_layered = is_layerwise(&optimizer->config);
    size_t n = 0;
    for (size_t i = 0; i < n_params; i++) {
        if (params[i].is_trainable && params[i].n_elems > 0) {
            float decay = params[i].is_decayed ? (float)optimizer->config.weight_decay : 0.0f;
            segments[n++] = (struct segment){.first = params[i].first_elem,
                                             .end = params[i].first_elem + params[i].n_elems,
                                             .traits = {.decay = decay, .trust = 1},
                                             .is_adapted = is_layered && params[i].is_decayed};
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
        if (last != NULL && !is_layered && segments[i].first == last->end &&
            segments[i].traits.decay == last->traits.decay) {
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
    size_t n_elems =
        optimizer->n_segments == 0 ? 0 : optimizer->segments[optimizer->n_segments - 1].end;
    for (size_t i = 0; i < optimizer->rule->n_states; i++) {
        struct slab *slab = &optimizer->slabs[i];
        /* One spare element, so that there is memory in any case. */
        if (n_elems > SIZE_MAX / 8 || !slab_map(slab, (n_elems + 1) * sizeof(float))) {
            return weir_error_set(err, WEIR_ERR_NOMEM,
                                  "optimizer: no memory for a state of %zu elements", n_elems);
        }
        optimizer->states[i] = (struct weir_optimizer_state){.name = optimizer->rule->states[i],
                                                             .data = (float *)(void *)slab->base,
                                                             .n_elems = n_elems};
        optimizer->n_states = i + 1;
    }
    return WEIR_OK;
}

/** Where the sums go that norms are made of. */
static weir_status slots_make(struct weir_optimizer *optimizer, struct weir_error *err)
{
    optimizer->scale = 1;
    if (!weir_optimizer_needs_all(&optimizer->config)) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < optimizer->n_segments; i++) {
        struct segment *segment = &optimizer->segments[i];
        segment->first_slot = optimizer->n_slots;
        optimizer->n_slots += tile_of(segment->end - 1) - tile_of(segment->first) + 1;
    }
    optimizer->sums = calloc(2 * optimizer->n_slots + 1, sizeof *optimizer->sums);
    return optimizer->sums != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory for its norms");
}

weir_status weir_optimizer_create(const struct weir_optimizer_config *config,
                                  const struct weir_param *params, size_t n_params,
                                  struct weir_optimizer **out, struct weir_error *err)
{
    WEIR_TRY(weir_optimizer_check(config, err));
    struct weir_optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (optimizer == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory");
    }
    weir_status status = WEIR_OK;
    optimizer->config = *config;
    optimizer->has_moments = type_takes(type_find(config->name), "beta1");
    optimizer->rules = optimizer_rules_of_machine();
    optimizer->rule = optimizer_rule_in(optimizer->rules, config);
    WEIR_TRY_GOTO(segments_make(optimizer, params, n_params, err), status, destroy);
    WEIR_TRY_GOTO(states_make(optimizer, err), status, destroy);
    WEIR_TRY_GOTO(slots_make(optimizer, err), status, destroy);
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
        slab_unmap(&optimizer->slabs[i]);
    }
    free(optimizer->sums);
    free(optimizer->segments);
    free(optimizer);
}

/* ---- update ------------------------------------------------------------------------------- */

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
struct part {
    size_t from, to; /**< from >= to: none. */
    float *states[OPTIMIZER_STATES_MAX];
};

static struct part part_of(const struct weir_optimizer *optimizer, const struct segment *segment,
                           size_t first, size_t end)
{
    struct part part = {.from = WEIR_MAX(first, segment->first), .to = WEIR_MIN(end, segment->end)};
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
        const struct segment *segment = &optimizer->segments[i];
        const struct part part = part_of(optimizer, segment, first, first + n);
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
    *out_n = optimizer->n_slots * (is_layerwise(&optimizer->config) ? 2 : 1);
    return optimizer->sums;
}

static bool is_last_pass(const struct weir_optimizer *optimizer, size_t i_pass)
{
    return i_pass + 1 == weir_optimizer_n_passes(optimizer);
}

/** Of what a segment and a tile have in common. */
static void measure_slot(struct weir_optimizer *optimizer, const struct step_scalars *scalars,
                         const struct segment *segment, const struct part *part, bool is_last,
                         const float *weights, const float *gradients)
{
    double (*square_sum)(const float *, size_t) = optimizer->rules->square_sum;
    const struct optimizer_rule *rule = optimizer->rule;
    const size_t n = part->to - part->from;
    const float *w = weights + part->from, *g = gradients + part->from;
    double *sum =
        &optimizer->sums[segment->first_slot + tile_of(part->from) - tile_of(segment->first)];
    *sum = is_last && rule->prepare != NULL
               ? rule->prepare(scalars, &segment->traits, n, w, g, part->states)
               : square_sum(g, n);
    if (is_last && is_layerwise(&optimizer->config)) {
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
        const struct segment *segment = &optimizer->segments[i];
        size_t from = WEIR_MAX(first, segment->first);
        if (from >= first + n) {
            break;
        }
        for (size_t end = WEIR_MIN(first + n, segment->end); from < end;) {
            size_t tile_end = (tile_of(from) + 1) * WEIR_OPTIMIZER_TILE;
            const struct part part = part_of(optimizer, segment, from, WEIR_MIN(end, tile_end));
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
static float rate_of(const struct weir_optimizer *optimizer, const struct segment *segment)
{
    const double *sums = optimizer->sums + segment->first_slot;
    const size_t n_slots = tile_of(segment->end - 1) - tile_of(segment->first) + 1;
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
        struct segment *segment = &optimizer->segments[i];
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
    struct net_update job = {.optimizer = optimizer,
                             .weights = weir_net_weights(net, NULL),
                             .gradients = gradients,
                             .lr = lr,
                             .step = step};
    size_t n_elems;
    weir_net_gradients(net, &n_elems);
    measure_all(optimizer, job.weights, gradients, 0, n_elems, lr, step);
    weir_net_update(net, update_range, &job);
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
