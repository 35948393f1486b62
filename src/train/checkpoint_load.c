/* A training goes on from the newest checkpoint that is whole. */
#include "train/checkpoint_file.h"

#include "base/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/** Copy a file's whole states into the optimiser. */
static weir_status read_states(const struct weir_safetensors *file,
                               struct weir_optimizer *optimizer, struct weir_error *err)
{
    size_t n_states = 0;
    const struct weir_optimizer_state *states = weir_optimizer_states(optimizer, &n_states);
    for (size_t i = 0; i < n_states; i++) {
        WEIR_TRY(weir_safetensors_read_f32(file, states[i].name, states[i].data, states[i].n_elems,
                                           err));
    }
    return WEIR_OK;
}

/** The ranges of all shares, and what is read with them. */
struct shares {
    struct weir_optimizer *optimizer; /**< NULL: nothing. */
    struct weir_arena *arena;
    struct checkpoint_range *ranges;
    size_t n_ranges;
};

static void close_file(struct weir_safetensors **file)
{
    weir_safetensors_close(*file);
}

static weir_status read_range(const struct shares *shares, const struct weir_safetensors *file,
                              const struct checkpoint_range *range, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    size_t n_states = 0;
    const struct weir_optimizer_state *states = weir_optimizer_states(shares->optimizer, &n_states);
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < n_states; i++) {
        size_t from = WEIR_MIN(range->first, states[i].n_elems);
        WEIR_TRY(weir_safetensors_read_f32(
            file, checkpoint_range_name(states[i].name, range->first, &arena),
            states[i].data + from, WEIR_MIN(range->n, states[i].n_elems - from), err));
    }
    return WEIR_OK;
}

static weir_status read_share(struct shares *shares, const struct weir_safetensors *file,
                              const char *path, struct weir_error *err)
{
    const char *text = weir_safetensors_metadata(file, "weir.state");
    json_t *object = NULL;
    WEIR_TRY(weir_json_parse(text, strlen(text), path, &object, err));
    const json_t *list = json_object_get(object, "ranges");
    size_t n = json_array_size(list), n_all = shares->n_ranges + n;
    struct checkpoint_range *ranges =
        WEIR_ARENA_ARRAY(shares->arena, n_all + 1, struct checkpoint_range);
    if (shares->n_ranges > 0) {
        memcpy(ranges, shares->ranges, shares->n_ranges * sizeof *ranges);
    }
    weir_status status = json_is_array(list) ? WEIR_OK
                                             : weir_error_set(err, WEIR_ERR_CORRUPT,
                                                              "%s: its state cannot be read", path);
    for (size_t i = 0; status == WEIR_OK && i < n; i++) {
        const json_t *pair = json_array_get(list, i);
        json_int_t first = json_integer_value(json_array_get(pair, 0)),
                   n_elems = json_integer_value(json_array_get(pair, 1));
        struct checkpoint_range *range = &ranges[shares->n_ranges + i];
        *range = (struct checkpoint_range){(size_t)first, (size_t)n_elems};
        if (first < 0 || n_elems <= 0) {
            status = weir_error_set(err, WEIR_ERR_CORRUPT, "%s: its state cannot be read", path);
        } else if (shares->optimizer != NULL) {
            status = read_range(shares, file, range, err);
        }
    }
    json_decref(object);
    shares->ranges = ranges;
    shares->n_ranges = n_all;
    return status;
}

static int by_first(const void *a, const void *b)
{
    const struct checkpoint_range *x = a;
    const struct checkpoint_range *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/** Do the ranges follow each other, without a gap? */
static weir_status check_ranges(struct shares *shares, const char *dir, uint64_t step,
                                struct weir_error *err)
{
    size_t at = 0;
    if (shares->n_ranges > 1) {
        qsort(shares->ranges, shares->n_ranges, sizeof *shares->ranges, by_first);
    }
    for (size_t i = 0; i < shares->n_ranges; i++) {
        if (shares->ranges[i].first != at) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s: of the servers' shares of step %llu one begins at %zu, not "
                                  "at %zu",
                                  dir, (unsigned long long)step, shares->ranges[i].first, at);
        }
        at += shares->ranges[i].n;
    }
    return WEIR_OK;
}

/** All shares; into the optimiser if it is not NULL. */
static weir_status read_shares(const char *dir, uint64_t step, int n_servers,
                               struct weir_optimizer *optimizer, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct shares shares = {.optimizer = optimizer, .arena = &arena};
    for (int i = 0; i < n_servers; i++) {
        char path[CHECKPOINT_PATH_BYTES];
        WEIR_AUTO(close_file) struct weir_safetensors *file = NULL;
        WEIR_TRY(checkpoint_file_open(checkpoint_share_path(path, dir, step, i), &file, err));
        WEIR_TRY(read_share(&shares, file, path, err));
    }
    return check_ranges(&shares, dir, step, err);
}

