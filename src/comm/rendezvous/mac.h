/**
 * Message authentication codes (MACs): both sides show that they know the job's secret without
 * sending it.
 *
 * The MAC is HMAC-SHA512-256 (libsodium's crypto_auth; RFC 2104) over both sides' nonces and every
 * claimed field, compared in constant time. Each connection then has its own key. Each later frame
 * carries a MAC over its number, direction and content, so that frames cannot be forged, repeated
 * or taken from another connection.
 */
#ifndef WEIR_COMM_MAC_H
#define WEIR_COMM_MAC_H

#include "comm/rendezvous/wire.h"

#define MAC_KEY_BYTES 32

struct mac_key {
    uint8_t bytes[MAC_KEY_BYTES];
};

/** The key of a secret text. @return UNAVAILABLE if libsodium cannot start. */
weir_status mac_key_from_secret(const char *secret, struct mac_key *out) WEIR_MUST_CHECK;

/** The key of one connection. */
void mac_key_for_connection(const struct mac_key *key, const uint8_t server_nonce[],
                            const uint8_t client_nonce[], struct mac_key *out);

/** The client's MAC, over the server's nonce and all fields of its JOIN message. */
void mac_of_join(const struct mac_key *key, const uint8_t server_nonce[],
                 const struct wire_join *join, uint8_t out[WIRE_MAC_BYTES]);

/** The server's MAC for that client. */
void mac_of_accept(const struct mac_key *key, const uint8_t server_nonce[],
                   const uint8_t client_nonce[], uint8_t out[WIRE_MAC_BYTES]);

/** The MAC of frame number `counter`; is_server says which side sends. */
void mac_of_frame(const struct mac_key *connection_key, bool is_server, uint64_t counter,
                  enum wire_type type, const void *body, size_t len, uint8_t out[WIRE_MAC_BYTES]);

/** Compare in constant time. */
bool mac_is_equal(const uint8_t a[WIRE_MAC_BYTES], const uint8_t b[WIRE_MAC_BYTES]);

#endif
