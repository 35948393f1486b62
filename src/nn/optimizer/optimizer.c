#include "nn/optimizer.h"

#include "base/names.h"
#include "optimizer_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longest text of an optimiser: all settings fit many times. */
#define TEXT_MAX 256

/* ---- table -------------------------------------------------------------------------------- */

static const struct weir_optimizer_type types[] = {
    {.name = "sgd",
     .doc = "Stochastic gradient descent with momentum, or Nesterov's (nesterov=1).",
     .keys = "nesterov",
     .learning_rate = 0.05,
     .epsilon = 1e-8},
    {.name = "rmsprop",
     .doc = "RMSProp (Hinton) with momentum, as in PyTorch.",
     .keys = "alpha epsilon",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "adam",
     .doc = "Adam (Kingma and Ba, ICLR 2015), weight decay in the gradient.",
     .keys = "beta1 beta2 epsilon",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "adamw",
     .doc = "Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019).",
     .keys = "beta1 beta2 epsilon",
     .learning_rate = 0.001,
     .epsilon = 1e-8},
    {.name = "lars",
     .doc = "SGD with a rate per tensor (You et al., 2017), for batches of thousands.",
     .keys = "trust",
     .learning_rate = 2,
     .epsilon = 0},
    {.name = "lamb",
     .doc = "Adam with a rate per tensor (You et al., ICLR 2020), for batches of thousands.",
     .keys = "beta1 beta2 epsilon",
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
    return weir_words_have(type->keys, key, strlen(key));
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

bool optimizer_is_layerwise(const struct weir_optimizer_config *config)
{
    return strcmp(config->name, "lars") == 0 || strcmp(config->name, "lamb") == 0;
}

bool weir_optimizer_needs_all(const struct weir_optimizer_config *config)
{
    return optimizer_is_layerwise(config) || config->clip_norm > 0;
}

size_t weir_optimizer_n_passes(const struct weir_optimizer *optimizer)
{
    /* lamb's directions are made of gradients that were clipped. */
    const bool is_clipped = optimizer->config.clip_norm > 0;
    return optimizer->rule->prepare != NULL && is_clipped
               ? 2
               : weir_optimizer_needs_all(&optimizer->config);
}

static int segment_compare(const void *a, const void *b)
{
    const struct optimizer_segment *x = a;
    const struct optimizer_segment *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/** Trainable parameters as sorted segments. Neighbours of equal decay become one segment, except
 *  tensors with rates of their own. */
static weir_status segments_make(struct weir_optimizer *optimizer, const struct weir_param *params,
                                 size_t n_params, struct weir_error *err)
{
    struct optimizer_segment *segments = calloc(n_params + 1, sizeof *segments);
    if (segments == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "optimizer: no memory for %zu parameters",
                              n_params);
    }
    optimizer->segments = segments;
    const bool is_layered = optimizer_is_layerwise(&optimizer->config);
    size_t n = 0;
    for (size_t i = 0; i < n_params; i++) {
        if (params[i].is_trainable && params[i].n_elems > 0) {
            float decay = params[i].is_decayed ? (float)optimizer->config.weight_decay : 0.0f;
            segments[n++] =
                (struct optimizer_segment){.first = params[i].first_elem,
                                           .end = params[i].first_elem + params[i].n_elems,
                                           .traits = {.decay = decay, .trust = 1},
                                           .is_adapted = is_layered && params[i].is_decayed};
        }
    }
    qsort(segments, n, sizeof *segments, segment_compare);
    size_t n_batched_slices = 0;
    for (size_t i = 0; i < n; i++) {
        struct optimizer_segment *last =
            n_batched_slices == 0 ? NULL : &segments[n_batched_slices - 1];
        if (last != NULL && segments[i].first < last->end) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "optimizer: two parameters overlap at element %zu",
                                  segments[i].first);
        }
        if (last != NULL && !is_layered && segments[i].first == last->end &&
            segments[i].traits.decay == last->traits.decay) {
            last->end = segments[i].end;
        } else {
            segments[n_batched_slices++] = segments[i];
        }
    }
    optimizer->n_segments = n_batched_slices;
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
        struct optimizer_segment *segment = &optimizer->segments[i];
        segment->first_slot = optimizer->n_slots;
        optimizer->n_slots += segment_slots(segment);
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
    optimizer_gpu_detach(optimizer);
    for (size_t i = 0; i < optimizer->n_states; i++) {
        slab_unmap(&optimizer->slabs[i]);
    }
    free(optimizer->sums);
    free(optimizer->segments);
    free(optimizer);
}

/* ---- states ------------------------------------------------------------------------------- */

const struct weir_optimizer_state *weir_optimizer_states(const struct weir_optimizer *optimizer,
                                                         size_t *out_n)
{
    optimizer_gpu_fetch(optimizer);
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
            optimizer_gpu_detach(optimizer);
            memcpy(state->data, data, n_elems * sizeof *data);
        }
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "optimizer %s has no state \"%s\"",
                          optimizer->config.name, name);
}
