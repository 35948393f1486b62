/**
 * Hosts: lists of them in Slurm's notation, "gpu[01-03,7],login", as SLURM_JOB_NODELIST and squeue have them.
 *
 * Pure; any thread.
 */
#ifndef WEIR_BASE_HOSTS_H
#define WEIR_BASE_HOSTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** Room for a host's name with "user@" before it. */
#define WEIR_HOST_BYTES 256

/** Is it a name of letters, digits and "._-@" that does not begin with "-", and fits in WEIR_HOST_BYTES? */
bool weir_host_is_valid(const char *text, size_t len);

/** Called with a host of the list, in its order. What is not OK ends the reading: so does a caller that has no room. */
typedef weir_status (*weir_host_fn)(void *context, const char *host, struct weir_error *err);

/**
 * Read a list. A range can be long ("n[0-999999999]"): fn says how many are too many.
 * @return INVALID for what Slurm does not write and for names that are none; else what fn said.
 */
weir_status weir_hosts_read(const char *list, weir_host_fn fn, void *context,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** A decimal number of at most 9 digits at *at; -1 if there is none. Moves *at behind it. */
int weir_hosts_number(const char **at);

#endif
