#include "train/checkpoint.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "nn/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
/* Tensors of an optimiser: as many as Adam has, and room. */
#define STATES_MAX 8
#define AVERAGE    "train.average"
/* Files in a folder that are looked at; many more than are kept. */
#define STEPS_MAX 1024
/* Texts of a checkpoint: a line per tensor. */
#define DIGEST_TEXT_MAX ((size_t)64 << 20)

static const char *main_path(char out[PATH_BYTES], const char *dir, uint64_t step)
{
    (void)snprintf(out, PATH_BYTES, "%s/step-%012llu.safetensors", dir, (unsigned long long)step);
    return out;
}

static const char *share_path(char out[PATH_BYTES], const char *dir, uint64_t step, int i_server)
{
    (void)snprintf(out, PATH_BYTES, "%s/step-%012llu.server-%d.safetensors", dir,
                   (unsigned long long)step, i_server);
    return out;
}

/* ---- digest ------------------------------------------------------------------------------- */

static void digest_tensor(struct weir_buf *text, const char *name, const float *data, size_t n)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(data, n * sizeof *data, sha);
    (void)weir_buf_printf(text, "%s  %s\n", sha, name);
}

static weir_status digest_finish(struct weir_buf *text, const char *state, const char *identity,
                                 char out[WEIR_SHA256_TEXT_BYTES], struct weir_error *err)
{
    (void)weir_buf_printf(text, "%s\n%s\n", state, identity);
    weir_status status = text->status;
    if (status == WEIR_OK) {
        weir_sha256(text->data, text->len, out);
    }
    weir_buf_fini(text);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "no memory for a checkpoint");
}

static size_t tensor_elems(const struct weir_safetensors_tensor *tensor)
{
    size_t n = 1;
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        n *= (size_t)tensor->dims[d];
    }
    return n;
}

/** Write a file of ours: tensors, and the texts "weir.state", "weir.identity", "weir.digest". */
static weir_status write_file(const char *path, const struct weir_safetensors_tensor *tensors,
                              size_t n_tensors, const char *state, const char *identity,
                              struct weir_error *err)
{
    struct weir_buf text;
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_buf_init(&text, DIGEST_TEXT_MAX);
    for (size_t i = 0; i < n_tensors; i++) {
        digest_tensor(&text, tensors[i].name, tensors[i].data, tensor_elems(&tensors[i]));
    }
    WEIR_TRY(digest_finish(&text, state, identity, digest, err));
    const struct weir_safetensors_text texts[] = {
        {"weir.state", state}, {"weir.identity", identity}, {"weir.digest", digest}};
    return weir_safetensors_write(path, tensors, n_tensors, texts, WEIR_ARRAY_LEN(texts), err);
}

static weir_status check_digest(const struct weir_safetensors *file, const char *path,
                                struct weir_error *err)
{
    size_t n = 0;
    const struct weir_safetensors_entry *entries = weir_safetensors_entries(file, &n);
    const char *state = weir_safetensors_metadata(file, "weir.state");
    const char *identity = weir_safetensors_metadata(file, "weir.identity");
    const char *wanted = weir_safetensors_metadata(file, "weir.digest");
    struct weir_buf text;
    char digest[WEIR_SHA256_TEXT_BYTES];
    if (state == NULL || identity == NULL || wanted == NULL) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: no checkpoint of Weir", path);
    }
    weir_buf_init(&text, DIGEST_TEXT_MAX);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        size_t n_elems = (size_t)entries[i].n_elems;
        float *data = malloc(n_elems * sizeof *data + 1);
        status = data == NULL
                     ? weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", path)
                     : weir_safetensors_read_f32(file, entries[i].name, data, n_elems, err);
        if (status == WEIR_OK) {
            digest_tensor(&text, entries[i].name, data, n_elems);
        }
        free(data);
    }
    if (status != WEIR_OK) {
        weir_buf_fini(&text);
        return status;
    }
    WEIR_TRY(digest_finish(&text, state, identity, digest, err));
    return strcmp(digest, wanted) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "%s: its digest does not fit its content",
                                path);
}

/** Open a file of ours and check every byte of it. */
static weir_status open_file(const char *path, struct weir_safetensors **out,
                             struct weir_error *err)
{
    struct weir_safetensors *file = NULL;
    WEIR_TRY(weir_safetensors_open(path, &file, err));
    weir_status status = check_digest(file, path, err);
    if (status != WEIR_OK) {
        weir_safetensors_close(file);
        return status;
    }
    *out = file;
    return WEIR_OK;
}

/* ---- state -------------------------------------------------------------------------------- */

