/**
 * Quantities as people write them: memory ("16GiB", "512M", "80 GB"), time ("5ms", "90s", "2h") and
 * processors ("2", "0.5", "500m"), which are thousandths of one inside.
 *
 * Pure; any thread.
 */
#ifndef WEIR_BASE_QUANTITY_H
#define WEIR_BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Bytes: a number with B, kB, MB, GB, TB (of 1000) or K, M, G, T, KiB, MiB, GiB, TiB (of 1024), or
 * with none: bytes. Case of the first letter does not matter where it says the same.
 * @return False, and *out untouched, for any other text, and for more than 2^60.
 */
bool weir_bytes_parse(const char *text, int64_t *out);

/** Milliseconds: a number with ms, s, m, h or d, or with none: seconds. False as above. */
bool weir_span_parse(const char *text, int64_t *out_ms);

/**
 * Thousandths of a processor: a number of processors with at most three decimals, or of thousandths
 * with "m". @return False as above, and for a finer part.
 */
bool weir_cpus_parse(const char *text, int64_t *out_millis);

/** So many processors, rounded up: threads of a program, whole processors to those who know no parts.
 *  0 stays 0. */
int64_t weir_cpus_whole(int64_t millis);

#endif
