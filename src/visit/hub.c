#include "visit/hub_private.h"

#include "base/clock.h"
#include "base/macros.h"

#include "base/view_table.h"

#include "visit/visit_views.def"

#include "base/view_end.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct weir_visit_seat {
    struct weir_visits *visits;
    char id[WEIR_VISIT_ID_BYTES];
    int64_t stream;
    enum side side;
};

static void make_random(char *out, size_t size)
{
    unsigned char bytes[32];
    randombytes_buf(bytes, (size - 1) / 2);
    (void)sodium_bin2hex(out, size, bytes, (size - 1) / 2);
    sodium_memzero(bytes, sizeof bytes);
}

static void wake(struct weir_visits *visits)
{
    (void)eventfd_write(visits->wake_fd, 1);
}

static struct place *find_place(struct weir_visits *visits, const char *id)
{
    for (struct place *place = visits->places; place != NULL; place = place->next) {
        if (!place->is_over && strcmp(place->id, id) == 0) {
            return place;
        }
    }
    return NULL;
}

static struct stream *find_stream(struct place *place, int64_t number)
{
    for (struct stream *s = place != NULL ? place->streams : NULL; s != NULL; s = s->next) {
        if (s->number == number && !s->is_over) {
            return s;
        }
    }
    return NULL;
}

/* ---- visits -------------------------------------------------------------------------------------- */

static weir_status check_room(const struct weir_visits *visits, const struct weir_visit *wanted,
                              struct weir_error *err)
{
    int of_job = 0, of_node = 0, of_who = 0;
    if (visits->is_stopping) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "the server is stopping");
    }
    for (const struct place *place = visits->places; place != NULL; place = place->next) {
        of_job += strcmp(place->visit.job, wanted->job) == 0;
        of_node += strcmp(place->visit.node, wanted->node) == 0;
        of_who += strcmp(place->visit.who, wanted->who) == 0;
    }
    if (of_who >= WEIR_VISITS_OF_WHO_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "you are inside jobs %d times already, which is the most: end one, "
                              "and try again",
                              of_who);
    }
    if (of_job >= WEIR_VISITS_OF_JOB_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%d are inside this job already, which is the most: end one, and try "
                              "again",
                              of_job);
    }
    if (of_node >= WEIR_VISITS_OF_NODE_MAX || visits->n_places >= WEIR_VISITS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%d are inside jobs of node %s, %d of all nodes; the most are %d and "
                              "%d: try again when some have ended",
                              of_node, wanted->node, visits->n_places, WEIR_VISITS_OF_NODE_MAX,
                              WEIR_VISITS_MAX);
    }
    return WEIR_OK;
}

static void copy_texts(struct weir_visit *visit, struct weir_arena *arena)
{
    const char **texts[] = {&visit->job,     &visit->project, &visit->task,
                            &visit->label,   &visit->node,    &visit->who,
                            &visit->session, &visit->token,   &visit->what};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        *texts[i] = *texts[i] != NULL ? weir_arena_strdup(arena, *texts[i]) : NULL;
    }
    visit->order = NULL;
}

weir_status weir_visits_begin(struct weir_visits *visits, const struct weir_visit *visit,
                              char out_id[WEIR_VISIT_ID_BYTES], struct weir_error *err)
{
    struct place *place = weir_xalloc(sizeof *place);
    memset(place, 0, sizeof *place);
    weir_arena_init(&place->arena, 0);
    make_random(place->id, sizeof place->id);
    place->visit = *visit;
    copy_texts(&place->visit, &place->arena);
    place->visit.id = place->id;
    place->order = json_deep_copy(visit->order);
    place->begun_ms = weir_mono_ms();
    place->look_ms = place->begun_ms + WEIR_VISITS_LOOK_MS;
    pthread_mutex_lock(&visits->lock);
    weir_status status = check_room(visits, visit, err);
    if (status == WEIR_OK) {
        place->next = visits->places;
        visits->places = place;
        visits->n_places++;
        memcpy(out_id, place->id, sizeof place->id);
    }
    pthread_mutex_unlock(&visits->lock);
    if (status != WEIR_OK) {
        json_decref(place->order);
        weir_arena_fini(&place->arena);
        free(place);
    }
    return status;
}

static struct weir_visit_seat *make_seat(struct weir_visits *visits, const struct stream *stream,
                                         enum side side, struct weir_arena *arena)
{
    struct weir_visit_seat *seat = WEIR_ARENA_NEW(arena, struct weir_visit_seat);
    *seat = (struct weir_visit_seat){.visits = visits, .stream = stream->number, .side = side};
    memcpy(seat->id, stream->place->id, sizeof seat->id);
    return seat;
}

