/** The address at which a replica is reached: what it listens on, as others name it. Any thread. */
#ifndef WEIR_HOST_ADDRESS_H
#define WEIR_HOST_ADDRESS_H

#define WEIR_HOST_URL_BYTES 320

/**
 * "http://HOST:PORT". Where it listens on all addresses, HOST is the one by which this machine reaches the server, or
 * loopback's without a way to it. It is looked up again by each call: which way leads to the server may change. No packet is
 * sent, but a name of the server's is resolved.
 * @param listen  "HOST:PORT", "PORT" or ":PORT", as it was told.
 * @param port    What it listens on.
 * @param server  "http://HOST:PORT".
 */
void weir_host_url(const char *listen, int port, const char *server, char out[WEIR_HOST_URL_BYTES]);

#endif
