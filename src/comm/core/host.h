/** Who can share memory with whom. */
#ifndef WEIR_COMM_HOST_H
#define WEIR_COMM_HOST_H

#include "comm/rendezvous/address.h"

#define COMM_HOST_ID_BYTES 128

/**
 * Processes with the same text can share memory and watch each other: same boot of the same kernel,
 * same user and pid namespace, same user id.
 */
void comm_host_id(char out[COMM_HOST_ID_BYTES]);

/** CPU cores this process may run on, at least 1. */
int comm_n_cores(void);

#endif