static weir_status not_there(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such visit");
}

weir_status weir_visits_get(struct weir_visits *visits, const char *id, const char *who,
                            struct weir_arena *arena, struct weir_visit *out,
                            struct weir_error *err)
{
    pthread_mutex_lock(&visits->lock);
    const struct place *place = find_place(visits, id);
    bool is_theirs = place != NULL && strcmp(place->visit.who, who) == 0;
    if (is_theirs) {
        *out = place->visit;
        copy_texts(out, arena);
        out->id = weir_arena_strdup(arena, place->id);
    }
    pthread_mutex_unlock(&visits->lock);
    return is_theirs ? WEIR_OK : not_there(err);
}

static int streams_of(const struct weir_visits *visits, const char *who)
{
    int n = 0;
    for (const struct place *place = visits->places; place != NULL; place = place->next) {
        n += strcmp(place->visit.who, who) == 0 ? place->n_streams : 0;
    }
    return n;
}

static struct stream *add_stream(struct weir_visits *visits, struct place *place)
{
    struct stream *stream = weir_xalloc(sizeof *stream);
    memset(stream, 0, sizeof *stream);
    stream->place = place;
    stream->number = place->n_made++;
    stream->serial = ++visits->serial;
    stream->due_ms = weir_mono_ms() + WEIR_VISITS_ARRIVE_MS;
    make_random(stream->secret, sizeof stream->secret);
    stream->next = place->streams;
    place->streams = stream;
    place->n_streams++;
    visits->n_streams++;
    return stream;
}

weir_status weir_visits_enter(struct weir_visits *visits, const char *id, const char *who,
                              struct weir_arena *arena, struct weir_visit_seat **out_seat,
                              const char **out_node, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&visits->lock);
    struct place *place = find_place(visits, id);
    if (place == NULL || strcmp(place->visit.who, who) != 0) {
        status = not_there(err);
    } else if (place->n_made > 0 && place->visit.kind != WEIR_VISIT_FORWARD) {
        status = weir_error_set(err, WEIR_ERR_CONFLICT, "somebody came to this visit already");
    } else if (place->n_streams >= WEIR_VISIT_STREAMS_MAX ||
               streams_of(visits, who) >= WEIR_STREAMS_OF_WHO_MAX ||
               visits->n_streams >= WEIR_VISITS_STREAMS_MAX) {
        status = weir_error_set(err, WEIR_ERR_LIMIT,
                                "%d connections go through this visit, %d through all of yours, %d "
                                "through all; the most are %d, %d and %d: try again when some have "
                                "ended",
                                place->n_streams, streams_of(visits, who), visits->n_streams,
                                WEIR_VISIT_STREAMS_MAX, WEIR_STREAMS_OF_WHO_MAX,
                                WEIR_VISITS_STREAMS_MAX);
    } else {
        *out_seat = make_seat(visits, add_stream(visits, place), SIDE_PERSON, arena);
        *out_node = weir_arena_strdup(arena, place->visit.node);
    }
    pthread_mutex_unlock(&visits->lock);
    return status;
}

weir_status weir_visits_arrive(struct weir_visits *visits, const char *id, int64_t number,
                               const char *secret, struct weir_arena *arena,
                               struct weir_visit_seat **out_seat, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&visits->lock);
    struct stream *stream = find_stream(find_place(visits, id), number);
    if (stream == NULL || stream->is_arriving || strlen(secret) != sizeof stream->secret - 1 ||
        sodium_memcmp(secret, stream->secret, sizeof stream->secret - 1) != 0) {
        status = not_there(err);
    } else {
        stream->is_arriving = true;
        *out_seat = make_seat(visits, stream, SIDE_NODE, arena);
    }
    pthread_mutex_unlock(&visits->lock);
    return status;
}

void weir_visits_upgraded(void *context, struct weir_http_upgraded *upgraded, int fd,
                          const void *extra, size_t extra_len)
{
    const struct weir_visit_seat *seat = context;
    struct weir_visits *visits = seat->visits;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    pthread_mutex_lock(&visits->lock);
    struct stream *stream = find_stream(find_place(visits, seat->id), seat->stream);
    bool is_good = stream != NULL && stream->ends[seat->side].upgraded == NULL &&
                   !visits->is_stopping && extra_len <= WEIR_RELAY_BYTES;
    if (is_good) {
        struct end *end = &stream->ends[seat->side];
        *end = (struct end){.upgraded = upgraded, .fd = fd, .extra_len = extra_len};
        end->extra = extra_len > 0 ? weir_xalloc(extra_len) : NULL;
        if (extra_len > 0) {
            memcpy(end->extra, extra, extra_len);
        }
    }
    pthread_mutex_unlock(&visits->lock);
    if (is_good) {
        wake(visits);
    } else {
        weir_http_upgraded_close(upgraded);
    }
}

