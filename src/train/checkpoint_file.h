/**
 * The files of a checkpoint, for those who write (checkpoint_image.c) and read (checkpoint_load.c)
 * them: names, and what every file holds beside its tensors.
 *
 * The metadata of a file are the texts "weir.state" (worker 0's: where the training stands; a
 * server's: the ranges of its share), "weir.identity" and "weir.digest", SHA-256 over the names and
 * digests of all tensors and over the other two texts.
 */
#ifndef WEIR_TRAIN_CHECKPOINT_FILE_H
#define WEIR_TRAIN_CHECKPOINT_FILE_H

#include "train/checkpoint.h"

#define CHECKPOINT_PATH_BYTES 4096
/* Files in a folder that are looked at; many more than are kept. */
#define CHECKPOINT_STEPS_MAX 1024
/* What the weights' average is called. */
#define CHECKPOINT_AVERAGE "train.average"

/** Path of worker 0's file. @return out. */
const char *checkpoint_main_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step);

/** Path of a server's. @return out. */
const char *checkpoint_share_path(char out[CHECKPOINT_PATH_BYTES], const char *dir, uint64_t step,
                                  int i_server);

/** What a range of a state is called in a server's file: "optimizer.sgd.momentum@262144".
 *  @return memory of the arena. */
const char *checkpoint_range_name(const char *state, size_t first, struct weir_arena *arena);

/** Steps that have worker 0's file, newest first; of more than fit the newest. @return how many. */
size_t checkpoint_list_steps(const char *dir, uint64_t steps[CHECKPOINT_STEPS_MAX]);

/** Write a file: tensors and texts, atomically. Reads every byte for the digest. */
weir_status checkpoint_file_write(const char *path, const struct weir_safetensors_tensor *tensors,
                                  size_t n_tensors, const char *state, const char *identity,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Open a file and check every byte of it. @return CORRUPT if it is not as it was written. */
weir_status checkpoint_file_open(const char *path, struct weir_safetensors **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The text "weir.state" of worker 0's file. Numbers keep their bits. @return memory of the arena,
 *  NULL if there is none left. */
char *checkpoint_state_text(const struct train_state *state, int n_servers,
                            struct weir_arena *arena);

/** What checkpoint_state_text wrote. @param path  For the error. */
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
