/** Which processes can share memory, and how many cores there are. */
#ifndef WEIR_COMM_HOST_H
#define WEIR_COMM_HOST_H

#include "comm/rendezvous/address.h"

#define COMM_HOST_ID_BYTES 128

/**
 * An identifier of this process' host. Processes with the same one can share memory and watch each
 * other: same boot of the same kernel, same user and pid namespace, same user id.
 */
void comm_host_id(char out[COMM_HOST_ID_BYTES]);

/** CPU cores that this process may run on, at least 1. */
int comm_n_cores(void);

#endif
