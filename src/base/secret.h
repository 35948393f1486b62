/**
 * Secrets inside JSON values: the password in a job's environment, the token of a source.
 *
 * A record table names where they lie (struct weir_field, `secrets`) as paths with blanks between
 * them: "env.* source.token". "*" is any member or element. What leaves the server has
 * WEIR_SECRET_MASK in their place, and keeps the keys. What comes back with masks gets the stored
 * values again, so that a document can be fetched, edited and applied.
 */
#ifndef WEIR_BASE_SECRET_H
#define WEIR_BASE_SECRET_H

#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

/** Stands for a value that is not shown. It can itself be no secret. */
#define WEIR_SECRET_MASK "***"

/** Put the mask in place of every value at the paths; null stays null. NULL paths: no change. */
void weir_secrets_mask(json_t *value, const char *paths);

/** Is there a mask at one of the paths? */
bool weir_secrets_are_masked(const json_t *value, const char *paths);

/**
 * Put what `stored` has at the same place where `value` has a mask. Members are found by key,
 * elements of arrays by their member "name", else by number.
 *
 * @param place   Where value lies, for the message: "$".
 * @param stored  NULL: nothing is stored.
 * @return INVALID with the place of the first mask for which nothing is stored; the masks before it
 *         are replaced.
 */
weir_status weir_secrets_restore(json_t *value, const json_t *stored, const char *paths,
                                 const char *place, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What a service's program checks that a request came through its tunnel: X-Weir-Secret of the request is
 * WEIR_SERVICE_SECRET of its environment. Made of the service's secret, which it does not tell.
 * out: 64 digits and a NUL.
 */
void weir_secret_of_visits(const char *service_secret, char out[65]);

#endif
