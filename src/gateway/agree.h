/**
 * Agree: do two versions' answers to one request say the same? Pure.
 *
 * Two numbers say the same within 1e-3 of the larger one, or of 1. Two rows of numbers (the innermost
 * arrays, or the last dimension of a binary tensor) also do if their largest stands at the same place:
 * a classifier that was trained again is never equal, but may well decide alike. Only the first of
 * "labels" counts. What names the request or the version is left out. Two that refuse the request (4xx) say the
 * same, whatever they say of it.
 */
#ifndef WEIR_GATEWAY_AGREE_H
#define WEIR_GATEWAY_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agree_answer {
    int http_status;
    const char *body;
    size_t len;
    int64_t header_bytes; /**< The JSON before binary tensors; -1: it is all JSON. */
};

/** The request is none that the version takes. */
bool agree_is_refusal(const struct agree_answer *answer);

bool agree(const struct agree_answer *a, const struct agree_answer *b);

#endif
