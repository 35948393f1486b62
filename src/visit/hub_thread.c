/* The hub's thread: it joins the sides of streams, moves their bytes, and sees visits off. */
#include "visit/hub_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define TICK_MS    1000
#define EVENTS_MAX 64
#define BARRED     "who is inside may not be so any more: their token, role or user has changed"

/* ---- streams --------------------------------------------------------------------------- */

/* Frames as they pass: what is none does not. */
static bool see(void *context, int from, const void *bytes, size_t len)
{
    struct stream *stream = context;
    struct weir_frames *frames = &stream->frames[from];
    struct place *place = stream->place;
    const char *at = bytes;
    while (len > 0) {
        size_t used;
        bool is_whole;
        if (weir_frames_take(frames, at, len, &used, &is_whole) != WEIR_OK) {
            return false;
        }
        at += used;
        len -= used;
        if (is_whole && stream->number == 0 && frames->type == WEIR_FRAME_EXIT) {
            place->has_exit = true;
            place->exit_status = (unsigned char)stream->payload[0];
            place->exit_signal = (unsigned char)stream->payload[1];
        } else if (is_whole && stream->number == 0 && frames->type == WEIR_FRAME_FAILED) {
            memcpy(place->failed, stream->payload, frames->len);
            place->failed[frames->len] = '\0';
            weir_frame_disarm(place->failed);
        }
    }
    return true;
}

