/** Where rank 0 listens: rendezvous URLs, the file that publishes an address, sockets. */
#ifndef WEIR_COMM_ADDRESS_H
#define WEIR_COMM_ADDRESS_H

#include "base/buf.h"
#include "comm/rendezvous/wire.h"

enum {
    ADDRESS_MAX = 32,
    ADDRESS_TEXT_BYTES = 300,
    ADDRESS_HOST_BYTES = 46, /**< INET6_ADDRSTRLEN */
    BOOT_ID_BYTES = 40
};

/** A parsed rendezvous: a file to publish in, or a host and port. */
struct address_rendezvous {
    bool is_file;
    char path[4096]; /**< dir/rendezvous-<job_id>-<attempt> */
    char host[256];
    char port[16];
};

/** What rank 0 publishes: its instance, its host, and the addresses at which it can be reached; or
 *  that the group which it led has done its work. */
struct address_notice {
    bool is_over; /**< The other fields are empty then. */
    uint8_t instance[WIRE_NONCE_BYTES];
    char boot_id[BOOT_ID_BYTES];
    int n_addresses;
    char addresses[ADDRESS_MAX][ADDRESS_TEXT_BYTES]; /**< "host:port" or "[v6]:port" */
};

/** Parse "file:///dir" or "tcp://host:port". @return INVALID with a sentence. */
weir_status address_rendezvous_parse(const char *url, const char *job_id, int attempt,
                                     struct address_rendezvous *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Split "host:port" or "[v6]:port". */
weir_status address_split(const char *text, char *host, size_t host_size, char *port,
                          size_t port_size) WEIR_MUST_CHECK;

/** The kernel's identifier of this boot: equal for all processes of a host. */
void address_boot_id(char out[BOOT_ID_BYTES]);

/** Listen: for a file rendezvous on a port that the kernel chooses, on all interfaces. */
weir_status address_listen(const struct address_rendezvous *where, int *out_fd,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Fill in the notice's addresses: this host's, each with the port of the listening socket. */
weir_status address_list_own(int listen_fd, struct address_notice *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Does "host:port" lead nowhere but to its own host? */
bool address_is_loopback(const char *text);

/** This side's address of a connected socket; false if it has none. */
bool address_of_socket(int fd, char out_host[ADDRESS_HOST_BYTES]);

/** Most bytes of a notice's text. */
enum { ADDRESS_NOTICE_MAX_BYTES = 16384 };

/** Append the notice's text; buf->status tells whether that worked. */
void address_notice_write(const struct address_notice *notice, struct weir_buf *buf);
/** The reverse. @return CORRUPT for anything else than such a text. */
weir_status address_notice_parse(const char *text, size_t len,
                                 struct address_notice *out) WEIR_MUST_CHECK;

/** Connect to "host:port". @return PEER if nothing listens there; TIMEOUT. */
weir_status address_connect(const char *text, uint64_t deadline_ns, int *out_fd,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
