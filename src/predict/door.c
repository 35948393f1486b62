#include "predict/door.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "predict/contact.h"
#include "predict/door/plan.h"
#include "predict/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_MS      100
#define LOCK_EVERY_MS 5000
#define TELL_EVERY_MS 500
#define SILENT        "silent"
#define HOLD_EVERY_MS 10000
#define HOLD_FOR_MS   25000
#define ZONES         "/usr/share/zoneinfo/"

/** What happened last, for people. */
struct last {
    char command[WEIR_UUID_BYTES], decision[64], person[257], camera[64];
    char verb[8], outcome[16]; /**< An answer, a plan, or "silent". */
    char said[DOOR_SAID_BYTES];
    int64_t time_ms, valid_until_ms;
};

struct sink {
    const struct door_setup *setup;
    const struct predict_spec *spec;
    const struct door_ops *ops;
    struct door *door;
    struct contact contact;
    /* The thread's own. */
    int64_t seq;
    int64_t hold_ms; /**< Monotonic: when the hold is to be renewed; 0: it is not held. */
    int64_t lock_ms; /**< Monotonic: when "lock" is to be sent (again); 0: it is not. */
    bool is_shown, shown, is_locked_down;
    char own[8 + 16 +
             1];     /**< What came of the last "hold" or "lock", with its verb; "": none since. */
    bool is_news;    /**< That people have not been told. */
    int64_t told_ms; /**< Monotonic: when they were last. */
    bool is_out_of_reach; /**< By the last tick: no answer has said so. */
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_cancelled;
    struct last last;
    int64_t n_done, n_not_done;
};

static const char *const words[] = {[DOOR_DONE] = "done",
                                    [DOOR_REPEATED] = "repeated",
                                    [DOOR_LATE] = "late",
                                    [DOOR_REFUSED] = "refused",
                                    [DOOR_JAMMED] = "jammed"};

bool door_word_read(const char *text, enum door_word *out)
{
    for (size_t i = 0; text != NULL && i < WEIR_ARRAY_LEN(words); i++) {
        if (strcmp(words[i], text) == 0) {
            *out = (enum door_word)i;
            return true;
        }
    }
    return false;
}

weir_status door_answer_read(const char *text, size_t len, struct door_answer *out, char id[64],
                             struct weir_error *err)
{
    struct door_answer answer = {0};
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    WEIR_TRY(weir_json_parse(text, len, "the door's answer", &json, err));
    const char *its = json_string_value(json_object_get(json, "id"));
    const json_t *at = json_object_get(json, "at");
    const char *said = json_string_value(json_object_get(json, "said"));
    if (!door_word_read(json_string_value(json_object_get(json, "answer")), &answer.word)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the door's answer is none of done, repeated, late, refused, jammed");
    }
    if (json_is_integer(at)) {
        answer.at_ms = json_integer_value(at);
    } else if (json_is_string(at)) {
        (void)weir_time_parse(json_string_value(at), &answer.at_ms);
    }
    (void)snprintf(answer.said, sizeof answer.said, "%s", said != NULL ? said : "");
    (void)snprintf(id, 64, "%s", its != NULL ? its : "");
    *out = answer;
    return WEIR_OK;
}

/* ---- what holds now -------------------------------------------------------------------------- */

weir_status doors_set_zone(const struct predict_spec *spec, struct weir_error *err)
{
    char path[sizeof ZONES + 80];
    if (spec->n_doors == 0) {
        return WEIR_OK;
    }
    const char *zone = spec->doors[0].time_zone;
    (void)snprintf(path, sizeof path, ZONES "%s", zone);
    if (strcmp(zone, "UTC") != 0 && access(path, R_OK) != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "doors: this node does not know the time zone %s: install Debian's "
                              "package tzdata, or correct time_zone",
                              zone);
    }
    (void)setenv("TZ", zone, 1);
    tzset();
    return WEIR_OK;
}

