/**
 * Rendezvous: how the ranks of a gang learn of each other before their programs start. Each rank that
 * others must know finds its own address and a free port and leaves them on the job's board
 * (job/board.h); each waits for those that it must know; then the texts of its definition are
 * filled in, and become variables and files of the program, or words before it:
 *
 *     "meet": {"size": 4, "wait": 1,
 *              "env": {"MASTER_ADDR": "{{0|@address}}", "MASTER_PORT": "{{0|@port}}"},
 *              "files": {"hosts": "{{0-3|@address slots=1\n}}"}, "launcher": ["run", "{{0|@address}}"]}
 *
 * "wait" is how many ranks from 0 on must have come: they are those who leave their address, and
 * the ones that a text may name. What framework the texts are for, only the server knows.
 *
 * The address of a rank is the one that its agent was given, by number, network or interface (weir agent --address), else the one from which
 * its node reaches the server. The port is free when it is looked for, and not kept: a program that
 * takes it before the rank's own does makes that one fail, and the gang start again.
 */
#ifndef WEIR_AGENT_RENDEZVOUS_H
#define WEIR_AGENT_RENDEZVOUS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define RENDEZVOUS_PATIENCE_MS   ((int64_t)300 * 1000)
#define RENDEZVOUS_MEMBERS_MAX   1024
#define RENDEZVOUS_ADDRESS_BYTES 64
#define RENDEZVOUS_TEXT_MAX      ((size_t)1 << 20) /* one filled-in text */

struct rendezvous_member {
    char address[RENDEZVOUS_ADDRESS_BYTES]; /**< A number, of IPv4 or IPv6: no name. */
    int port;
    char node[64];
};

/** What texts are filled in with. */
struct rendezvous_known {
    const struct rendezvous_member *members;
    size_t n_members;
    const char *interface, *address; /**< This rank's own. */
    int64_t n_restarts;
};

/**
 * Fill in a text. {{RANKS|ITEM|SEPARATOR}}: for each of the ranks, "3" or "0-3", the item, in which
 * @address, @port, @rank and @node stand for those of the rank; separators between them.
 * {{address}}: this rank's own; {{interface}}: the network interface that has this rank's own address; {{restarts}}: how often
 * the task was started before. Pure.
 * @param out  In the arena.
 * @return INVALID for what is no such text, or names a rank that is not among the members; LIMIT
 *         for a result of more than RENDEZVOUS_TEXT_MAX.
 */
weir_status rendezvous_fill(const char *text, const struct rendezvous_known *known,
                            struct weir_arena *arena, char **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** What a rank leaves on the board, and reading it; INVALID if it is not of that form. */
json_t *rendezvous_member_write(const struct rendezvous_member *member);
weir_status rendezvous_member_read(const char *text, struct rendezvous_member *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The key of a rank on the board. */
#define RENDEZVOUS_KEY_BYTES 16
const char *rendezvous_key(char out[RENDEZVOUS_KEY_BYTES], int64_t rank);

/**
 * The address from which this machine reaches a server, as a number. Where that is its own, by
 * loopback, the one from which it would reach strangers, if it has a way to them.
 * @param server  "http://HOST:PORT".
 * @return INVALID, or IO if there is no way to it.
 */
weir_status rendezvous_own_address(const char *server, char out[RENDEZVOUS_ADDRESS_BYTES],
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The same, even if it is one of loopback: what that server itself reaches this machine by. */
weir_status rendezvous_address_to(const char *server, char out[RENDEZVOUS_ADDRESS_BYTES],
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Longest "ADDRESS/LENGTH". */
#define RENDEZVOUS_NETWORK_BYTES (RENDEZVOUS_ADDRESS_BYTES + 4)

/**
 * The address of this machine that a setting means: "10.1.0.7", itself, whether the machine has it or not;
 * "10.1.0.0/16" or "fd00::/8", the first that lies in that network; "ib0", the first of that interface, of IPv4
 * if it has one. Addresses of a link alone (fe80::/10) are none.
 * @return INVALID for what is no such setting; NOT_FOUND, with the addresses that there are, if there is none.
 */
weir_status rendezvous_address_by(const char *setting, char out[RENDEZVOUS_ADDRESS_BYTES],
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Is it such a setting? The machine is not asked. @return INVALID. */
weir_status rendezvous_setting_check(const char *setting, struct weir_error *err) WEIR_MUST_CHECK;

/** Is it an address of loopback, which other machines cannot reach? */
bool rendezvous_is_local(const char *address);

/** The interface that has this address, "" if none has. */
void rendezvous_interface(const char *address, char *out, size_t size);

/** A port of this machine that nobody listens on now, outside of those that the system gives to
 *  connections; 0: none was found. */
int rendezvous_free_port(void);

#endif