static json_t *channels(const float values[3])
{
    json_t *array = json_array();
    for (int c = 0; c < 3; c++) {
        json_array_append_new(array, json_real((double)values[c]));
    }
    return array;
}

/** Numbers keep their bits: jansson writes 17 digits. */
static char *state_text(const struct train_state *state, int n_servers, struct weir_arena *arena)
{
    const struct weir_shape shape = state->input.shape;
    json_t *object = json_pack(
        "{s:I,s:I,s:I,s:f,s:f,s:f,s:[i,i,i],s:o,s:o,s:i}", "step", (json_int_t)state->step, "epoch",
        (json_int_t)state->place.epoch, "position", (json_int_t)state->place.position, "epoch_loss",
        state->epoch_loss, "epoch_correct", state->epoch_correct, "epoch_seen", state->epoch_seen,
        "input", shape.c, shape.h, shape.w, "mean", channels(state->input.mean), "std",
        channels(state->input.std), "servers", n_servers);
    char *text = weir_json_text(object, arena);
    json_decref(object);
    return text;
}

static weir_status parse_state(const struct weir_safetensors *file, const char *path,
                               struct train_state *out, int *out_n_servers, struct weir_error *err)
{
    const char *text = weir_safetensors_metadata(file, "weir.state");
    json_t *object = NULL;
    json_int_t step = 0, epoch = 0, position = 0;
    double mean[3], std[3];
    struct train_state state = {0};
    WEIR_TRY(weir_json_parse(text, strlen(text), path, &object, err));
    int code = json_unpack(object, "{s:I,s:I,s:I,s:F,s:F,s:F,s:[i,i,i],s:[F,F,F],s:[F,F,F],s:i}",
                           "step", &step, "epoch", &epoch, "position", &position, "epoch_loss",
                           &state.epoch_loss, "epoch_correct", &state.epoch_correct, "epoch_seen",
                           &state.epoch_seen, "input", &state.input.shape.c, &state.input.shape.h,
                           &state.input.shape.w, "mean", &mean[0], &mean[1], &mean[2], "std",
                           &std[0], &std[1], &std[2], "servers", out_n_servers);
    json_decref(object);
    if (code != 0 || step < 0 || epoch < 0 || position < 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: its state cannot be read", path);
    }
    state.step = (uint64_t)step;
    state.place = (struct weir_place){(uint64_t)epoch, (uint64_t)position};
    for (int c = 0; c < 3; c++) {
        state.input.mean[c] = (float)mean[c];
        state.input.std[c] = (float)std[c];
    }
    *out = state;
    return WEIR_OK;
}

/* ---- writing ------------------------------------------------------------------------------ */

/** What every image of a training's checkpoint begins as. */
static weir_status image_begin(struct checkpoint_image *image, uint64_t step, size_t n_tensors,
                               struct weir_error *err)
{
    *image = (struct checkpoint_image){.step = step, .i_server = -1};
    weir_arena_init(&image->arena, 0);
    image->tensors = calloc(n_tensors, sizeof *image->tensors);
    return image->tensors != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a checkpoint");
}

void checkpoint_image_fini(struct checkpoint_image *image)
{
    free(image->tensors);
    weir_arena_fini(&image->arena);
    *image = (struct checkpoint_image){.n_tensors = 0};
}

/** A range of a state in a share's file: "optimizer.sgd.momentum@262144". */
static const char *range_name(const char *state, size_t first, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s@%zu", state, first);
}

/** Whole states, or a range of them under its own name. */
static void add_states(struct checkpoint_image *image, const struct weir_optimizer *optimizer,
                       const struct checkpoint_range *range)
{
    size_t n_states = 0;
    const struct weir_optimizer_state *states = weir_optimizer_states(optimizer, &n_states);
    for (size_t i = 0; i < n_states && i < STATES_MAX; i++) {
        /* Ranges are cut from the slab, whose end is padding that no state has. */
        size_t from = range == NULL ? 0 : WEIR_MIN(range->first, states[i].n_elems);
        size_t n = states[i].n_elems - from;
        image->tensors[image->n_tensors++] = (struct weir_safetensors_tensor){
            .name = range == NULL ? states[i].name
                                  : range_name(states[i].name, range->first, &image->arena),
            .dims = {(int64_t)(range == NULL ? n : WEIR_MIN(range->n, n))},
            .n_dims = 1,
            .data = states[i].data + from};
    }
}

static bool has_average(const struct checkpoint_parts *parts)
{
    return parts->average != NULL && parts->average->weights != NULL;
}