static struct door_moment moment_now(void)
{
    struct door_moment now = {.ms = weir_time_ms()};
    time_t seconds = now.ms / 1000;
    struct tm local;
    if (localtime_r(&seconds, &local) != NULL) {
        now.weekday = (local.tm_wday + 6) % 7;
        now.minute = local.tm_hour * 60 + local.tm_min;
    }
    return now;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n && name != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Before anything is served nobody knows whether it is locked down: then it counts as if it were. */
static bool look_at_lists(struct sink *sink, const char *person, bool *out_is_allowed)
{
    struct serving *serving = serving_slot_get(sink->setup->slot);
    bool is_locked_down = true;
    *out_is_allowed = false;
    if (serving != NULL) {
        const struct lists *lists = &serving->lists;
        is_locked_down = has_name(lists->locked, lists->n_locked, sink->setup->door->name);
        *out_is_allowed = has_name(lists->allow, lists->n_allow, person);
    }
    serving_unref(serving);
    return is_locked_down;
}

static size_t index_of(const struct sink *sink)
{
    return (size_t)(sink->setup->door - sink->setup->board->doors);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* For the server, as an order: what was not sent has the reason as its state, in one word. */
static void note_order(struct sink *sink, const struct last *last, const char *state,
                       int64_t answered_ms, bool is_held)
{
    struct door_order order = {.sent_ms = last->time_ms,
                               .valid_until_ms = last->valid_until_ms,
                               .answered_ms = answered_ms,
                               .is_held = is_held};
    (void)snprintf(order.id, sizeof order.id, "%s", last->command);
    (void)snprintf(order.door, sizeof order.door, "%s", sink->setup->door->name);
    (void)snprintf(order.verb, sizeof order.verb, "%s", last->verb);
    (void)snprintf(order.state, sizeof order.state, "%s", state);
    (void)snprintf(order.decision, sizeof order.decision, "%s", last->decision);
    (void)snprintf(order.camera, sizeof order.camera, "%s", last->camera);
    (void)snprintf(order.detail, sizeof order.detail, "%s", last->said);
    for (char *at = order.state; (at = strchr(at, ' ')) != NULL;) {
        *at = '-';
    }
    door_orders_note(sink->setup->orders, &order);
}

static void note(struct sink *sink, const struct last *last, bool is_done)
{
    pthread_mutex_lock(&sink->lock);
    sink->last = *last;
    sink->n_done += is_done;
    sink->n_not_done += !is_done;
    pthread_mutex_unlock(&sink->lock);
    sink->is_news = true;
    weir_log(is_done ? WEIR_LOG_INFO : WEIR_LOG_WARN, "door_command",
             WEIR_KV_STR("door", sink->setup->door->name), WEIR_KV_STR("verb", last->verb),
             WEIR_KV_STR("command", last->command), WEIR_KV_STR("outcome", last->outcome),
             WEIR_KV_STR("said", last->said));
}

/* Wait before the next try; ends when it is to stop. @return It is to stop. */
static bool wait_cancelled(struct sink *sink, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&sink->lock);
    while (!sink->is_cancelled &&
           weir_cond_wait_until(&sink->changed, &sink->lock, &deadline) != ETIMEDOUT) {
    }
    bool is_cancelled = sink->is_cancelled;
    pthread_mutex_unlock(&sink->lock);
    return is_cancelled;
}

/* Until it is answered, or until_ms (wall clock). @return As the last try. */
static weir_status send_until(struct sink *sink, struct door_command *command, int64_t until_ms,
                              struct door_answer *answer, struct weir_error *err)
{
    weir_status status = WEIR_ERR_TIMEOUT;
    (void)weir_error_set(err, status, "there was no time left to send it");
    command->now_ms = weir_time_ms();
    while (command->now_ms < until_ms) {
        int64_t left_ms = until_ms - command->now_ms;
        *answer = (struct door_answer){0};
        status = sink->ops->send(sink->door, command, WEIR_MIN(left_ms, (int64_t)DOOR_ANSWER_MS),
                                 answer, err);
        if (status == WEIR_OK || wait_cancelled(sink, WEIR_MIN(left_ms, (int64_t)AGAIN_MS))) {
            return status;
        }
        command->now_ms = weir_time_ms();
    }
    return status;
}

/* What the door has said, or that it has not, is what people see of it. */
static bool take_answer(struct sink *sink, weir_status status, const struct door_answer *answer,
                        const struct weir_error *why, struct last *last)
{
    bool is_silent = status != WEIR_OK;
    bool is_done = !is_silent && (answer->word == DOOR_DONE || answer->word == DOOR_REPEATED);
    (void)snprintf(last->outcome, sizeof last->outcome, "%s",
                   is_silent ? SILENT : words[answer->word]);
    (void)snprintf(last->said, sizeof last->said, "%.*s", DOOR_SAID_BYTES - 1,
                   is_silent ? why->message : answer->said);
    if (is_silent) {
        contact_is_lost(&sink->contact, why->message);
        return false;
    }
    contact_is_good(&sink->contact);
    door_board_jammed(sink->setup->board, index_of(sink), answer->word == DOOR_JAMMED);
    return is_done;
}

/* Strictly more than any before, also of this replica's processes before it: the outbox keeps it. */
static int64_t next_seq(struct sink *sink, int64_t now_ms)
{
    sink->seq = WEIR_MAX(sink->seq + 1, now_ms * 1000);
    return sink->seq;
}

static json_t *command_json(struct sink *sink, const char *id, const char *verb, int64_t issued_ms,
                            int64_t pulse_ms)
{
    const struct weir_door *door = sink->setup->door;
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I}", "id", id, "door", door->name, "verb",
                     verb, "replica", sink->spec->host.replica, "issued_ms", (json_int_t)issued_ms,
                     "valid_ms", (json_int_t)door->valid_ms, "pulse_ms", (json_int_t)pulse_ms,
                     "seq", (json_int_t)next_seq(sink, issued_ms));
}

