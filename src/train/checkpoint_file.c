/* What a checkpoint's files are called, and what every one of them holds beside its tensors: a
 * state, the training's identity, and a digest of all of it. */
#include "train/checkpoint_file.h"

#include "base/file.h"
#include "base/json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* Texts of a checkpoint: a line per tensor. */
#define DIGEST_TEXT_MAX ((size_t)64 << 20)

const char *checkpoint_main_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step)
{
    (void)snprintf(out, CHECKPOINT_PATH_BYTES, "%s/step-%012llu.safetensors", dir,
                   (unsigned long long)step);
    return out;
}

const char *checkpoint_share_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step,
                                  int i_server)
{
    (void)snprintf(out, CHECKPOINT_PATH_BYTES, "%s/step-%012llu.server-%d.safetensors", dir,
                   (unsigned long long)step, i_server);
    return out;
}

const char *checkpoint_range_name(const char *state, size_t first, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s@%zu", state, first);
}

size_t checkpoint_list_steps(const char *dir, uint64_t steps[CHECKPOINT_STEPS_MAX])
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
        if (n == CHECKPOINT_STEPS_MAX && step < steps[n - 1]) {
            continue;
        }
        size_t at = n < CHECKPOINT_STEPS_MAX ? n++ : CHECKPOINT_STEPS_MAX - 1;
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

/* ---- digest --------------------------------------------------------------------------------- */

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

weir_status checkpoint_file_write(const char *path, const struct weir_safetensors_tensor *tensors,
                                  size_t n_tensors, const char *state, const char *identity,
                                  struct weir_error *err)
{
    struct weir_buf text;
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_buf_init(&text, DIGEST_TEXT_MAX);
    for (size_t i = 0; i < n_tensors; i++) {
        digest_tensor(&text, tensors[i].name, tensors[i].data,
                      checkpoint_tensor_elems(&tensors[i]));
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

weir_status checkpoint_file_open(const char *path, struct weir_safetensors **out,
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

/* ---- state ---------------------------------------------------------------------------------- */

static json_t *channels(const float values[3])
{
    json_t *array = json_array();
    for (int c = 0; c < 3; c++) {
        json_array_append_new(array, json_real((double)values[c]));
    }
    return array;
}

/* jansson writes 17 digits: the bits. */
char *checkpoint_state_text(const struct train_state *state, int n_servers,
                            struct weir_arena *arena)
{
    const struct weir_shape shape = state->input.shape;
    json_t *object = json_pack(
        "{s:I,s:I,s:I,s:f,s:f,s:f,s:[i,i,i],s:o,s:o,s:i,s:[f,I,I]}", "step",
        (json_int_t)state->step, "epoch", (json_int_t)state->place.epoch, "position",
        (json_int_t)state->place.position, "epoch_loss", state->epoch_loss, "epoch_correct",
        state->epoch_correct, "epoch_seen", state->epoch_seen, "input", shape.c, shape.h, shape.w,
        "mean", channels(state->input.mean), "std", channels(state->input.std), "servers",
        n_servers, "loss_scale", (double)state->loss_scale.scale,
        (json_int_t)state->loss_scale.n_good, (json_int_t)state->loss_scale.n_skipped);
    char *text = weir_json_text(object, arena);
    json_decref(object);
    return text;
}

weir_status checkpoint_state_parse(const struct weir_safetensors *file, const char *path,
                                   struct train_state *out, int *out_n_servers,
                                   struct weir_error *err)
{
    const char *text = weir_safetensors_metadata(file, "weir.state");
    json_t *object = NULL;
    json_int_t step = 0, epoch = 0, position = 0, n_good = 0, n_skipped = 0;
    double mean[3], std[3], scale = 0;
    struct train_state state = {0};
    WEIR_TRY(weir_json_parse(text, strlen(text), path, &object, err));
    int code = json_unpack(
        object, "{s:I,s:I,s:I,s:F,s:F,s:F,s:[i,i,i],s:[F,F,F],s:[F,F,F],s:i,s?:[F,I,I]}", "step",
        &step, "epoch", &epoch, "position", &position, "epoch_loss", &state.epoch_loss,
        "epoch_correct", &state.epoch_correct, "epoch_seen", &state.epoch_seen, "input",
        &state.input.shape.c, &state.input.shape.h, &state.input.shape.w, "mean", &mean[0],
        &mean[1], &mean[2], "std", &std[0], &std[1], &std[2], "servers", out_n_servers,
        "loss_scale", &scale, &n_good, &n_skipped);
    json_decref(object);
    if (code != 0 || step < 0 || epoch < 0 || position < 0 || !(scale >= 0) || n_good < 0 ||
        n_skipped < 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: its state cannot be read", path);
    }
    state.step = (uint64_t)step;
    state.place = (struct weir_place){(uint64_t)epoch, (uint64_t)position};
    state.loss_scale =
        (struct weir_loss_scale){(float)scale, (uint32_t)n_good, (uint64_t)n_skipped};
    for (int c = 0; c < 3; c++) {
        state.input.mean[c] = (float)mean[c];
        state.input.std[c] = (float)std[c];
    }
    *out = state;
    return WEIR_OK;
}
