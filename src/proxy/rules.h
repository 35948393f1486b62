/**
 * Rules: what of a request a service gets to see, and what of its answer a browser does. Pure.
 *
 * A *place* is where a service is: the host and the path under which browsers know it, and the path
 * that its program knows. Everything here may come from an attacker: a header, a cookie, a redirect.
 * Text is made in the arena; what is not allowed is left out, or NULL.
 */
#ifndef WEIR_PROXY_RULES_H
#define WEIR_PROXY_RULES_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_COOKIE_MAX_BYTES 4096
#define RULES_COOKIES_MAX      32  /* that one answer may set */
#define RULES_HEADERS_MAX      128 /* of an answer */
#define RULES_HEAD_MAX_BYTES   ((size_t)32 << 10)

/** The reserved folder of a place, below its path: never forwarded. */
#define RULES_RESERVED ".weir/"

struct proxy_place {
    const char *id;    /**< [a-z0-9]: a part of cookies' names. */
    const char *host;  /**< As the browser names it, with the port: "weir.example:8441". */
    const char *path;  /**< For browsers: begins and ends with "/". */
    const char *inner; /**< The same for the program: "/" or `path`. */
    bool is_tls;
};

/** What the program is asked for: a target of the place, "/services/ID/a?b", as "/a?b". NULL: it is none
 *  of the place's, or holds what is no target. */
char *rules_target(const struct proxy_place *place, const char *target, struct weir_arena *arena);

/** What a request says of its maker; NULL: the header is not there. */
struct rules_source {
    const char *method, *origin, *site, *mode, *dest; /**< Origin, Sec-Fetch-Site, -Mode, -Dest. */
    bool is_upgrade;
    bool has_cookie; /**< It shows a cookie, which browsers send on their own. */
};

/**
 * May this request go on? Another site's page must neither change anything nor read it, and a service's
 * page is another site to every other service. A page may link to it.
 * @return DENIED with what is wrong.
 */
weir_status rules_check_source(const struct proxy_place *place, const struct rules_source *source,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is a header of a request forwarded as it is? `named`: the value of its Connection header, or NULL,
 *  which names others that are not. */
bool rules_request_header(const char *name, const char *named);

/** The Cookie header for the program: its own cookies, under the names that it gave them. NULL: none. */
char *rules_cookies_inward(const struct proxy_place *place, const char *value,
                           struct weir_arena *arena);

/** A Set-Cookie of the program for the browser: under a name that is only the service's, for no more
 *  than its path. NULL: refused. */
char *rules_cookie_outward(const struct proxy_place *place, const char *value,
                           struct weir_arena *arena);

/** Is a header of an answer forwarded as it is? `named` as above. Set-Cookie and Location are not. */
bool rules_response_header(const char *name, const char *named);

/** A Location of the program for the browser. NULL: refused. */
char *rules_location_outward(const struct proxy_place *place, const char *value,
                             struct weir_arena *arena);

/** Is it a path of the place where a browser may go on after it has logged in? */
bool rules_is_next(const struct proxy_place *place, const char *next);

/** Is it Sec-WebSocket-Key: 16 bytes in base64? */
bool rules_is_websocket_key(const char *key);

/** Is `token` in a list with commas, without case? */
bool rules_has_token(const char *list, const char *token);

struct rules_header {
    const char *name, *value;
};

/** The head of an answer. */
struct rules_head {
    int http_status;
    struct rules_header *headers;
    size_t n_headers;
};

/** Read "Name: value", without its line end. False: it is none. */
bool rules_read_header(const char *line, size_t len, struct weir_arena *arena,
                       struct rules_header *out);

/**
 * Read a head that ends with an empty line.
 * @param out_len  Its bytes, with the empty line.
 * @return END: it is not whole yet; LIMIT: longer than RULES_HEAD_MAX_BYTES, or too many headers;
 *         CORRUPT: no head of HTTP/1.
 */
weir_status rules_read_head(const char *bytes, size_t len, struct weir_arena *arena,
                            struct rules_head *out, size_t *out_len) WEIR_MUST_CHECK;

/** The value of the first header of this name; NULL: none. */
const char *rules_head_value(const struct rules_head *head, const char *name);

#endif
