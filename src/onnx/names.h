/** Names: numbers for names, from 0 on, in the order in which they are added. */
#ifndef WEIR_ONNX_NAMES_H
#define WEIR_ONNX_NAMES_H

#include "base/arena.h"

#include <stdbool.h>

struct onnx_names {
    const char **names; /* By number. */
    size_t n, most;
    int32_t *slots; /* Open addressing: a number, or -1. */
    size_t n_slots; /* A power of two. */
};

/** Room for `most` names, in the arena. */
struct onnx_names onnx_names_make(struct weir_arena *arena, size_t most);

/** Adds a name, which is borrowed. False: it is there, or there is no room. */
bool onnx_names_add(struct onnx_names *names, const char *name, int32_t *out_number);

/** The name's number, or -1. */
int32_t onnx_names_find(const struct onnx_names *names, const char *name);

#endif