weir_status checkpoint_image_take(struct checkpoint_image *image,
                                  const struct checkpoint_parts *parts,
                                  const struct train_state *state, struct weir_error *err)
{
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(parts->net, &n_params);
    const float *weights = weir_net_weights(parts->net, NULL);
    WEIR_TRY(image_begin(image, state->step, n_params + STATES_MAX + 1, err));
    for (size_t i = 0; i < n_params; i++) {
        image->tensors[image->n_tensors++] =
            (struct weir_safetensors_tensor){.name = params[i].name,
                                             .dims = {(int64_t)params[i].n_elems},
                                             .n_dims = 1,
                                             .data = weights + params[i].first_elem};
    }
    if (parts->optimizer != NULL) {
        add_states(image, parts->optimizer, NULL);
    }
    if (has_average(parts)) {
        image->tensors[image->n_tensors++] =
            (struct weir_safetensors_tensor){.name = AVERAGE,
                                             .dims = {(int64_t)parts->average->n},
                                             .n_dims = 1,
                                             .data = parts->average->weights};
    }
    image->n_servers = parts->n_servers;
    image->state = state_text(state, parts->n_servers, &image->arena);
    image->identity = weir_arena_strdup(&image->arena, parts->identity);
    return WEIR_OK;
}

weir_status checkpoint_image_take_share(struct checkpoint_image *image, uint64_t step,
                                        const struct checkpoint_share *share,
                                        const struct weir_optimizer *optimizer,
                                        struct weir_error *err)
{
    WEIR_TRY(image_begin(image, step, STATES_MAX * (share->n_ranges + 1), err));
    image->i_server = share->i_server;
    json_t *ranges = json_array();
    for (size_t i = 0; i < share->n_ranges; i++) {
        add_states(image, optimizer, &share->ranges[i]);
        json_array_append_new(ranges, json_pack("[I,I]", (json_int_t)share->ranges[i].first,
                                                (json_int_t)share->ranges[i].n));
    }
    json_t *state = json_pack("{s:o}", "ranges", ranges);
    image->state = weir_json_text(state, &image->arena);
    json_decref(state);
    image->identity = weir_arena_strdup(&image->arena, "{}");
    return WEIR_OK;
}

size_t checkpoint_image_elems(const struct checkpoint_image *image)
{
    size_t n = 0;
    for (size_t i = 0; i < image->n_tensors; i++) {
        n += tensor_elems(&image->tensors[i]);
    }
    return n;
}

void checkpoint_image_move(struct checkpoint_image *image, float *room)
{
    for (size_t i = 0; i < image->n_tensors; i++) {
        struct weir_safetensors_tensor *tensor = &image->tensors[i];
        size_t n = tensor_elems(tensor);
        memcpy(room, tensor->data, n * sizeof *room);
        tensor->data = room;
        tensor->name = weir_arena_strdup(&image->arena, tensor->name);
        room += n;
    }
}

/** Steps that have worker 0's file, newest first. @return how many. */
static size_t list_steps(const char *dir, uint64_t steps[STEPS_MAX])
{
    size_t n = 0;
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned long long step = 0;
        int n_read = 0;
        if (sscanf(entry->d_name, "step-%llu.safetensors%n", &step, &n_read) != 1 || n_read == 0 ||
            entry->d_name[n_read] != '\0') {
            continue;
        }
        size_t at = n < STEPS_MAX ? n++ : STEPS_MAX - 1;
        for (; at > 0 && steps[at - 1] < step; at--) {
            steps[at] = steps[at - 1];
        }
        steps[at] = step;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return n;
}

/** Remove all files of steps before `oldest`, the servers' too, and those of later ones that never
 *  became whole. */
