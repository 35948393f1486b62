#include "api/auth/audit.h"

#include "api/core/call.h"
#include "api/core/sender.h"

#include "base/hash.h"
#include "base/log.h"
#include "job/attempt.h"
#include "store/event.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64 /* of users and addresses; longer ones are cut */
#define ID_BYTES   40 /* of tokens: UUIDs */

/** Refusals of one actor from one address within a minute. */
struct window {
    char kind[NAME_BYTES], actor[NAME_BYTES], address[NAME_BYTES];
    char claimed[NAME_BYTES]; /**< Whose password was given; "": nobody's. */
    int64_t began_ms;         /**< 0: free. */
    int64_t n_more;           /**< After the first, which was written. */
};

struct use {
    char token[ID_BYTES], address[NAME_BYTES];
};

struct audit {
    struct weir_store *store;
    pthread_mutex_t lock;
    struct window windows[AUDIT_WINDOWS];
    struct window others; /**< All for whom there is no window. */
    struct use uses[AUDIT_USES_KEPT];
    size_t i_use; /**< The oldest, which is replaced next. */
    uint64_t flows
        [AUDIT_USES_KEPT]; /**< Hashes of method, actor, address and subject, in this minute. */
    size_t n_flows;
    int64_t flows_minute;
    int64_t uses_minute;
    int n_uses; /**< Written in that minute. */
};

struct audit *audit_create(struct weir_store *store)
{
    struct audit *audit = weir_xalloc(sizeof *audit);
    audit->store = store;
    (void)pthread_mutex_init(&audit->lock, NULL);
    return audit;
}

void audit_destroy(struct audit *audit, int64_t now_ms)
{
    if (audit == NULL) {
        return;
    }
    audit_flush(audit, now_ms + AUDIT_WINDOW_MS);
    (void)pthread_mutex_destroy(&audit->lock);
    free(audit);
}

/* ---- writing --------------------------------------------------------------------------------- */

static weir_status append(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_event_append(txn, context, NULL, err);
}

/* One event in a transaction of its own. An audit that cannot be written stops nobody. */
static void write_event(struct audit *audit, const struct weir_event *event)
{
    struct weir_error err;
    if (weir_store_write(audit->store, append, (void *)event, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "audit_not_written", WEIR_KV_STR("kind", event->kind),
                 WEIR_KV_STR("error", err.message));
    }
}

/* Who a task works for; NULL: it is none. */
static const char *sender_of(const struct api_call *call)
{
    return call->attempt == NULL                                ? NULL
           : call->sender != NULL && call->sender->name != NULL ? call->sender->name
                                                                : call->attempt->created_by;
}

/* {"address", "token", "session"}: by what the actor was known; of a task also its job, and for whom. */
static char *data_of(const struct api_call *call, struct weir_arena *arena)
{
    const struct weir_attempt *attempt = call->attempt;
    json_t *data = json_pack("{s:s?,s:s?,s:s?,s:s?,s:s?,s:s?}", "address", call->request->remote,
                             "token", call->identity.token, "session", call->identity.session,
                             "task", attempt != NULL ? attempt->task : NULL, "job",
                             attempt != NULL ? attempt->job : NULL, "created_by", sender_of(call));
    char *text = data != NULL ? weir_json_text(data, arena) : NULL;
    json_decref(data);
    return text;
}

weir_status audit_act(struct api_call *call, struct weir_txn *txn, const char *kind,
                      const char *subject, const char *message, struct weir_error *err)
{
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = AUDIT_TOPIC,
        .kind = (char *)kind,
        .subject = (char *)subject,
        .actor = (char *)call->actor,
        .message =
            weir_arena_printf(call->arena, "%s, by %s%s%s from %s.", message, call->actor,
                              call->attempt != NULL ? " of a job of " : "",
                              call->attempt != NULL ? sender_of(call) : "", call->request->remote),
        .data = data_of(call, call->arena),
    };
    call->is_audited = true;
    return weir_event_append(txn, &event, NULL, err);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void write_count(struct audit *audit, const struct window *window)
{
    bool has_claim = window->claimed[0] != '\0';
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    json_t *data =
        json_pack("{s:s,s:I}", "address", window->address, "count", (json_int_t)window->n_more);
    const struct weir_event event = {
        .time_ms = window->began_ms + AUDIT_WINDOW_MS,
        .topic = AUDIT_TOPIC,
        .kind = (char *)window->kind,
        .subject =
            weir_arena_printf(&arena, "user/%s", has_claim ? window->claimed : window->actor),
        .actor = (char *)window->actor,
        .message = weir_arena_printf(&arena, "%lld more %s%s from %s were refused.",
                                     (long long)window->n_more,
                                     has_claim ? "passwords for " : "requests of ",
                                     has_claim ? window->claimed : window->actor, window->address),
        .data = data != NULL ? weir_json_text(data, &arena) : NULL,
    };
    write_event(audit, &event);
    json_decref(data);
    weir_arena_fini(&arena);
}

