#include "predict/intake.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_PATIENCE_MS 1000

struct frame_list {
    struct frame *first, **end;
    size_t n;
};

/** What is known of a camera. */
struct turn {
    uint64_t camera;            /**< Hash of its name: two that share one take turns as one. */
    uint64_t spent_ns;          /**< By its frames, or as much as it cannot have back. */
    uint64_t i_told;            /**< The higher, the later. */
    struct intake_camera known; /**< But for n_queued and is_at_work. */
};

/** What intake_run asks for. */
struct errand {
    void (*fn)(void *context);
    void *context;
    bool is_done; /**< Under the intake's lock. */
};

struct intake {
    struct intake_limits limits;
    struct turn *turns; /**< INTAKE_CAMERAS_MAX. */
    size_t n_turns;
    uint64_t n_told;
    uint64_t now_ns; /**< What no camera of those that had turns has spent less than. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct frame_list queued;
    struct frame_list in_hand;
    char at_work[INTAKE_AT_WORK_MAX][FRAME_CAMERA_BYTES]; /**< The cameras of frames at work. */
    size_t n_at_work;
    size_t n_bytes;
    uint64_t n_accepted, n_dropped;
    int64_t last_ms; /**< When the last accepted one was received. */
    bool is_open, is_closed;
    struct timespec give_up; /**< Once closed. */
    struct errand *errand;   /**< Not begun; NULL: there is none. */
};

static bool is_plain(const char *text, size_t max_bytes)
{
    size_t len = strlen(text);
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return len > 0 && len < max_bytes && weir_text_is_utf8(text);
}

bool frame_camera_is_valid(const char *camera)
{
    return is_plain(camera, FRAME_CAMERA_BYTES) && camera[0] != '.' && strchr(camera, '/') == NULL;
}

bool frame_key_is_valid(const char *key)
{
    return is_plain(key, FRAME_KEY_BYTES);
}

const char *frame_key_of(const char *camera, int64_t number, char out[FRAME_KEY_BYTES])
{
    (void)snprintf(out, FRAME_KEY_BYTES, "%s\n%" PRId64, camera, number);
    return out;
}

struct frame *frame_create(const char *camera, int64_t number)
{
    struct frame *frame = weir_xalloc(sizeof *frame);
    *frame = (struct frame){.number = number};
    (void)snprintf(frame->camera, sizeof frame->camera, "%s", camera);
    (void)frame_key_of(camera, number, frame->key);
    return frame;
}

struct frame *frame_create_keyed(const char *camera, const char *key, int64_t number)
{
    int64_t hash = (int64_t)(weir_hash_text(WEIR_HASH_BEGIN, key) >> 1);
    struct frame *frame = frame_create(camera, number >= 0 ? number : -1 - hash);
    (void)snprintf(frame->key, sizeof frame->key, "%s", key);
    frame->is_keyed = true;
    return frame;
}

void frame_drop_pixels(struct frame *frame)
{
    if (frame->release != NULL) {
        frame->release(frame);
        frame->release = NULL;
    }
    frame->view = (struct weir_view){.form = WEIR_VIEW_NONE};
    free(frame->bytes);
    frame->bytes = NULL;
}

void frame_destroy(struct frame *frame)
{
    if (frame != NULL) {
        frame_drop_pixels(frame);
        free(frame->path);
        free(frame->damage);
        free(frame);
    }
}

static void list_init(struct frame_list *list)
{
    *list = (struct frame_list){.end = &list->first};
}

static void list_push(struct frame_list *list, struct frame *frame)
{
    frame->next = NULL;
    *list->end = frame;
    list->end = &frame->next;
    list->n++;
}

static void list_remove(struct frame_list *list, struct frame *frame)
{
    struct frame **link = &list->first;
    while (*link != frame) {
        link = &(*link)->next;
    }
    *link = frame->next;
    if (frame->next == NULL) {
        list->end = link;
    }
    list->n--;
}

static bool list_has(const struct frame_list *list, const struct frame *wanted)
{
    for (const struct frame *frame = list->first; frame != NULL; frame = frame->next) {
        if (strcmp(frame->key, wanted->key) == 0) {
            return true;
        }
    }
    return false;
}

static void list_free(struct frame_list *list)
{
    while (list->first != NULL) {
        struct frame *frame = list->first;
        list->first = frame->next;
        frame_destroy(frame);
    }
}

struct intake *intake_create(const struct intake_limits *limits)
{
    struct intake *intake = weir_xalloc(sizeof *intake);
    *intake = (struct intake){.limits = *limits};
    intake->turns = weir_xalloc(INTAKE_CAMERAS_MAX * sizeof *intake->turns);
    list_init(&intake->queued);
    list_init(&intake->in_hand);
    pthread_mutex_init(&intake->lock, NULL);
    pthread_cond_init(&intake->changed, NULL);
    return intake;
}

