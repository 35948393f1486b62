/** Events, and the live stream of everything. */
#include "api/auth/audit.h"
#include "api/core/feed.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"

#include "ion/decision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_BATCH              100
#define STREAM_IDENTITY_MAX_BYTES ((size_t)1 << 16)

/* The audit is for who may read it, and only where it is asked for. */
weir_status api_event_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *topic = api_query_text(call, "topic");
    bool wants_audit = topic != NULL && strcmp(topic, AUDIT_TOPIC) == 0;
    const struct weir_filter no_audit = WEIR_FILTER_TEXT("topic", NE, AUDIT_TOPIC);
    if (wants_audit && (call->identity.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_AUDIT_READ)) == 0) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "the events of topic \"" AUDIT_TOPIC
                              "\" need the right to read audit on the platform");
    }
    return api_list_numbered_where(call, txn, &no_audit, wants_audit ? 0 : 1, err);
}

/* ---- stream ---------------------------------------------------------------------------------- */

/* A topic whose records are numbered in the store, so that a stream can go on where it broke. */
struct numbered {
    const char *topic;
    const struct weir_resource *resource;
    enum weir_right
        right; /**< Whose rows are sent: those of projects in which the reader has it. */
};

enum { NUMBERED_EVENTS, NUMBERED_DECISIONS, N_NUMBERED };

static const struct numbered numbered_topics[N_NUMBERED] = {
    {"events", &weir_event_resource, WEIR_RIGHT_EVENTS_READ},
    {"decisions", &weir_decision_resource, WEIR_RIGHT_DECISIONS_READ},
};

struct stream {
    struct weir_api *api;
    struct weir_arena arena;                /**< Holds the identity's text. */
    struct weir_identity identity;          /**< Of the reader: checked with each pull. */
    struct weir_row_scope rows[N_NUMBERED]; /**< What the reader sees. */
    bool sees_feed; /**< Records of the other topics; else only that there is something. */
    unsigned feed_mask;
    bool wants[N_NUMBERED];
    int64_t seqs[N_NUMBERED]; /**< Last sent. */
    uint64_t feed_position;
    struct weir_buf *out; /**< Of the pull in progress. */
};

static int64_t seq_of(const struct weir_resource *resource, const void *record)
{
    return *(const int64_t *)weir_field_cptr(weir_resource_field(resource, "seq"), record);
}

static weir_status list_topic(struct weir_txn *txn, const struct weir_resource *resource,
                              const struct weir_query *query, struct weir_arena *arena,
                              void **out_items, size_t *out_n, struct weir_error *err)
{
    return resource == &weir_event_resource
               ? weir_events_list(txn, query, arena, out_items, out_n, NULL, err)
               : weir_txn_list(txn, resource, query, arena, out_items, out_n, NULL, err);
}

/* The newest number, from which a new reader goes on. */
static weir_status last_seq(struct weir_txn *txn, const struct weir_resource *resource,
                            struct weir_arena *arena, int64_t *out, struct weir_error *err)
{
    struct weir_query query = {.order_by = "seq", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(list_topic(txn, resource, &query, arena, &items, &n, err));
    *out = n > 0 ? seq_of(resource, items) : 0;
    return WEIR_OK;
}

static weir_status send_numbered(struct stream *stream, struct weir_txn *txn, int i_topic,
                                 struct weir_arena *arena, struct weir_error *err)
{
    const struct numbered *topic = &numbered_topics[i_topic];
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_INT("seq", GT, stream->seqs[i_topic]),
                                            WEIR_FILTER_TEXT("topic", NE, AUDIT_TOPIC)),
                               .order_by = "seq", .limit = STREAM_BATCH,
                               .max_bytes = WEIR_HTTP_EVENTS_MAX_BYTES};
    query.n_filters = i_topic == NUMBERED_EVENTS ? 2 : 1;
    void *items;
    size_t n;
    WEIR_TRY(list_topic(txn, topic->resource, &query, arena, &items, &n, err));
    for (size_t i = 0; i < n; i++) {
        const void *record = (const char *)items + i * topic->resource->size;
        json_t *json = weir_record_to_json(topic->resource, record);
        char *text = weir_json_text(json, arena);
        json_decref(json);
        stream->seqs[i_topic] = seq_of(topic->resource, record);
        char id[64];
        (void)snprintf(id, sizeof id, "%" PRId64 "-%" PRId64, stream->seqs[NUMBERED_EVENTS],
                       stream->seqs[NUMBERED_DECISIONS]);
        WEIR_TRY(weir_http_event_append(stream->out, topic->topic, id, text));
    }
    return WEIR_OK;
}

/** One topic's turn. */
struct pull {
    struct stream *stream;
    int i_topic;
};

struct checking {
    struct stream *stream;
    struct weir_arena *arena;
};

/* What somebody may in other projects is no row of those that are sent. */
static weir_status check_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct checking *checking = context;
    struct stream *stream = checking->stream;
    return weir_identity_check(txn, &stream->identity, weir_clock_now_ms(stream->api->clock),
                               checking->arena, err);
}