/* Of a login the path, which says by which kind; else the route, without whatever names stand in it. */
static const char *place_of(const struct api_call *call)
{
    const struct weir_route *route = call->route;
    return route == NULL                                ? "a request"
           : strncmp(route->pattern, "/login/", 7) == 0 ? call->request->path
                                                        : route->pattern;
}

static void write_first(struct audit *audit, const struct api_call *call, const char *kind,
                        const char *why)
{
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = AUDIT_TOPIC,
        .kind = (char *)kind,
        .subject =
            weir_arena_printf(call->arena, "user/%s",
                              call->guessed.claimed != NULL ? call->guessed.claimed : call->actor),
        .actor = (char *)call->actor,
        .message = weir_arena_printf(
            call->arena, "%.10s %.80s of %s%s%s from %s was refused: %s.", call->request->method,
            place_of(call), call->actor, call->guessed.claimed != NULL ? " who claims to be " : "",
            call->guessed.claimed != NULL ? call->guessed.claimed : "", call->request->remote, why),
        .data = data_of(call, call->arena),
    };
    write_event(audit, &event);
}

static bool is_over(const struct window *window, int64_t now_ms)
{
    /* A clock that was set back must not keep a window open for long. */
    return now_ms - window->began_ms >= AUDIT_WINDOW_MS || now_ms < window->began_ms;
}

/* Take what is over out of a window: true if there is something to write. */
static bool take(struct window *window, int64_t now_ms, struct window *out)
{
    if (window->began_ms == 0 || !is_over(window, now_ms)) {
        return false;
    }
    *out = *window;
    window->began_ms = 0;
    window->n_more = 0;
    return out->n_more > 0;
}

void audit_flush(struct audit *audit, int64_t now_ms)
{
    for (size_t i = 0; i <= AUDIT_WINDOWS; i++) {
        struct window done;
        pthread_mutex_lock(&audit->lock);
        bool has_count =
            take(i < AUDIT_WINDOWS ? &audit->windows[i] : &audit->others, now_ms, &done);
        pthread_mutex_unlock(&audit->lock);
        if (has_count) {
            write_count(audit, &done);
        }
    }
}

static bool is_of(const struct window *window, const struct window *wanted)
{
    return window->began_ms != 0 && strcmp(window->kind, wanted->kind) == 0 &&
           strcmp(window->actor, wanted->actor) == 0 &&
           strcmp(window->claimed, wanted->claimed) == 0 &&
           strcmp(window->address, wanted->address) == 0;
}

/* The window of these refusals, a free one, or that of all others. The lock is held. */
static struct window *find_window(struct audit *audit, const struct window *wanted)
{
    struct window *free_one = NULL;
    for (size_t i = 0; i < AUDIT_WINDOWS; i++) {
        if (is_of(&audit->windows[i], wanted)) {
            return &audit->windows[i];
        }
        if (audit->windows[i].began_ms == 0) {
            free_one = &audit->windows[i];
        }
    }
    return free_one != NULL ? free_one : &audit->others;
}

