/**
 * Differed: the newest requests to which a mirrored version answered otherwise than the version that
 * answered, with the beginning of both answers. In memory only: gone with the version's figures, and with
 * the server. The requests themselves, and pictures in them, are not kept.
 *
 * Threads: one adds at a time, any may look.
 */
#ifndef WEIR_GATEWAY_DIFFERED_H
#define WEIR_GATEWAY_DIFFERED_H

#include "gateway/agree.h"

#include <pthread.h>

#define DIFFERED_MAX          50 /* a version's */
#define DIFFERED_ANSWER_BYTES 512
#define DIFFERED_ID_BYTES     128

struct weir_gateway;

/** One request. Texts are UTF-8, valid until the function that was given them returns. */
struct weir_gateway_differed {
    int64_t time_ms;
    int64_t version, live_version; /**< Mirrored; the one that answered. */
    const char *id;                /**< "id" of the request, as the answer has it; NULL: none. */
    const char *answer, *live_answer;
    int http_status, live_http_status;
};

typedef void (*weir_gateway_differed_fn)(void *context, const struct weir_gateway_differed *one);

/** Call `fn` for those of a deployment, version by version, the newest of each first. It must not call
 *  the gateway. Any thread. */
void weir_gateway_differed_each(struct weir_gateway *gateway, const char *deployment,
                                weir_gateway_differed_fn fn, void *context);

/** Inside of the figures. */
struct differed_kept {
    int64_t time_ms, live_version;
    int http_status, live_http_status;
    char id[DIFFERED_ID_BYTES + 1];
    char answer[DIFFERED_ANSWER_BYTES + 1], live_answer[DIFFERED_ANSWER_BYTES + 1];
};

struct differed {
    pthread_mutex_t lock;
    struct differed_kept *items; /**< A ring; NULL before the first. */
    int64_t n_added;
};

void differed_init(struct differed *differed);
void differed_fini(struct differed *differed);

/** Cost: the parse of an answer's JSON, and a copy of its beginning. */
void differed_add(struct differed *differed, int64_t time_ms, int64_t live_version,
                  const struct agree_answer *live, const struct agree_answer *answer);

/** The newest first, each with this version. */
void differed_each(struct differed *differed, int64_t version, weir_gateway_differed_fn fn,
                   void *context);

#endif