/* Between two frames, and with none under way. */
static void say_failed(const struct stream *stream, const char *text)
{
    struct weir_frame_box box = {0};
    const struct weir_frames *frames = &stream->frames[SIDE_NODE];
    const struct weir_relay_way *way = &stream->relay.ways[SIDE_NODE];
    bool is_between = frames->n_head == 0 ||
                      (frames->n_head == WEIR_FRAME_HEAD_BYTES && frames->n_payload == frames->len);
    if (stream->ends[SIDE_PERSON].upgraded != NULL && is_between && way->begin == way->end &&
        weir_frame_put_failed(&box, text)) {
        (void)send(stream->ends[SIDE_PERSON].fd, box.bytes, box.end, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* The lock is held. */
static void end_stream(struct weir_visits *visits, struct stream *stream, const char *text)
{
    if (stream->is_over) {
        return;
    }
    stream->is_over = true;
    if (text != NULL) {
        say_failed(stream, text);
    }
    for (int i = 0; i < 2; i++) {
        struct end *end = &stream->ends[i];
        if (end->upgraded != NULL) {
            (void)epoll_ctl(visits->epoll_fd, EPOLL_CTL_DEL, end->fd, NULL);
            weir_http_upgraded_close(end->upgraded);
        }
        free(end->extra);
        *end = (struct end){0};
    }
    if (stream->is_relaying) {
        weir_relay_fini(&stream->relay);
    }
    struct place *place = stream->place;
    if (stream->number == 0) {
        place->is_over = true;
        if (text != NULL && place->failed[0] == '\0' && !place->has_exit) {
            (void)snprintf(place->failed, sizeof place->failed, "%s", text);
        }
    }
}

static bool watch(const struct weir_visits *visits, struct stream *stream, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = stream};
    return epoll_ctl(visits->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void step(struct weir_visits *visits, struct stream *stream)
{
    if (stream->is_over || !stream->is_relaying) {
        return;
    }
    if (!weir_relay_pump(&stream->relay, weir_mono_ms())) {
        end_stream(visits, stream, NULL);
    } else {
        visits->has_more = visits->has_more || stream->relay.has_more;
    }
}

/* Both sides are there. The lock is held. */
static void join(struct weir_visits *visits, struct stream *stream)
{
    struct end *ends = stream->ends;
    stream->is_relaying = true;
    stream->frames[SIDE_NODE] = (struct weir_frames){.is_from_task = true,
                                                     .payload = stream->payload,
                                                     .size = sizeof stream->payload,
                                                     .is_text_kept = true};
    weir_relay_init(&stream->relay, ends[0].fd, ends[1].fd, weir_mono_ms());
    stream->relay.stuck_ms = INT64_MAX; /* who pauses what they look at says PING meanwhile */
    stream->relay.see = see;
    stream->relay.context = stream;
    bool is_good = true;
    for (int i = 0; i < 2 && is_good; i++) {
        is_good = see(stream, i, ends[i].extra, ends[i].extra_len) &&
                  weir_relay_preload(&stream->relay, i, ends[i].extra, ends[i].extra_len) &&
                  watch(visits, stream, ends[i].fd);
    }
    if (!is_good) {
        end_stream(visits, stream, NULL);
    }
    step(visits, stream);
}

/* The lock is held. */
static void look_at(struct weir_visits *visits, struct place *place, int64_t now_ms, bool is_tick)
{
    for (struct stream *s = place->streams; s != NULL; s = s->next) {
        bool is_ready = s->ends[0].upgraded != NULL && s->ends[1].upgraded != NULL;
        if (s->is_over) {
            continue;
        }
        if (visits->is_stopping || place->is_over || place->is_barred) {
            end_stream(visits, s,
                       visits->is_stopping ? "the server is stopping"
                       : place->is_barred  ? BARRED
                                           : NULL);
        } else if (!s->is_relaying && is_ready) {
            join(visits, s);
        } else if (!s->is_relaying && now_ms >= s->due_ms) {
            end_stream(visits, s,
                       "the task's node did not come within 20 seconds: its agent may be away, or "
                       "older than the server; weir get nodes tells");
        } else if (is_tick || s->relay.has_more) {
            step(visits, s);
        }
    }
    place->is_over = place->is_over || visits->is_stopping ||
                     (place->n_made == 0 && now_ms - place->begun_ms >= WEIR_VISITS_ARRIVE_MS);
}

/* ---- ends ------------------------------------------------------------------------------- */

/* At the end of a turn: its events may have named them. The lock is held. */
static void free_streams(struct weir_visits *visits, struct place *place)
{
    for (struct stream **at = &place->streams; *at != NULL;) {
        struct stream *stream = *at;
        if (!stream->is_over) {
            at = &stream->next;
            continue;
        }
        *at = stream->next;
        place->n_streams--;
        visits->n_streams--;
        free(stream);
    }
}

/* The first that is over, taken out; NULL: none. */
static struct place *take_over(struct weir_visits *visits)
{
    struct place *found = NULL;
    pthread_mutex_lock(&visits->lock);
    for (struct place **at = &visits->places; *at != NULL && found == NULL; at = &(*at)->next) {
        if ((*at)->is_over && (*at)->streams == NULL) {
            found = *at;
            *at = found->next;
            visits->n_places--;
            break;
        }
    }
    pthread_mutex_unlock(&visits->lock);
    return found;
}

static void tell_ends(struct weir_visits *visits)
{
    struct place *place;
    while ((place = take_over(visits)) != NULL) {
        const struct weir_visit_end end = {.visit = place->visit,
                                           .lasted_ms = weir_mono_ms() - place->begun_ms,
                                           .has_exit = place->has_exit,
                                           .exit_status = place->exit_status,
                                           .exit_signal = place->exit_signal,
                                           .failed =
                                               place->failed[0] != '\0' ? place->failed : NULL};
        visits->ops->ended(visits->context, &end);
        json_decref(place->order);
        weir_arena_fini(&place->arena);
        free(place);
    }
}

/* The next that is due to be asked for; NULL: none. Nobody else frees it. */
static struct place *find_due(struct weir_visits *visits, int64_t now_ms)
{
    struct place *found = NULL;
    pthread_mutex_lock(&visits->lock);
    for (struct place *place = visits->places; place != NULL && found == NULL;
         place = place->next) {
        found = !place->is_over && !place->is_barred && now_ms >= place->look_ms ? place : NULL;
    }
    pthread_mutex_unlock(&visits->lock);
    return found;
}

static void ask_for_all(struct weir_visits *visits, int64_t now_ms)
{
    struct place *place;
    while ((place = find_due(visits, now_ms)) != NULL) {
        place->look_ms = now_ms + WEIR_VISITS_LOOK_MS;
        place->is_barred = !visits->ops->may(visits->context, &place->visit);
    }
}

/* False: it stops. */
static bool turn(struct weir_visits *visits, const struct epoll_event *events, int n, bool is_tick)
{
    eventfd_t ignored;
    pthread_mutex_lock(&visits->lock);
    visits->has_more = false;
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr != NULL) {
            step(visits, events[i].data.ptr);
        } else {
            (void)eventfd_read(visits->wake_fd, &ignored);
        }
    }
    int64_t now_ms = weir_mono_ms();
    for (struct place *place = visits->places; place != NULL; place = place->next) {
        look_at(visits, place, now_ms, is_tick);
        if (place->is_over) { /* its first stream ended: so do the others */
            look_at(visits, place, now_ms, false);
        }
        free_streams(visits, place);
    }
    bool goes_on = !visits->is_stopping;
    pthread_mutex_unlock(&visits->lock);
    tell_ends(visits);
    return goes_on;
}

void *hub_main(void *context)
{
    struct weir_visits *visits = context;
    struct epoll_event events[EVENTS_MAX];
    int64_t next_tick_ms = 0;
    bool goes_on = true;
    while (goes_on) {
        int n = epoll_wait(visits->epoll_fd, events, EVENTS_MAX, visits->has_more ? 0 : TICK_MS);
        int64_t now_ms = weir_mono_ms();
        bool is_tick = now_ms >= next_tick_ms;
        next_tick_ms = is_tick ? now_ms + TICK_MS : next_tick_ms;
        if (is_tick) {
            ask_for_all(visits, now_ms);
        }
        goes_on = turn(visits, events, n, is_tick);
    }
    return NULL;
}
