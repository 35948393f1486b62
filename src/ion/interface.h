/**
 * Interface: what a model version takes and gives, as far as its callers see it. What a version changes of
 * that is said at a push, at a deployment, and to the policies of a link that ends in a deployment. Pure.
 *
 * It is read from a signature (serve/signature.h): "inputs" and "outputs" with name, datatype and shape,
 * "picture", "output_kind", "labels". Of many labels only their number and sum are kept.
 *
 * A change is *compatible* if whoever calls the version before can call this one instead, and reads its
 * answers rightly:
 *
 * - each input is there with its datatype, takes each shape that it took, and none is new;
 * - each output is there with its datatype, number of dimensions, and sizes where both say them. A new one is
 *   compatible;
 * - each class keeps its number. Further ones behind them are compatible;
 * - pictures are taken if they were, and the first output is of the same kind.
 */
#ifndef WEIR_ION_INTERFACE_H
#define WEIR_ION_INTERFACE_H

#include "base/arena.h"

#include <stdbool.h>

#define WEIR_INTERFACE_LABELS_MAX 1000 /**< More are kept as their number and sum. */

/** The interface of a signature, both JSON; NULL if there is none, or it is none. In the arena. */
char *weir_interface_of(const char *signature, struct weir_arena *arena);

/**
 * What is another thing than before, in words: "its input x is FP32 [-1,8], before FP32 [-1,16]; …".
 *
 * @param before, now      Interfaces or signatures; NULL: not known.
 * @param out_is_compatible  NULL: nobody asks.
 * @return NULL if nothing is, or one of both is not known: then it is compatible, too.
 */
char *weir_interface_changes(const char *before, const char *now, struct weir_arena *arena,
                             bool *out_is_compatible);

#endif