static void remove_other_files(const char *dir, uint64_t oldest, uint64_t newest)
{
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned long long step = 0;
        char path[PATH_BYTES];
        if (sscanf(entry->d_name, "step-%llu.", &step) == 1 && (step < oldest || step > newest)) {
            (void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
            if (unlink(path) != 0 && errno != ENOENT) {
                weir_log(WEIR_LOG_WARN, "checkpoint_not_removed", WEIR_KV_STR("path", path),
                         WEIR_KV_STR("error", strerror(errno)));
            }
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/** After worker 0's file of `step`: what is older than the last to be kept goes. */
static void prune(const char *dir, uint64_t step)
{
    uint64_t steps[STEPS_MAX];
    size_t n_steps = list_steps(dir, steps);
    /* Later steps are left over from a training that went back to this one's past. */
    size_t i_this = 0;
    while (i_this + 1 < n_steps && steps[i_this] > step) {
        i_this++;
    }
    size_t i_oldest = WEIR_MIN(i_this + CHECKPOINTS_KEPT - 1, n_steps - 1);
    remove_other_files(dir, steps[i_oldest], step);
}

bool checkpoint_has_shares(const struct checkpoint_image *image, const char *dir)
{
    char path[PATH_BYTES];
    for (int i = 0; i < image->n_servers; i++) {
        if (!weir_path_exists(share_path(path, dir, image->step, i))) {
            return false;
        }
    }
    return true;
}

weir_status checkpoint_image_write(const struct checkpoint_image *image, const char *dir,
                                   struct weir_error *err)
{
    char path[PATH_BYTES];
    const bool is_share = image->i_server >= 0;
    WEIR_TRY(write_file(is_share ? share_path(path, dir, image->step, image->i_server)
                                 : main_path(path, dir, image->step),
                        image->tensors, image->n_tensors, image->state, image->identity, err));
    if (!is_share) {
        prune(dir, image->step);
    }
    return WEIR_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

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
    struct weir_arena arena;
    struct checkpoint_range *ranges;
    size_t n_ranges;
};

static weir_status read_range(const struct shares *shares, const struct weir_safetensors *file,
                              const struct checkpoint_range *range, struct weir_error *err)
{
    struct weir_arena arena;
    size_t n_states = 0;
    weir_status status = WEIR_OK;
    const struct weir_optimizer_state *states = weir_optimizer_states(shares->optimizer, &n_states);
    weir_arena_init(&arena, 0);
    for (size_t i = 0; status == WEIR_OK && i < n_states; i++) {
        size_t from = WEIR_MIN(range->first, states[i].n_elems);
        status = weir_safetensors_read_f32(file, range_name(states[i].name, range->first, &arena),
                                           states[i].data + from,
                                           WEIR_MIN(range->n, states[i].n_elems - from), err);
    }
    weir_arena_fini(&arena);
    return status;
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
        WEIR_ARENA_ARRAY(&shares->arena, n_all + 1, struct checkpoint_range);
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
    struct shares shares = {.optimizer = optimizer};
    weir_status status = WEIR_OK;
    weir_arena_init(&shares.arena, 0);
    for (int i = 0; status == WEIR_OK && i < n_servers; i++) {
        char path[PATH_BYTES];
        struct weir_safetensors *file = NULL;
        status = open_file(share_path(path, dir, step, i), &file, err);
        if (status == WEIR_OK) {
            status = read_share(&shares, file, path, err);
            weir_safetensors_close(file);
        }
    }
    if (status == WEIR_OK) {
        status = check_ranges(&shares, dir, step, err);
    }
    weir_arena_fini(&shares.arena);
    return status;
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
    char path[PATH_BYTES];
    struct weir_safetensors *file = NULL;
    struct train_state state;
    int n_servers = 0;
    WEIR_TRY(open_file(main_path(path, dir, step), &file, err));
    weir_status status = parse_state(file, path, &state, &n_servers, err);
    if (status == WEIR_OK) {
        status = read_optimizer(file, dir, step, n_servers, optimizer, err);
    }
    weir_safetensors_close(file);
    return status;
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
    json_t *a = NULL, *b = NULL;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = weir_json_parse(there, strlen(there), path, &a, err);
    if (status == WEIR_OK) {
        status = weir_json_parse(here, strlen(here), "this training", &b, err);
    }
    for (void *it = json_object_iter(b); status == WEIR_OK && it != NULL;
         it = json_object_iter_next(b, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *old = json_object_get(a, key), *now = json_object_iter_value(it);
        if (!json_equal(old, now)) {
            status = weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "%s belongs to another training: %s is %.70s there and %.70s here; remove it or "
                "take another checkpoint_dir",
                path, key, value_text(old, &arena), value_text(now, &arena));
        }
    }
    json_decref(a);
    json_decref(b);
    weir_arena_fini(&arena);
    return status;
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
    char path[PATH_BYTES];
    struct weir_safetensors *file = NULL;
    int n_servers = 0;
    WEIR_TRY(open_file(main_path(path, dir, step), &file, err));
    weir_status status = compare_identity(weir_safetensors_metadata(file, "weir.identity"),
                                          parts->identity, path, err);
    if (status == WEIR_OK) {
        status = parse_state(file, path, out, &n_servers, err);
    }
    if (status == WEIR_OK) {
        status = read_weights(file, parts->net, err);
    }
    if (status == WEIR_OK) {
        status = read_optimizer(file, dir, step, n_servers, parts->optimizer, err);
    }
    if (status == WEIR_OK && has_average(parts)) {
        status = weir_safetensors_read_f32(file, AVERAGE, parts->average->weights,
                                           parts->average->n, err);
    }
    weir_safetensors_close(file);
    return status;
}

weir_status checkpoint_load(const char *dir, const struct checkpoint_parts *parts,
                            struct train_state *out, struct weir_error *err)
{
    uint64_t steps[STEPS_MAX];
    size_t n = list_steps(dir, steps);
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
