/**
 * Receipt: the identifier of a request that a version has answered, "DEPLOYMENT.VERSION.TIME.NUMBER.MAC".
 * It says which version answered and when, so nothing is kept of requests that nobody speaks of again, and
 * nothing is lost when the server is killed; the MAC, made with a key that only the server has, keeps
 * others from making one up. Pure; any thread.
 */
#ifndef WEIR_GATEWAY_RECEIPT_H
#define WEIR_GATEWAY_RECEIPT_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_RECEIPT_KEY_BYTES 32

/** The longest one's, with the end. */
#define WEIR_RECEIPT_BYTES 192

struct weir_receipt {
    char *deployment;
    int64_t version;
    int64_t time_ms; /**< When it was answered. */
    uint64_t number; /**< Drawn by lot: two requests have two. */
};

/** The deployment's name is 63 bytes at most. Cost: about 2 us. */
void weir_receipt_make(const unsigned char key[WEIR_RECEIPT_KEY_BYTES],
                       const struct weir_receipt *receipt, char out[WEIR_RECEIPT_BYTES]);

/** @return NOT_FOUND unless this server's key made it, whatever the text. */
weir_status weir_receipt_open(const unsigned char key[WEIR_RECEIPT_KEY_BYTES], const char *text,
                              struct weir_arena *arena, struct weir_receipt *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
