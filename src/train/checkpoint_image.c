/* Checkpoints are taken from a training, and written beside it. */
#include "train/checkpoint_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tensors of an optimiser: as many as Adam has, and room. */
#define STATES_MAX 8

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
            .name = range == NULL
                        ? states[i].name
                        : checkpoint_range_name(states[i].name, range->first, &image->arena),
            .dims = {(int64_t)(range == NULL ? n : WEIR_MIN(range->n, n))},
            .n_dims = 1,
            .data = states[i].data + from};
    }
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
    WEIR_TRY(weir_net_check_copies(parts->net, err));
    if (checkpoint_has_average(parts)) {
        image->tensors[image->n_tensors++] =
            (struct weir_safetensors_tensor){.name = CHECKPOINT_AVERAGE,
                                             .dims = {(int64_t)parts->average->n},
                                             .n_dims = 1,
                                             .data = parts->average->weights};
    }
    image->n_servers = parts->n_servers;
    image->state = checkpoint_state_text(state, parts->n_servers, &image->arena);
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
        n += checkpoint_tensor_elems(&image->tensors[i]);
    }
    return n;
}

void checkpoint_image_move(struct checkpoint_image *image, float *room)
{
    for (size_t i = 0; i < image->n_tensors; i++) {
        struct weir_safetensors_tensor *tensor = &image->tensors[i];
        size_t n = checkpoint_tensor_elems(tensor);
        memcpy(room, tensor->data, n * sizeof *room);
        tensor->data = room;
        tensor->name = weir_arena_strdup(&image->arena, tensor->name);
        room += n;
    }
}

/** Remove all files of steps before `oldest`, the servers' too, and those of later ones that never
 *  became whole. */
static void remove_other_files(const char *dir, uint64_t oldest, uint64_t newest)
{
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned long long step = 0;
        char path[CHECKPOINT_PATH_BYTES];
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
    uint64_t steps[CHECKPOINT_STEPS_MAX];
    size_t n_steps = checkpoint_list_steps(dir, steps);
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
    char path[CHECKPOINT_PATH_BYTES];
    for (int i = 0; i < image->n_servers; i++) {
        if (!weir_path_exists(checkpoint_share_path(path, dir, image->step, i))) {
            return false;
        }
    }
    return true;
}

weir_status checkpoint_image_write(const struct checkpoint_image *image, const char *dir,
                                   struct weir_error *err)
{
    char path[CHECKPOINT_PATH_BYTES];
    const bool is_share = image->i_server >= 0;
    WEIR_TRY(checkpoint_file_write(
        is_share ? checkpoint_share_path(path, dir, image->step, image->i_server)
                 : checkpoint_main_path(path, dir, image->step),
        image->tensors, image->n_tensors, image->state, image->identity, err));
    if (!is_share) {
        prune(dir, image->step);
    }
    return WEIR_OK;
}
