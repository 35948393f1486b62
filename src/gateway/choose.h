/**
 * Choose: which version answers a request, and which replica. Pure.
 *
 * A version is chosen by the request itself (it names one), else by its key, else by weight. A key
 * goes by weighted rendezvous hashing (Thaler and Ravishankar 1998; the weighted form is Schindelhauer
 * and Schomaker's of 2005): each version draws a number from the key, and the highest of
 * weight / -ln(number) wins. So a key keeps its version as long as the shares do. When they change, it
 * moves only to a version with a share that has grown in relation to that of the one it leaves; of two
 * versions exactly the difference of the shares moves.
 */
#ifndef WEIR_GATEWAY_CHOOSE_H
#define WEIR_GATEWAY_CHOOSE_H

#include "gateway/table.h"

#define CHOOSE_NONE (-1)

/**
 * The version for a request that names none.
 *
 * @param allowed  Bit i: versions[i] may be chosen.
 * @param key      What the choice sticks to; NULL: nothing, it goes by weight.
 * @param ticket   The number of the request: another one, another draw.
 * @return Place among the versions; CHOOSE_NONE if none that is allowed has a share.
 */
int choose_version(const struct weir_gateway_deployment *deployment, uint32_t allowed,
                   const char *key, uint64_t ticket);

/**
 * The replica with the least outstanding requests; equals take turns by ticket.
 *
 * @param n_outstanding  Of each replica; below 0: it may not be chosen.
 * @return Its place; CHOOSE_NONE.
 */
int choose_replica(const int32_t *n_outstanding, size_t n, uint64_t ticket);

#endif