void intake_destroy(struct intake *intake)
{
    if (intake == NULL) {
        return;
    }
    list_free(&intake->queued);
    list_free(&intake->in_hand);
    free(intake->turns);
    pthread_cond_destroy(&intake->changed);
    pthread_mutex_destroy(&intake->lock);
    free(intake);
}

void intake_open(struct intake *intake)
{
    pthread_mutex_lock(&intake->lock);
    intake->is_open = true;
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
}

void intake_close(struct intake *intake)
{
    pthread_mutex_lock(&intake->lock);
    intake->is_closed = true;
    intake->give_up = weir_deadline_after(CLOSE_PATIENCE_MS);
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
}

static bool has_room(const struct intake *intake, const struct frame *frame)
{
    const struct intake_limits *limits = &intake->limits;
    return intake->is_open && intake->queued.n < limits->max_queued &&
           (intake->queued.n == 0 || intake->n_bytes + frame->n_bytes <= limits->max_bytes);
}

static bool is_hand_full(const struct intake *intake)
{
    return intake->in_hand.n >= intake->limits.max_in_hand ||
           intake->n_at_work == INTAKE_AT_WORK_MAX;
}

/* Under lock. True if the wait ended by a change, false when the time is over. */
static bool wait_change(struct intake *intake, int64_t wait_ms, const struct timespec *deadline)
{
    if (wait_ms == 0) {
        return false;
    }
    if (wait_ms < 0) {
        return pthread_cond_wait(&intake->changed, &intake->lock) == 0;
    }
    return weir_cond_wait_until(&intake->changed, &intake->lock, deadline) != ETIMEDOUT;
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Under lock. NULL: it was never told of. */
static struct turn *find_turn(const struct intake *intake, const char *camera)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, camera);
    for (size_t i = 0; i < intake->n_turns; i++) {
        if (intake->turns[i].camera == hash) {
            return &intake->turns[i];
        }
    }
    return NULL;
}

static struct turn *make_turn(struct intake *intake, const char *camera)
{
    struct turn *turn = find_turn(intake, camera);
    if (turn != NULL) {
        return turn;
    }
    turn = &intake->turns[0];
    for (size_t i = 0; i < intake->n_turns; i++) {
        turn = intake->turns[i].i_told < turn->i_told ? &intake->turns[i] : turn;
    }
    if (intake->n_turns < INTAKE_CAMERAS_MAX) {
        turn = &intake->turns[intake->n_turns++];
    }
    *turn = (struct turn){.camera = weir_hash_text(WEIR_HASH_BEGIN, camera),
                          .spent_ns = intake->now_ns,
                          .i_told = ++intake->n_told,
                          .known = {.age_us = -1}};
    return turn;
}

/* Under lock. What the camera of a frame has had: one that had nothing to give for a while has no claim on that time. */
static uint64_t spent(const struct intake *intake, const struct frame *frame)
{
    const struct turn *turn = find_turn(intake, frame->camera);
    return turn != NULL ? WEIR_MAX(turn->spent_ns, intake->now_ns) : intake->now_ns;
}

/* Under lock. The index of a frame at work from this camera; n_at_work: there is none. */
static size_t find_at_work(const struct intake *intake, const char *camera)
{
    size_t i = 0;
    while (i < intake->n_at_work && strcmp(intake->at_work[i], camera) != 0) {
        i++;
    }
    return i;
}

static bool is_at_work(const struct intake *intake, const char *camera)
{
    return find_at_work(intake, camera) < intake->n_at_work;
}

/* Under lock. The next frame: the oldest one among cameras that have had the least time. NULL: none may be taken now. */
static struct frame *choose(const struct intake *intake)
{
    struct frame *next = NULL;
    uint64_t least_ns = UINT64_MAX;
    for (struct frame *at = intake->queued.first; at != NULL; at = at->next) {
        uint64_t its_ns = spent(intake, at);
        if (its_ns < least_ns && !(at->is_live && is_at_work(intake, at->camera))) {
            least_ns = its_ns;
            next = at;
        }
    }
    return is_hand_full(intake) ? NULL : next;
}

void intake_tell(struct intake *intake, const char *camera, bool is_undecided)
{
    pthread_mutex_lock(&intake->lock);
    struct turn *turn = make_turn(intake, camera);
    turn->i_told = ++intake->n_told;
    turn->known.is_undecided = is_undecided;
    pthread_mutex_unlock(&intake->lock);
}

