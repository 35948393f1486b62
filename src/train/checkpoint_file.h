/**
 * The files of a checkpoint, for the code that writes (checkpoint_image.c) and reads them
 * (checkpoint_load.c): names, and the metadata of every file.
 *
 * The metadata are the texts "weir.state" (worker 0's: where the training stands; a server's: the
 * ranges of its share), "weir.identity" and "weir.digest": SHA-256 over the names and digests of
 * all tensors and over the other two texts.
 */
#ifndef WEIR_TRAIN_CHECKPOINT_FILE_H
#define WEIR_TRAIN_CHECKPOINT_FILE_H

#include "train/checkpoint.h"

#define CHECKPOINT_PATH_BYTES 4096
/* Most files of a folder that are looked at; many more than are kept. */
#define CHECKPOINT_STEPS_MAX 1024
/* Prefix of the weights' average. */
#define CHECKPOINT_AVERAGE "train.average"

/** Path of worker 0's file. @return out. */
const char *checkpoint_main_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step);

/** Path of a server's file. @return out. */
const char *checkpoint_share_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step,
                                  int i_server);

/** Name of a range of a state in a server's file: "optimizer.sgd.momentum@262144".
 *  @return Memory of the arena. */
const char *checkpoint_range_name(const char *state, size_t first, struct weir_arena *arena);

/** Steps with a file of worker 0, newest first; of too many the newest. @return The number. */
size_t checkpoint_list_steps(const char *dir, uint64_t steps[CHECKPOINT_STEPS_MAX]);

/** Write a file, tensors and texts, atomically. It reads every byte for the digest. */
weir_status checkpoint_file_write(const char *path, const struct weir_safetensors_tensor *tensors,
                                  size_t n_tensors, const char *state, const char *identity,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Open a file and check every byte of it. @return CORRUPT if it differs from what was written. */
weir_status checkpoint_file_open(const char *path, struct weir_safetensors **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The text "weir.state" of worker 0's file. Numbers keep their bits. @return Memory of the arena;
 *  NULL if there is none left. */
char *checkpoint_state_text(const struct train_state *state, int n_servers,
                            struct weir_arena *arena);

/** The reverse of checkpoint_state_text. @param path  For the error. */
weir_status checkpoint_state_parse(const struct weir_safetensors *file, const char *path,
                                   struct train_state *out, int *out_n_servers,
                                   struct weir_error *err) WEIR_MUST_CHECK;

static inline size_t checkpoint_tensor_elems(const struct weir_safetensors_tensor *tensor)
{
    size_t n = 1;
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        n *= (size_t)tensor->dims[d];
    }
    return n;
}

static inline bool checkpoint_has_average(const struct checkpoint_parts *parts)
{
    return parts->average != NULL && parts->average->weights != NULL;
}

#endif
