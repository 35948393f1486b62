/**
 * Proxy: brings browsers to the programs of jobs that have a port: notebooks, TensorBoard, any service.
 *
 * Three nouns. A *service* is a job with a port and a name in addresses (its id, 128 random bits). A
 * *place* is where browsers find it, on a listener of its own: at the path /services/ID/ of that
 * listener or, with a services domain, at the host ID.DOMAIN. A *login* is a cookie of that place, got
 * with a one-time ticket that the console's own origin hands over. The proxy asks its owner for the caller
 * and where the service is (find), and forwards: HTTP by libcurl, bodies streamed both ways; WebSockets
 * as bytes.
 *
 *     browser ─▸ http (own listener) ─▸ proxy ─▸ tunnel of the task's node (agent/tunnel.h) ─▸ program
 *
 * What is trusted: the console's origin, the server, the agent. What is not: the program and its pages
 * (anybody's code), other services, other sites, anybody who connects to the listener or to a node.
 *
 *   a page of a service acts in the console     other origin (port or host), session cookies
 *                                               SameSite=Strict, changes need the CSRF header
 *   a program learns a secret of Weir           Authorization and every cookie but its own are dropped;
 *                                               X-Forwarded-…, X-Weir-… come from here alone
 *   a program sets a cookie for Weir or others  new name, own path, no Domain (rules.h)
 *   a program speaks for the host               HSTS, Clear-Site-Data, Service-Worker-Allowed, … dropped
 *   another site's page uses a login            SameSite=Lax, Origin and Sec-Fetch-Site are checked;
 *                                               WebSockets must show the place's own Origin
 *   a page sets a second cookie of Weir's name  two that differ count as none (http); with hosts over
 *                                               TLS the name begins with __Host-
 *   another tenant guesses an id                128 random bits; 404 as if there were none
 *   a request that two read as two different    refused by http (two lengths, odd names); each is made
 *                                               again here, with one length or chunks
 *   an upgrade to something else                only WebSocket, only after the program's own 101
 *   a ticket is seen by others                  good once, 60 s, for one service, and only in the browser
 *                                               that asked; one of the command line or the console's
 *                                               button, which no browser asked for, in any
 *   slow or endless clients and programs        bounded pipes, both sides cut (http/stream.h, relay.h)
 *   one service takes all connections           bounds by service, by project, and of all
 *   strangers reach the program on its node     the tunnel shows nobody in without the service's secret;
 *                                               but anybody with a job on the node reaches the program's port
 *                                               beside the tunnel, with an X-Weir-User of their choice: a
 *                                               program that believes it checks X-Weir-Secret, which
 *                                               is WEIR_SERVICE_SECRET of its environment
 *
 * What the path form cannot do: to a browser, two services of one listener are one origin. A page of one
 * can act as the person who opened both in the other, if it learns that one's id. An operator who runs programs of
 * several teams, or lets people run what they did not write, gives --services-domain, best a domain that
 * is used for nothing else. In the path form a page can also fill the browser's store of cookies for the
 * host until it forgets the console's, which logs the person out. Not promised by either form: that a
 * service's page is honest (it may show a password field), and encryption between server and node.
 *
 * Bounds: see PROXY_… ; at each of them a request gets 503 and Retry-After.
 */
#ifndef WEIR_PROXY_PROXY_H
#define WEIR_PROXY_PROXY_H

#include "base/arena.h"
#include "base/status.h"
#include "http/http.h"

#define PROXY_OF_SERVICE_MAX 128 /**< Requests and WebSockets under way, of one service. */
#define PROXY_OF_PROJECT_MAX 512
#define PROXY_MAX            2048
#define PROXY_CONNECT_MS     5000
#define PROXY_HEAD_MS        (10 * 60 * 1000) /**< From a request to the head of its answer. */
#define PROXY_USE_NOTED_MS   10000
#define PROXY_TICKET_MS      60000
#define PROXY_COOKIE_BYTES   256

struct weir_proxy;

/** A service, as far as it is to be reached. Text lies in the arena of the call. */
struct weir_proxy_service {
    const char *id, *project;
    const char *user;       /**< Who calls. */
    const char *address;    /**< Of the tunnel: "10.0.0.7:40123", "[::1]:40123"; NULL: not yet. */
    const char *secret;     /**< What the tunnel demands. */
    const char *credential; /**< Value of an Authorization header that its program demands; NULL. */
    const char *message;    /**< Why there is no address: "it waits for a node". */
    bool is_ended;          /**< It does not run, and will not by itself. */
    bool keeps_path;        /**< Its program knows WEIR_SERVICE_PATH, and wants it in requests. */
};

/** What a caller shows; NULL: not that. */
struct weir_proxy_shown {
    const char *login; /**< The cookie of the place. */
    const char *token; /**< "Authorization: Bearer". */
};

/**
 * The owner's side. Called on handler threads of the services' listener; may read the database.
 *
 * find    UNAUTH: nothing that counts was shown; NOT_FOUND: there is no such service, or it is not this
 *         caller's to see.
 * keeps   Does the program of this id know its path? Also for callers that are not known: it decides how
 *         a place's path is read. False if there is no such service.
 * enter   A ticket, and the digest of the nonce that this browser was given ("" if none), for a login
 *         (PROXY_COOKIE_BYTES). UNAUTH: the ticket is none, or was used.
 * used    Somebody uses the service; at most every PROXY_USE_NOTED_MS. On a thread of the proxy.
 */
struct weir_proxy_ops {
    weir_status (*find)(void *context, const char *id, const struct weir_proxy_shown *shown,
                        struct weir_arena *arena, struct weir_proxy_service *out,
                        struct weir_error *err);
    bool (*keeps)(void *context, const char *id);
    weir_status (*enter)(void *context, const char *id, const char *ticket, const char *nonce,
                         struct weir_arena *arena, const char **out_login, struct weir_error *err);
    void (*used)(void *context, const char *id);
};

struct weir_proxy_config {
    const struct weir_proxy_ops *ops; /**< Borrowed. */
    void *context;
    const char *domain; /**< "services.example" or "services.example:443"; NULL: the path form. */
    const char *console_url; /**< Where people log in; NULL: on the same host, at console_port. */
    int console_port;
};

weir_status weir_proxy_create(const struct weir_proxy_config *config, struct weir_proxy **out,
                              struct weir_error *err) WEIR_MUST_CHECK;
/** Everything under way ends; before the HTTP server stops. NULL is accepted, here and below. */
void weir_proxy_stop(struct weir_proxy *proxy);
void weir_proxy_destroy(struct weir_proxy *proxy);

/** For weir_http_config, with has_upgrades; the context is the proxy. */
void weir_proxy_handle(void *proxy, struct weir_http_request *request,
                       struct weir_http_response *response);
void weir_proxy_body_rule(void *proxy, const struct weir_http_request *request,
                          struct weir_http_body_rule *rule);
void weir_proxy_admit(void *proxy, struct weir_http_request *request,
                      struct weir_http_response *response);

/** Is it a host with or without a port, and nothing else: no user, path or blank? */
bool weir_proxy_is_host(const char *text);

/**
 * The address of a place: where a person is sent.
 *
 * @param host  As the person's browser names the console, "weir.example:8440"; used in the path form.
 * @param port  Of the services' listener.
 */
char *weir_proxy_url(const char *domain, bool is_tls, const char *host, int port, const char *id,
                     bool keeps_path, struct weir_arena *arena);

#endif
