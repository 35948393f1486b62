/** Inside of the proxy: what its parts share. */
#ifndef WEIR_PROXY_PRIVATE_H
#define WEIR_PROXY_PRIVATE_H

#include "proxy/exchange.h"

#define PROXY_ID_LEN 26

/** What is under way of one service; in a list of the proxy, under its lock. */
struct use {
    char *id, *project;
    int n;
    bool is_used; /* since the owner was told */
    int64_t noted_ms;
    struct use *next;
};

struct weir_proxy {
    struct weir_proxy_config config; /* strings owned */
    char *domain_host;               /* without the port; NULL: the path form */
    struct forwarder *forwarder;
    struct websockets *websockets;
    pthread_mutex_t lock;
    struct use *uses;
    int n_uses;
};

/** A request and where it goes; in the request's arena. */
struct visit {
    struct weir_proxy *proxy;
    struct weir_http_request *request;
    struct weir_http_response *response;
    struct proxy_place place;
    const char *target; /* As sent. */
    struct weir_proxy_shown shown;
    bool wants_page;
};

/* place.c: which service a request is for */
/** False: it was answered. */
bool visit_find_place(struct visit *visit);
/** Is it [a-z2-7], PROXY_ID_LEN of them? */
bool place_is_id(const char *text, size_t len);
void visit_answer_error(struct visit *visit, weir_status status, const char *message);

/* login.c: how a browser gets its cookie */
/** What the request shows. */
void visit_read_shown(struct visit *visit);
/** Nothing that counts was shown: send a person to log in, and tell a program. */
void visit_ask_login(struct visit *visit);
/** A request below RULES_RESERVED. */
void visit_answer_reserved(struct visit *visit, const char *rest);

#endif