void intake_over(struct intake *intake, const char *camera, uint64_t spent_ns)
{
    pthread_mutex_lock(&intake->lock);
    struct turn *turn = make_turn(intake, camera);
    size_t i = find_at_work(intake, camera);
    if (i < intake->n_at_work) {
        intake->n_at_work--;
        memmove(intake->at_work[i], intake->at_work[intake->n_at_work], FRAME_CAMERA_BYTES);
    }
    turn->spent_ns += spent_ns;
    turn->i_told = ++intake->n_told;
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
}

void intake_camera(struct intake *intake, const char *camera, struct intake_camera *out)
{
    pthread_mutex_lock(&intake->lock);
    const struct turn *turn = find_turn(intake, camera);
    *out = turn != NULL ? turn->known : (struct intake_camera){.age_us = -1};
    for (const struct frame *at = intake->queued.first; at != NULL; at = at->next) {
        out->n_queued += strcmp(at->camera, camera) == 0;
    }
    out->is_at_work = is_at_work(intake, camera);
    pthread_mutex_unlock(&intake->lock);
}

bool intake_is_silent(struct intake *intake, const char *camera, int64_t since_ms)
{
    struct intake_camera waiting;
    if (since_ms < INTAKE_SILENT_MS) {
        return false;
    }
    intake_camera(intake, camera, &waiting);
    return waiting.n_queued == 0 && !waiting.is_at_work;
}

/* Which of a camera's queued frames, with a new one behind them, leaves the shortest gap. The first goes where there is no other. */
static size_t thinnest(struct frame *const *its, size_t n, const struct frame *newest)
{
    size_t i_least = 0;
    int64_t least_ms = INT64_MAX;
    for (size_t i = 1; i < n; i++) {
        int64_t after_ms = i + 1 < n ? its[i + 1]->received_ms : newest->received_ms;
        int64_t gap_ms = after_ms - its[i - 1]->received_ms;
        if (gap_ms < least_ms) {
            least_ms = gap_ms;
            i_least = i;
        }
    }
    return i_least;
}

/* Under lock. */
static void drop(struct intake *intake, struct frame *frame, struct turn *turn,
                 struct frame_list *dropped)
{
    list_remove(&intake->queued, frame);
    intake->n_bytes -= frame->n_bytes;
    intake->n_dropped++;
    turn->known.n_dropped++;
    turn->known.n_dropped_undecided += turn->known.is_undecided;
    frame->is_dropped = true;
    list_push(dropped, frame);
}

/* Under lock. For a live frame: take some of its camera out, where there are too many or the intake is full. */
static void make_place(struct intake *intake, const struct frame *frame, struct frame_list *dropped)
{
    struct frame *its[FRAME_UNDECIDED_QUEUED];
    size_t n = 0, i;
    struct turn *turn = make_turn(intake, frame->camera);
    bool is_undecided = turn->known.is_undecided;
    size_t n_most = is_undecided ? FRAME_UNDECIDED_QUEUED : FRAME_LIVE_QUEUED;
    struct frame *at = intake->queued.first;
    for (; at != NULL && n < WEIR_ARRAY_LEN(its); at = at->next) {
        if (at->is_live && strcmp(at->camera, frame->camera) == 0) {
            its[n++] = at;
        }
    }
    while (n > 0 && (n >= n_most || !has_room(intake, frame))) {
        bool is_old = frame->received_ms - its[0]->received_ms > FRAME_UNDECIDED_MS;
        i = is_undecided && !is_old ? thinnest(its, n, frame) : 0;
        drop(intake, its[i], turn, dropped);
        n--;
        memmove(&its[i], &its[i + 1], (n - i) * sizeof(struct frame *));
    }
}

weir_status intake_put(struct intake *intake, struct frame *frame, int64_t wait_ms)
{
    struct frame_list dropped;
    list_init(&dropped);
    struct timespec deadline = weir_deadline_after(WEIR_MAX(wait_ms, 0));
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&intake->lock);
    if (frame->is_live && !intake->is_closed && intake->is_open) {
        make_place(intake, frame, &dropped);
    }
    for (;;) {
        if (intake->is_closed) {
            status = WEIR_ERR_CANCELLED;
        } else if (list_has(&intake->queued, frame) || list_has(&intake->in_hand, frame)) {
            status = WEIR_ERR_EXISTS;
        } else if (!has_room(intake, frame)) {
            status = WEIR_ERR_UNAVAILABLE;
            if (wait_change(intake, wait_ms, &deadline)) {
                status = WEIR_OK;
                continue;
            }
        }
        break;
    }
    if (status == WEIR_OK) {
        list_push(&intake->queued, frame);
        intake->n_bytes += frame->n_bytes;
        intake->n_accepted++;
        intake->last_ms = frame->received_ms;
        pthread_cond_broadcast(&intake->changed);
    }
    pthread_mutex_unlock(&intake->lock);
    list_free(&dropped);
    return status;
}