static weir_status pull_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct pull *pull = context;
    struct stream *stream = pull->stream;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct checking checking = {stream, &arena};
    weir_status status = weir_txn_as(txn, NULL, check_in, &checking, err);
    if (status == WEIR_OK && stream->wants[pull->i_topic]) {
        status = send_numbered(stream, txn, pull->i_topic, &arena, err);
    }
    weir_arena_fini(&arena);
    return status;
}

static weir_status stream_next(void *state, struct weir_buf *out)
{
    struct stream *stream = state;
    struct weir_error err;
    stream->out = out;
    for (int i = 0; i < N_NUMBERED; i++) {
        struct pull pull = {stream, i};
        if (i == 0 || stream->wants[i]) { /* the first also asks who reads */
            WEIR_TRY(
                weir_store_read_scoped(stream->api->store, &stream->rows[i], pull_in, &pull, &err));
        }
    }
    return stream->sees_feed ? feed_read(stream->api->feed, &stream->feed_position,
                                         stream->feed_mask, STREAM_BATCH, out)
                             : feed_read_hidden(stream->api->feed, &stream->feed_position,
                                                stream->feed_mask, out);
}

static void stream_free(void *state)
{
    struct stream *stream = state;
    weir_arena_fini(&stream->arena);
    free(stream);
}

static weir_status read_topics(struct stream *stream, const char *topics, struct weir_error *err)
{
    for (const char *p = topics; *p != '\0';) {
        char topic[16];
        size_t len = strcspn(p, ",");
        (void)snprintf(topic, sizeof topic, "%.*s", (int)len, p);
        int i_feed = feed_topic_from_text(topic);
        if (i_feed >= 0) {
            stream->feed_mask |= 1u << i_feed;
        } else if (strcmp(topic, "events") == 0) {
            stream->wants[NUMBERED_EVENTS] = true;
        } else if (strcmp(topic, "decisions") == 0) {
            stream->wants[NUMBERED_DECISIONS] = true;
        } else {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "query parameter topics: \"%s\" is none of events, decisions, runs, "
                "jobs, alerts, ions, models, nodes, deployments",
                topic);
        }
        p += len + (p[len] == ',');
    }
    return WEIR_OK;
}

/* Whoever may read all of it, everywhere. */
static bool sees_feed(const struct api_call *call)
{
    static const enum weir_right rights[] = {WEIR_RIGHT_EVENTS_READ, WEIR_RIGHT_RUNS_READ,
                                             WEIR_RIGHT_JOBS_READ,   WEIR_RIGHT_ALERTS_READ,
                                             WEIR_RIGHT_IONS_READ,   WEIR_RIGHT_MODELS_READ,
                                             WEIR_RIGHT_NODES_READ,  WEIR_RIGHT_DEPLOYMENTS_READ};

    bool sees = true;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rights); i++) {
        sees = sees && (call->identity.rights & WEIR_RIGHTS_OF(rights[i])) != 0;
    }
    return sees;
}

/* What the call's identity may in projects, for as long as the stream lives. */
static void keep_projects(struct stream *stream, const struct api_call *call)
{
    size_t n = call->identity.n_grants;
    struct weir_grant *grants = WEIR_ARENA_ARRAY(&stream->arena, n + 1, struct weir_grant);
    for (size_t i = 0; i < n; i++) {
        grants[i] = call->identity.grants[i];
        grants[i].project = weir_arena_strdup(&stream->arena, grants[i].project);
    }
    for (int k = 0; k < N_NUMBERED; k++) {
        stream->rows[k] = api_projects_with(call, numbered_topics[k].right);
        const char **projects = WEIR_ARENA_ARRAY(&stream->arena, n + 1, const char *);
        for (size_t i = 0; i < stream->rows[k].n_projects; i++) {
            projects[i] = weir_arena_strdup(&stream->arena, stream->rows[k].projects[i]);
        }
        stream->rows[k].projects = projects;
    }
    stream->identity.grants = grants;
    stream->identity.n_grants = n;
    stream->sees_feed = sees_feed(call);
}

weir_status api_stream(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct stream wanted = {.api = call->api, .feed_position = feed_position(call->api->feed)};
    const char *topics = api_query_text(call, "topics");
    const char *resume = weir_http_request_header(call->request, "Last-Event-ID");
    WEIR_TRY(read_topics(&wanted, topics != NULL ? topics : "events", err));
    if (resume == NULL || sscanf(resume, "%" SCNd64 "-%" SCNd64, &wanted.seqs[NUMBERED_EVENTS],
                                 &wanted.seqs[NUMBERED_DECISIONS]) != 2) {
        for (int i = 0; i < N_NUMBERED; i++) {
            WEIR_TRY(last_seq(txn, numbered_topics[i].resource, call->arena, &wanted.seqs[i], err));
        }
    }
    struct stream *stream = weir_xalloc(sizeof *stream);
    *stream = wanted;
    weir_arena_init(&stream->arena, STREAM_IDENTITY_MAX_BYTES);
    stream->identity = (struct weir_identity){
        .role = call->identity.role,
        .rights = call->identity.rights,
        .token = weir_arena_strdup(&stream->arena, call->identity.token),
        .session = weir_arena_strdup(&stream->arena, call->identity.session),
    };
    keep_projects(stream, call);
    weir_http_response_events(call->response, WEIR_HTTP_ALL_TOPICS, stream_next, stream_free,
                              stream);
    return WEIR_OK;
}
