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
    struct run_traits traits;
};

struct weir_optimizer {
    struct weir_optimizer_config config;
    const struct optimizer_rule *rule;
    struct segment *segments; /**< By first element, not overlapping. */
    size_t n_segments;
    struct weir_optimizer_state states[OPTIMIZER_STATES_MAX];
    struct slab slabs[OPTIMIZER_STATES_MAX]; /**< Of the states: in huge pages, as weights are. */
    size_t n_states;
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
            segments[n++] = (struct segment){
                .first = params[i].first_elem,
                .end = params[i].first_elem + params[i].n_elems,
                .traits = {.decay = decay, .is_adapted = is_layered && params[i].is_decayed}};
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
    optimizer->rule = optimizer_rule_of(&optimizer->config);
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
        slab_unmap(&optimizer->slabs[i]);
    }
    free(optimizer->segments);
    free(optimizer);
}

/* ---- update ------------------------------------------------------------------------------- */

static struct step_scalars scalars_of(const struct weir_optimizer_config *config, double lr,
                                      uint64_t step)
{
    double t = (double)step + 1;
    double bc1 = 1 - pow(config->beta1, t), bc2 = 1 - pow(config->beta2, t);
    return (struct step_scalars){
        .lr = (float)lr,
        .momentum = (float)config->momentum,
        .alpha = (float)config->alpha,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .epsilon = (float)config->epsilon,
        .trust = (float)config->trust,
        .rest_alpha = (float)(1 - config->alpha),
        .rest1 = (float)(1 - config->beta1),
        .rest2 = (float)(1 - config->beta2),
        .step_size = (float)(lr / bc1),
        .bc1 = (float)bc1,
        .sqrt_bc2 = (float)sqrt(bc2),
        .scale = 1,
    };
}

/** What all gradients are multiplied by. */
static float clip_scale(const struct weir_optimizer *optimizer, const float *gradients)
{
    double squares = 0;
    if (!(optimizer->config.clip_norm > 0)) {
        return 1;
    }
    for (size_t i = 0; i < optimizer->n_segments; i++) {
        const struct segment *segment = &optimizer->segments[i];
        squares +=
            optimizer_square_sum(1, gradients + segment->first, segment->end - segment->first);
    }
    double scale = optimizer->config.clip_norm / (sqrt(squares) + CLIP_EPSILON);
    return scale < 1 ? (float)scale : 1; /* 1 if it is not a number: that stays where it is */
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
    struct step_scalars scalars = scalars_of(&optimizer->config, lr, step);
    size_t end = first + n;
    assert(!weir_optimizer_needs_all(&optimizer->config) || optimizer->n_segments == 0 ||
           (first <= optimizer->segments[0].first &&
            end >= optimizer->segments[optimizer->n_segments - 1].end));
    scalars.scale = clip_scale(optimizer, gradients);
    for (size_t i = segment_find(optimizer, first); i < optimizer->n_segments; i++) {
        const struct segment *segment = &optimizer->segments[i];
        size_t from = WEIR_MAX(first, segment->first);
        size_t to = WEIR_MIN(end, segment->end);
        if (from >= to) {
            break;
        }
        float *states[OPTIMIZER_STATES_MAX] = {NULL};
        for (size_t j = 0; j < optimizer->n_states; j++) {
            states[j] = optimizer->states[j].data + from;
        }
        optimizer->rule->update(&scalars, &segment->traits, to - from, weights + from,
                                gradients + from, states);
    }
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
    weir_optimizer_update(job->optimizer, job->weights, job->gradients, first_elem, n_elems,
                          job->lr, job->step);
}

void weir_optimizer_update_net(struct weir_optimizer *optimizer, struct weir_net *net,
                               const float *gradients, double lr, uint64_t step)
{
    struct net_update job = {.optimizer = optimizer,
                             .weights = weir_net_weights(net, NULL),
                             .gradients = gradients,
                             .lr = lr,
                             .step = step};
    if (weir_optimizer_needs_all(&optimizer->config)) {
        size_t n_elems;
        weir_net_gradients(net, &n_elems);
        update_range(&job, 0, n_elems);
        weir_net_weights_changed(net);
        return;
    }
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