/* Under lock, which is free while it is done. */
static void run_errand(struct intake *intake)
{
    struct errand *errand = intake->errand;
    intake->errand = NULL;
    pthread_mutex_unlock(&intake->lock);
    errand->fn(errand->context);
    pthread_mutex_lock(&intake->lock);
    errand->is_done = true;
    pthread_cond_broadcast(&intake->changed);
}

weir_status intake_run(struct intake *intake, void (*fn)(void *context), void *context)
{
    struct errand errand = {.fn = fn, .context = context};
    pthread_mutex_lock(&intake->lock);
    while (intake->errand != NULL && !intake->is_closed) {
        pthread_cond_wait(&intake->changed, &intake->lock);
    }
    if (!intake->is_closed) {
        intake->errand = &errand;
        pthread_cond_broadcast(&intake->changed);
        while (!errand.is_done && (!intake->is_closed || intake->errand != &errand)) {
            pthread_cond_wait(&intake->changed, &intake->lock);
        }
        intake->errand = intake->errand == &errand ? NULL : intake->errand;
    }
    pthread_mutex_unlock(&intake->lock);
    return errand.is_done ? WEIR_OK : WEIR_ERR_CANCELLED;
}

/* Under lock. CANCELLED: closed and empty, or given up; TIMEOUT: nothing has come. */
static weir_status await_frame(struct intake *intake, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(WEIR_MAX(wait_ms, 0));
    bool has_run = false;
    for (;;) {
        bool has_next = choose(intake) != NULL;
        bool is_asked = intake->errand != NULL && !(has_run && has_next);
        bool is_busy = intake->n_at_work > 0;
        bool is_held = !has_next && !intake->is_closed && (intake->queued.n > 0 || is_busy);
        if (is_asked ? is_busy : is_held) {
            pthread_cond_wait(&intake->changed, &intake->lock);
        } else if (is_asked) {
            run_errand(intake);
            has_run = true;
        } else if (has_next) {
            return WEIR_OK;
        } else if (intake->is_closed) {
            if (intake->queued.n == 0 || weir_cond_wait_until(&intake->changed, &intake->lock,
                                                              &intake->give_up) == ETIMEDOUT) {
                return WEIR_ERR_CANCELLED;
            }
        } else if (!wait_change(intake, wait_ms, &deadline)) {
            return WEIR_ERR_TIMEOUT;
        }
    }
}

/* Under lock. A camera takes its turn. What those at work had spent before holds the time back: they keep their claim on it. */
static void begin_turn(struct intake *intake, const struct frame *frame)
{
    struct turn *turn = make_turn(intake, frame->camera);
    turn->known.age_us = ((int64_t)weir_mono_ns() - (int64_t)frame->received_ns) / 1000;
    turn->spent_ns = spent(intake, frame);
    uint64_t least_ns = turn->spent_ns;
    for (size_t i = 0; i < intake->n_at_work; i++) {
        const struct turn *other = find_turn(intake, intake->at_work[i]);
        least_ns = other != NULL ? WEIR_MIN(least_ns, other->spent_ns) : least_ns;
    }
    intake->now_ns = WEIR_MAX(intake->now_ns, least_ns);
    memcpy(intake->at_work[intake->n_at_work++], frame->camera, FRAME_CAMERA_BYTES);
}

weir_status intake_take(struct intake *intake, int64_t wait_ms, struct frame **out)
{
    pthread_mutex_lock(&intake->lock);
    weir_status status = await_frame(intake, wait_ms);
    struct frame *frame = status != WEIR_OK ? NULL : choose(intake);
    if (frame != NULL) {
        begin_turn(intake, frame);
        list_remove(&intake->queued, frame);
        intake->n_bytes -= frame->n_bytes;
        list_push(&intake->in_hand, frame);
        pthread_cond_broadcast(&intake->changed);
        *out = frame;
    }
    pthread_mutex_unlock(&intake->lock);
    return status;
}

void intake_done(struct intake *intake, struct frame *frame)
{
    /* The source first: a directory's file must be gone before the frame may be taken again. */
    if (frame->on_durable != NULL) {
        frame->on_durable(frame->context, frame);
    }
    pthread_mutex_lock(&intake->lock);
    list_remove(&intake->in_hand, frame);
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
    frame_destroy(frame);
}

void intake_counts(struct intake *intake, struct intake_counts *out)
{
    pthread_mutex_lock(&intake->lock);
    *out = (struct intake_counts){intake->queued.n,  intake->in_hand.n, intake->n_accepted,
                                  intake->n_dropped, intake->is_open,   intake->last_ms};
    pthread_mutex_unlock(&intake->lock);
}