/* What of the decision goes along. */
static void add_decision(json_t *command, const json_t *decision)
{
    static const char *const members[][2] = {{"id", "decision"},
                                             {"key", "key"},
                                             {"camera", "camera"},
                                             {"person", "person"},
                                             {"verdict", "verdict"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        json_t *value = json_object_get(decision, members[i][0]);
        if (value != NULL && !json_is_null(value)) {
            json_object_set(command, members[i][1], value);
        }
    }
}

/* A frame without a key is named by camera and number. */
static void add_key(json_t *command, const json_t *decision)
{
    if (json_object_get(command, "key") == NULL) {
        json_object_set_new(
            command, "key",
            json_sprintf("%s/%lld", json_string_value(json_object_get(decision, "camera")),
                         (long long)json_integer_value(json_object_get(decision, "frame"))));
    }
}

static void put(char *out, size_t size, const json_t *decision, const char *member)
{
    const char *text = json_string_value(json_object_get(decision, member));
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static void open_for(struct sink *sink, const json_t *decision, int64_t issued_ms,
                     struct last *last)
{
    const struct weir_door *door = sink->setup->door;
    struct door_answer answer = {0};
    struct weir_error why = {0};
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    note_order(sink, last, ORDER_SENT, 0, false);
    json_t *json = command_json(sink, last->command, door->verb, issued_ms, door->pulse_ms);
    add_decision(json, decision);
    add_key(json, decision);
    struct door_command command = {
        .id = last->command, .text = weir_json_text(json, &arena), .pulse_ms = door->pulse_ms};
    weir_status status = send_until(sink, &command, last->valid_until_ms, &answer, &why);
    bool is_done = take_answer(sink, status, &answer, &why, last);
    note_order(sink, last, last->outcome, status == WEIR_OK ? weir_time_ms() : 0, false);
    bool is_known = strcmp(last->outcome, SILENT) != 0; /* a silent one may have opened */
    if (is_known && sink->hold_ms == 0) {
        door_board_until(sink->setup->board, index_of(sink),
                         is_done ? weir_mono_ms() + door->pulse_ms : 0);
    }
    note(sink, last, is_done);
    json_decref(json);
    weir_arena_fini(&arena);
}

static void take_decision(struct sink *sink, const json_t *decision)
{
    const struct weir_door *door = sink->setup->door;
    const char *time = json_string_value(json_object_get(decision, "time_ms"));
    struct last last = {0};
    struct door_visitor visitor = {
        .camera = json_string_value(json_object_get(decision, "camera")),
        .verdict = json_string_value(json_object_get(decision, "verdict")),
        .person = json_string_value(json_object_get(decision, "person"))};
    bool is_whole = visitor.camera != NULL && visitor.verdict != NULL && time != NULL &&
                    weir_time_parse(time, &visitor.issued_ms) == WEIR_OK &&
                    !json_is_true(json_object_get(decision, "is_sandbox"));
    bool is_locked_down = look_at_lists(sink, visitor.person, &visitor.is_allowed);
    const struct door_moment now = moment_now();
    enum door_plan plan =
        is_whole ? door_plan_make(door, &visitor, &now, is_locked_down) : DOOR_PLAN_NONE;
    if (plan == DOOR_PLAN_NONE) {
        return;
    }
    put(last.decision, sizeof last.decision, decision, "id");
    put(last.person, sizeof last.person, decision, "person");
    put(last.camera, sizeof last.camera, decision, "camera");
    door_command_id(last.decision, door->name, last.command);
    (void)snprintf(last.verb, sizeof last.verb, "%s", door->verb);
    last.time_ms = now.ms;
    last.valid_until_ms = visitor.issued_ms + door->valid_ms;
    if (plan == DOOR_PLAN_SEND &&
        !door_board_open(sink->setup->board, index_of(sink), weir_mono_ms(),
                         door->valid_ms + door->pulse_ms)) {
        plan = DOOR_PLAN_INTERLOCKED;
    }
    if (plan != DOOR_PLAN_SEND) {
        (void)snprintf(last.outcome, sizeof last.outcome, "%s", door_plan_text(plan));
        note_order(sink, &last, last.outcome, 0, true);
        note(sink, &last, false);
        return;
    }
    open_for(sink, decision, visitor.issued_ms, &last);
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err)
{
    for (size_t i = 0; i < outcome->n; i++) {
        if (wait_cancelled(sink, 0)) {
            outcome->n = i;
            return i > 0 ? WEIR_OK : weir_error_set(err, WEIR_ERR_CANCELLED, "the replica stops");
        }
        take_decision(sink, json_array_get(decisions, i));
    }
    return WEIR_OK;
}

/* ---- hold-open and lock-down ------------------------------------------------------------------ */

/* A hold is renewed, and a door that does not hear is told to lock, every few seconds: that is one order. */
static void note_own(struct sink *sink, const struct last *last, bool is_silent)
{
    char now[sizeof sink->own];
    (void)snprintf(now, sizeof now, "%s %s", last->verb, last->outcome);
    if (strcmp(now, sink->own) != 0) {
        memcpy(sink->own, now, sizeof now);
        note_order(sink, last, last->outcome, is_silent ? 0 : weir_time_ms(), false);
    }
}

/* "hold" or "lock", without a decision. */
static bool send_own(struct sink *sink, const char *verb, int64_t pulse_ms)
{
    struct last last = {.time_ms = weir_time_ms()};
    struct door_answer answer = {0};
    struct weir_error why = {0};
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_uuid_make(last.command);
    last.valid_until_ms = last.time_ms + sink->setup->door->valid_ms;
    (void)snprintf(last.verb, sizeof last.verb, "%s", verb);
    json_t *json = command_json(sink, last.command, verb, last.time_ms, pulse_ms);
    struct door_command command = {.id = last.command,
                                   .text = weir_json_text(json, &arena),
                                   .is_lock = strcmp(verb, "lock") == 0,
                                   .pulse_ms = pulse_ms};
    weir_status status = send_until(sink, &command, last.valid_until_ms, &answer, &why);
    bool is_done = take_answer(sink, status, &answer, &why, &last);
    note_own(sink, &last, status != WEIR_OK);
    note(sink, &last, is_done);
    json_decref(json);
    weir_arena_fini(&arena);
    return is_done;
}

static void hold(struct sink *sink, int64_t now_ms)
{
    struct door_board *board = sink->setup->board;
    if (now_ms < sink->hold_ms || !door_board_open(board, index_of(sink), now_ms, HOLD_FOR_MS)) {
        return;
    }
    sink->hold_ms = now_ms + HOLD_EVERY_MS;
    if (!send_own(sink, "hold", HOLD_FOR_MS)) {
        sink->hold_ms = now_ms + AGAIN_MS * 10;
    }
}

/* A hold that did not hear of it ends by itself; a door that is locked down is told until it has heard. */
static void lock(struct sink *sink, bool is_locked_down)
{
    bool is_done = send_own(sink, "lock", 0);
    if (is_done) {
        door_board_until(sink->setup->board, index_of(sink), 0);
    }
    sink->hold_ms = 0;
    sink->lock_ms = is_locked_down && !is_done ? weir_mono_ms() + LOCK_EVERY_MS : 0;
}

static void reach(struct sink *sink)
{
    struct weir_error why;
    weir_status status = sink->ops->tick != NULL ? sink->ops->tick(sink->door, &why) : WEIR_OK;
    if (status != WEIR_OK) {
        contact_is_lost(&sink->contact, why.message);
    } else if (sink->is_out_of_reach) {
        contact_is_good(&sink->contact);
    }
    sink->is_news = sink->is_news || sink->is_out_of_reach != (status != WEIR_OK);
    sink->is_out_of_reach = status != WEIR_OK;
}

static void show(struct sink *sink, bool is_locked_down)
{
    struct weir_error why;
    bool is_new = !sink->is_shown || sink->shown != is_locked_down;
    if (is_new &&
        (sink->ops->show == NULL || sink->ops->show(sink->door, is_locked_down, &why) == WEIR_OK)) {
        sink->is_shown = true;
        sink->shown = is_locked_down;
    }
}

static void tell_news(struct sink *sink)
{
    int64_t now_ms = weir_mono_ms();
    if (sink->is_news && now_ms - sink->told_ms >= TELL_EVERY_MS) {
        sink->is_news = false;
        sink->told_ms = now_ms;
        door_board_tell(sink->setup->board);
    }
}

static void follow(struct sink *sink)
{
    bool ignored;
    struct serving *serving = serving_slot_get(sink->setup->slot);
    bool is_served = serving != NULL;
    serving_unref(serving);
    reach(sink);
    if (!is_served || wait_cancelled(sink, 0)) {
        return;
    }
    const struct door_moment now = moment_now();
    bool is_locked_down = look_at_lists(sink, NULL, &ignored);
    bool was_locked_down = sink->is_locked_down;
    pthread_mutex_lock(&sink->lock);
    sink->is_locked_down = is_locked_down;
    pthread_mutex_unlock(&sink->lock);
    sink->is_news = sink->is_news || is_locked_down != was_locked_down;
    show(sink, is_locked_down);
    if (door_is_held(sink->setup->door, &now, is_locked_down)) {
        hold(sink, weir_mono_ms());
        return;
    }
    if (sink->hold_ms == 0 && is_locked_down == was_locked_down && sink->lock_ms == 0) {
        sink->own[0] = '\0'; /* the next one begins something */
    }
    if (is_locked_down && !was_locked_down) {
        sink->lock_ms = weir_mono_ms();
    } else if (!is_locked_down) {
        sink->lock_ms = 0;
    }
    if (sink->hold_ms != 0 || (sink->lock_ms != 0 && weir_mono_ms() >= sink->lock_ms)) {
        lock(sink, is_locked_down);
    }
}

static void tick(struct sink *sink)
{
    follow(sink);
    tell_news(sink);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_door(struct sink *sink)
{
    if (sink->door != NULL) {
        sink->ops->close(sink->door);
    }
    contact_fini(&sink->contact);
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
    free(sink);
}

static weir_status open_door(const struct sink_config *config, struct sink **out,
                             struct weir_error *err)
{
    const struct door_setup *setup = config->options;
    struct sink *sink = weir_xalloc(sizeof *sink);
    *sink = (struct sink){.setup = setup,
                          .spec = config->spec,
                          .ops = predict_ops_of(setup->door->by.kind),
                          .seq = outbox_reader_note(config->reader)};
    contact_init(&sink->contact);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->changed, NULL);
    const struct door_config door = {.options = setup->door->by.options,
                                     .spec = config->spec,
                                     .board = setup->board,
                                     .i_door = index_of(sink)};
    weir_status status = sink->ops->open(&door, &sink->door, err);
    if (status != WEIR_OK) {
        close_door(sink);
        return weir_error_prefix(err, "door %s: ", setup->door->name);
    }
    *out = sink;
    return WEIR_OK;
}

static void cancel(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->is_cancelled = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
    if (sink->ops->cancel != NULL) {
        sink->ops->cancel(sink->door);
    }
}

static int64_t sync_seq(struct sink *sink)
{
    return sink->seq;
}

static const char *name_of(const void *setup)
{
    return ((const struct door_setup *)setup)->door->name;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? weir_json_string(text, "?") : json_null();
}

static void describe(struct sink *sink, json_t *status)
{
    WEIR_AUTO(weir_json_auto_free) json_t *contact = contact_to_json(&sink->contact);
    json_object_update(status, contact);
    pthread_mutex_lock(&sink->lock);
    const struct last *last = &sink->last;
    json_object_set_new(status, "door", json_string(sink->setup->door->name));
    json_object_set_new(status, "kind", json_string(sink->setup->door->by.kind->name));
    json_object_set_new(status, "state",
                        json_string(door_state_text(
                            door_board_state(sink->setup->board, index_of(sink), weir_mono_ms()))));
    json_object_set_new(status, "is_locked_down", json_boolean(sink->is_locked_down));
    json_object_set_new(status, "done", json_integer(sink->n_done));
    json_object_set_new(status, "not_done", json_integer(sink->n_not_done));
    if (last->time_ms != 0) {
        json_object_set_new(
            status, "last",
            json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "id", last->command, "verb", last->verb,
                      "outcome", last->outcome, "person", text_or_null(last->person), "camera",
                      text_or_null(last->camera), "decision", text_or_null(last->decision), "said",
                      text_or_null(last->said), "time", weir_json_time(last->time_ms)));
    }
    pthread_mutex_unlock(&sink->lock);
}

const struct sink_ops door_sink = {.open = open_door,
                                   .deliver = deliver,
                                   .sync = sync_seq,
                                   .tick = tick,
                                   .idle_ms = AGAIN_MS,
                                   .describe = describe,
                                   .cancel = cancel,
                                   .close = close_door,
                                   .identity = name_of,
                                   .waits_event = "door_waits"};