void audit_refused(struct audit *audit, const struct api_call *call, const char *kind,
                   const char *why)
{
    struct window wanted = {.began_ms = call->now_ms};
    (void)snprintf(wanted.kind, sizeof wanted.kind, "%s", kind);
    (void)snprintf(wanted.actor, sizeof wanted.actor, "%s", call->actor);
    (void)snprintf(wanted.address, sizeof wanted.address, "%s", call->request->remote);
    (void)snprintf(wanted.claimed, sizeof wanted.claimed, "%s",
                   call->guessed.claimed != NULL ? call->guessed.claimed : "");
    audit_flush(audit, call->now_ms);
    pthread_mutex_lock(&audit->lock);
    struct window *window = find_window(audit, &wanted);
    bool is_first = window->began_ms == 0;
    if (!is_first) {
        window->n_more++;
    } else if (window == &audit->others) {
        *window = (struct window){.kind = "access_refused",
                                  .actor = "others",
                                  .address = "other addresses",
                                  .began_ms = call->now_ms,
                                  .n_more = 1};
        is_first = false;
    } else {
        *window = wanted;
    }
    pthread_mutex_unlock(&audit->lock);
    if (is_first) {
        write_first(audit, call, kind, why);
    }
}

/* ---- uses of tokens -------------------------------------------------------------------------- */

/* Remember a use; true if it is new and within the minute's bound. The lock is held. */
static bool remember_use(struct audit *audit, const char *token, const char *address,
                         int64_t now_ms)
{
    for (size_t i = 0; i < AUDIT_USES_KEPT; i++) {
        if (strcmp(audit->uses[i].token, token) == 0 &&
            strcmp(audit->uses[i].address, address) == 0) {
            return false;
        }
    }
    int64_t minute = now_ms / AUDIT_WINDOW_MS;
    audit->n_uses = minute == audit->uses_minute ? audit->n_uses : 0;
    audit->uses_minute = minute;
    if (audit->n_uses >= AUDIT_USES_PER_MINUTE) {
        return false;
    }
    audit->n_uses++;
    struct use *use = &audit->uses[audit->i_use];
    audit->i_use = (audit->i_use + 1) % AUDIT_USES_KEPT;
    (void)snprintf(use->token, sizeof use->token, "%s", token);
    (void)snprintf(use->address, sizeof use->address, "%s", address);
    return true;
}

static uint64_t flow_hash(const struct api_call *call, const char *subject)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, call->request->method);
    hash = weir_hash_text(hash, "\n");
    hash = weir_hash_text(hash, call->actor);
    hash = weir_hash_text(hash, "\n");
    hash = weir_hash_text(hash, call->request->remote);
    hash = weir_hash_text(hash, "\n");
    return weir_hash_text(hash, subject);
}

/* The lock is held. */
static bool knows_flow(struct audit *audit, uint64_t hash, int64_t now_ms)
{
    int64_t minute = now_ms / AUDIT_WINDOW_MS;
    audit->n_flows = minute == audit->flows_minute ? audit->n_flows : 0;
    audit->flows_minute = minute;
    for (size_t i = 0; i < WEIR_MIN(audit->n_flows, AUDIT_USES_KEPT); i++) {
        if (audit->flows[i] == hash) {
            return true;
        }
    }
    return false;
}

bool audit_has_flow(struct audit *audit, const struct api_call *call, const char *subject)
{
    pthread_mutex_lock(&audit->lock);
    bool is_known = knows_flow(audit, flow_hash(call, subject), call->now_ms);
    pthread_mutex_unlock(&audit->lock);
    return is_known;
}

void audit_keep_flow(struct audit *audit, const struct api_call *call, const char *subject)
{
    uint64_t hash = flow_hash(call, subject);
    pthread_mutex_lock(&audit->lock);
    if (!knows_flow(audit, hash, call->now_ms)) {
        /* beyond the bound the oldest are forgotten, and written again */
        audit->flows[audit->n_flows % AUDIT_USES_KEPT] = hash;
        audit->n_flows++;
    }
    pthread_mutex_unlock(&audit->lock);
}

void audit_used(struct audit *audit, const struct api_call *call)
{
    const char *token = call->identity.token;
    if (token == NULL || call->identity.session != NULL) {
        return; /* a task's token, or a session, whose beginning was written */
    }
    pthread_mutex_lock(&audit->lock);
    bool is_new = remember_use(audit, token, call->request->remote, call->now_ms);
    pthread_mutex_unlock(&audit->lock);
    if (!is_new) {
        return;
    }
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = AUDIT_TOPIC,
        .kind = "token_used",
        .subject = weir_arena_printf(call->arena, "token/%s", token),
        .actor = (char *)call->actor,
        .message = weir_arena_printf(call->arena, "A token of %s was used from %s.", call->actor,
                                     call->request->remote),
        .data = data_of(call, call->arena),
    };
    write_event(audit, &event);
}
