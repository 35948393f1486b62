/**
 * Hash: FNV-1a with 64 bits (Fowler, Noll and Vo). For tables, for streams of random numbers
 * and for names that follow from others.
 *
 * It is fast for short texts, and the same on every machine and in every version. It is no protection
 * against a person who chooses the input, and its low bits are weak: a table of 2^n buckets mixes the
 * upper half in first (hash ^ hash >> 32).
 */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/** The hash of nothing: where a hash begins. */
#define WEIR_HASH_BEGIN 0xcbf29ce484222325u

/** The hash of what `hash` stands for, followed by `len` bytes. Pure. */
uint64_t weir_hash_bytes(uint64_t hash, const void *bytes, size_t len);

/** The same for a text, without its end. */
uint64_t weir_hash_text(uint64_t hash, const char *text);

#endif