/** The optimiser's state that belongs to an open file of worker 0. */
static weir_status read_optimizer(const struct weir_safetensors *file, const char *dir,
                                  uint64_t step, int n_servers, struct weir_optimizer *optimizer,
                                  struct weir_error *err)
{
    if (n_servers > 0 || optimizer == NULL) {
        return read_shares(dir, step, n_servers, optimizer, err);
    }
    return read_states(file, optimizer, err);
}

weir_status checkpoint_load_optimizer(const char *dir, uint64_t step,
                                      struct weir_optimizer *optimizer, struct weir_error *err)
{
    char path[CHECKPOINT_PATH_BYTES];
    WEIR_AUTO(close_file) struct weir_safetensors *file = NULL;
    struct train_state state;
    int n_servers = 0;
    WEIR_TRY(checkpoint_file_open(checkpoint_main_path(path, dir, step), &file, err));
    WEIR_TRY(checkpoint_state_parse(file, path, &state, &n_servers, err));
    return read_optimizer(file, dir, step, n_servers, optimizer, err);
}

/** A value as a person would write it: 0.05, not its 17 digits. */
static char *value_text(const json_t *value, struct weir_arena *arena)
{
    char *text = value == NULL
                     ? NULL
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
    char *copy = weir_arena_strdup(arena, text != NULL ? text : "missing");
    free(text);
    return copy;
}

/** In which key do they differ? OK if in none. */
static weir_status compare_identity(const char *there, const char *here, const char *path,
                                    struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *a = NULL, *b = NULL;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    WEIR_TRY(weir_json_parse(there, strlen(there), path, &a, err));
    WEIR_TRY(weir_json_parse(here, strlen(here), "this training", &b, err));
    for (void *it = json_object_iter(b); it != NULL; it = json_object_iter_next(b, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *old = json_object_get(a, key), *now = json_object_iter_value(it);
        if (!json_equal(old, now)) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "%s belongs to another training: %s is %.70s there and %.70s here; remove it or "
                "take another checkpoint_dir",
                path, key, value_text(old, &arena), value_text(now, &arena));
        }
    }
    return WEIR_OK;
}

static weir_status read_weights(const struct weir_safetensors *file, struct weir_net *net,
                                struct weir_error *err)
{
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(net, &n_params);
    float *weights = weir_net_weights(net, NULL);
    for (size_t i = 0; i < n_params; i++) {
        WEIR_TRY(weir_safetensors_read_f32(file, params[i].name, weights + params[i].first_elem,
                                           params[i].n_elems, err));
    }
    weir_net_weights_changed(net);
    return WEIR_OK;
}

static weir_status load_step(const char *dir, uint64_t step, const struct checkpoint_parts *parts,
                             struct train_state *out, struct weir_error *err)
{
    char path[CHECKPOINT_PATH_BYTES];
    WEIR_AUTO(close_file) struct weir_safetensors *file = NULL;
    int n_servers = 0;
    WEIR_TRY(checkpoint_file_open(checkpoint_main_path(path, dir, step), &file, err));
    WEIR_TRY(compare_identity(weir_safetensors_metadata(file, "weir.identity"), parts->identity,
                              path, err));
    WEIR_TRY(checkpoint_state_parse(file, path, out, &n_servers, err));
    WEIR_TRY(read_weights(file, parts->net, err));
    WEIR_TRY(read_optimizer(file, dir, step, n_servers, parts->optimizer, err));
    return checkpoint_has_average(parts)
               ? weir_safetensors_read_f32(file, CHECKPOINT_AVERAGE, parts->average->weights,
                                           parts->average->n, err)
               : WEIR_OK;
}

weir_status checkpoint_load(const char *dir, const struct checkpoint_parts *parts,
                            struct train_state *out, struct weir_error *err)
{
    uint64_t steps[CHECKPOINT_STEPS_MAX];
    size_t n = checkpoint_list_steps(dir, steps);
    for (size_t i = 0; i < n; i++) {
        struct weir_error reason = {0};
        weir_status status = load_step(dir, steps[i], parts, out, &reason);
        if (status == WEIR_OK) {
            return WEIR_OK;
        }
        if (status == WEIR_ERR_CONFLICT || status == WEIR_ERR_NOMEM) {
            return weir_error_set(err, status, "%s", reason.message);
        }
        weir_log(WEIR_LOG_WARN, "checkpoint_damaged", WEIR_KV_INT("step", (int64_t)steps[i]),
                 WEIR_KV_STR("error", reason.message));
    }
    return n == 0 ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s: no checkpoint", dir)
                  : weir_error_set(err, WEIR_ERR_CORRUPT,
                                   "%s: none of its %zu checkpoints is whole; remove them to begin "
                                   "again",
                                   dir, n);
}