/* ---- what is told ---------------------------------------------------------------------------------- */

static json_t *told_to_node(const struct stream *stream)
{
    const struct place *place = stream->place;
    json_t *told = json_pack("{s:s,s:I,s:s,s:s,s:I,s:s}", "id", place->id, "stream",
                             (json_int_t)stream->number, "secret", stream->secret, "task",
                             place->visit.task, "attempt", (json_int_t)place->visit.attempt, "kind",
                             weir_visit_kind_name(place->visit.kind));
    json_object_update(told, place->order);
    return told;
}

json_t *weir_visits_wanted(struct weir_visits *visits, const char *node, int64_t *serial)
{
    json_t *list = NULL;
    pthread_mutex_lock(&visits->lock);
    for (const struct place *place = visits->places; place != NULL; place = place->next) {
        bool is_here = !place->is_over && strcmp(place->visit.node, node) == 0;
        for (const struct stream *s = is_here ? place->streams : NULL; s != NULL; s = s->next) {
            if (!s->is_over && !s->is_arriving && s->serial > *serial) {
                list = list != NULL ? list : json_array();
                json_array_append_new(list, told_to_node(s));
            }
        }
    }
    *serial = visits->serial;
    pthread_mutex_unlock(&visits->lock);
    return list;
}

json_t *weir_visit_json(const struct weir_visit *visit, const char *id)
{
    return WEIR_VIEW_JSON(weir_visit_seen, .id = id, .kind = weir_visit_kind_name(visit->kind),
                          .job = visit->job, .task = visit->label, .who = visit->who,
                          .what = visit->what, .since_ms = visit->since_ms);
}

json_t *weir_visits_list(struct weir_visits *visits, const char *job)
{
    json_t *list = json_array();
    pthread_mutex_lock(&visits->lock);
    for (const struct place *place = visits->places; place != NULL; place = place->next) {
        const struct weir_visit *visit = &place->visit;
        if (!place->is_over && strcmp(visit->job, job) == 0) {
            json_array_append_new(list, weir_visit_json(visit, place->id));
        }
    }
    pthread_mutex_unlock(&visits->lock);
    return list;
}

/* ---- the hub itself ------------------------------------------------------------------------------------ */

weir_status weir_visits_create(const struct weir_visits_ops *ops, void *context,
                               struct weir_visits **out, struct weir_error *err)
{
    struct weir_visits *visits = weir_xalloc(sizeof *visits);
    *visits = (struct weir_visits){.ops = ops,
                                   .context = context,
                                   .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                                   .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    /* A node that was told by an earlier server must not think that it knows. */
    visits->serial = weir_time_ms() * 1000;
    pthread_mutex_init(&visits->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN};
    int rc = sodium_init() >= 0 && visits->epoll_fd >= 0 && visits->wake_fd >= 0 &&
                     epoll_ctl(visits->epoll_fd, EPOLL_CTL_ADD, visits->wake_fd, &event) == 0
                 ? pthread_create(&visits->thread, NULL, hub_main, visits)
                 : errno;
    visits->is_started = rc == 0;
    if (rc != 0) {
        weir_visits_destroy(visits);
        return weir_error_set_errno(err, rc, "cannot start the thread of visits");
    }
    *out = visits;
    return WEIR_OK;
}

void weir_visits_stop(struct weir_visits *visits)
{
    if (visits == NULL) {
        return;
    }
    pthread_mutex_lock(&visits->lock);
    bool is_first = !visits->is_stopping && visits->is_started;
    visits->is_stopping = true;
    pthread_mutex_unlock(&visits->lock);
    if (is_first) {
        wake(visits);
        pthread_join(visits->thread, NULL);
    }
}

void weir_visits_destroy(struct weir_visits *visits)
{
    if (visits == NULL) {
        return;
    }
    weir_visits_stop(visits);
    if (visits->epoll_fd >= 0) {
        close(visits->epoll_fd);
    }
    if (visits->wake_fd >= 0) {
        close(visits->wake_fd);
    }
    pthread_mutex_destroy(&visits->lock);
    free(visits);
}
