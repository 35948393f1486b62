#include "endpoint/door/mqtt.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "predict/door.h"
#include "predict/mqtt_link.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOW_MS 1000

enum topic { COMMAND, REPLY, STATE, AVAILABILITY, LOCKDOWN, N_TOPICS };

struct door {
    const struct weir_door_mqtt *options;
    struct door_config config;
    struct mqtt_link *link;
    char topics[N_TOPICS][WEIR_BROKER_TOPIC_MAX + 256];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    char waits_for[WEIR_UUID_BYTES]; /**< The command that is to be answered; "": none is. */
    bool has_answer, is_cancelled;
    bool is_away;    /**< Its controller is, by its last will. */
    int n_farewells; /**< How often that has said so. */
    struct door_answer answer;
};

/* ---- what is heard; on the link's thread ------------------------------------------------------- */

static void hear_reply(struct door *door, const char *text, size_t len)
{
    struct door_answer answer;
    char id[64];
    struct weir_error ignored;
    if (door_answer_read(text, len, &answer, id, &ignored) != WEIR_OK) {
        return;
    }
    pthread_mutex_lock(&door->lock);
    if (door->waits_for[0] != '\0' && strcmp(id, door->waits_for) == 0) {
        door->answer = answer;
        door->has_answer = true;
        pthread_cond_broadcast(&door->changed);
    }
    pthread_mutex_unlock(&door->lock);
}

static void hear_state(struct door *door, const char *text, size_t len)
{
    static const struct {
        const char *text;
        enum door_state state;
    } states[] = {{"locked", DOOR_STATE_LOCKED},
                  {"unlocked", DOOR_STATE_OPEN},
                  {"open", DOOR_STATE_OPEN},
                  {"jammed", DOOR_STATE_JAMMED}};
    enum door_state state = DOOR_STATE_UNKNOWN;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(states); i++) {
        size_t k = 0;
        while (k < len && tolower((unsigned char)text[k]) == states[i].text[k]) {
            k++;
        }
        state = k == len && states[i].text[k] == '\0' ? states[i].state : state;
    }
    door_board_said(door->config.board, door->config.i_door, state);
}

static void heard(void *context, const char *topic, const char *text, size_t len)
{
    struct door *door = context;
    if (strcmp(topic, door->topics[REPLY]) == 0) {
        hear_reply(door, text, len);
    } else if (strcmp(topic, door->topics[STATE]) == 0) {
        hear_state(door, text, len);
    } else if (strcmp(topic, door->topics[AVAILABILITY]) == 0) {
        pthread_mutex_lock(&door->lock);
        door->is_away = len == strlen("offline") && memcmp(text, "offline", len) == 0;
        door->n_farewells += door->is_away;
        pthread_cond_broadcast(&door->changed);
        pthread_mutex_unlock(&door->lock);
    }
}

/* Home Assistant sees whether it is open; it does not open it. */
static void discover(void *context, struct mqtt_link *link)
{
    struct door *door = context;
    const struct weir_door *its = &door->config.board->doors[door->config.i_door];
    const char *project = door->config.spec->project;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *unique = weir_arena_printf(&arena, "weir-%s-%s", project, its->name);
    WEIR_AUTO(weir_json_auto_free)
    json_t *json = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:{s:[s],s:s,s:s}}", "name", its->name, "unique_id",
        unique, "device_class", "lock", "state_topic", door->topics[STATE], "value_template",
        "{{ 'OFF' if value | upper == 'LOCKED' else 'ON' }}", "payload_on", "ON", "payload_off",
        "OFF", "availability_topic", door->topics[AVAILABILITY], "qos", 1, "device", "identifiers",
        unique, "name", its->name, "manufacturer", "Weir");
    const struct mqtt_message message = {
        .topic = weir_arena_printf(&arena, "homeassistant/binary_sensor/weir_%s/%s/config", project,
                                   its->name),
        .text = weir_json_text(json, &arena),
        .is_retained = true};
    mqtt_link_say(link, &message);
    weir_arena_fini(&arena);
}

/* ---- what is sent ------------------------------------------------------------------------------ */

static weir_status wait_for_answer(struct door *door, const struct timespec *deadline,
                                   struct door_answer *answer, struct weir_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&door->lock);
    int n_before = door->n_farewells; /* one that goes now does not answer any more */
    while (!door->has_answer && !door->is_cancelled && rc != ETIMEDOUT &&
           door->n_farewells == n_before) {
        rc = weir_cond_wait_until(&door->changed, &door->lock, deadline);
    }
    bool is_answered = door->has_answer;
    *answer = door->answer;
    door->waits_for[0] = '\0';
    pthread_mutex_unlock(&door->lock);
    return is_answered
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_TIMEOUT, "its controller did not answer to %s",
                                door->topics[COMMAND]);
}

static weir_status send_command(struct door *door, const struct door_command *command,
                                int64_t timeout_ms, struct door_answer *answer,
                                struct weir_error *err)
{
    struct timespec deadline = weir_deadline_after(timeout_ms);
    const struct mqtt_message message = {.topic = door->topics[COMMAND],
                                         .text = command->text,
                                         .needs_listener = true,
                                         .expiry_ms = timeout_ms};
    pthread_mutex_lock(&door->lock);
    (void)snprintf(door->waits_for, sizeof door->waits_for, "%s", command->id);
    door->has_answer = false;
    pthread_mutex_unlock(&door->lock);
    WEIR_TRY(mqtt_link_publish(door->link, &message, timeout_ms, err));
    return wait_for_answer(door, &deadline, answer, err);
}

static weir_status show(struct door *door, bool is_locked_down, struct weir_error *err)
{
    const struct mqtt_message message = {.topic = door->topics[LOCKDOWN],
                                         .text = is_locked_down ? "ON" : "OFF",
                                         .is_retained = true};
    return mqtt_link_publish(door->link, &message, SHOW_MS, err);
}

static weir_status tick(struct door *door, struct weir_error *err)
{
    WEIR_TRY(mqtt_link_look(door->link, err));
    pthread_mutex_lock(&door->lock);
    bool is_away = door->is_away;
    pthread_mutex_unlock(&door->lock);
    return is_away ? weir_error_set(err, WEIR_ERR_UNAVAILABLE, "its controller is offline, by %s",
                                    door->topics[AVAILABILITY])
                   : WEIR_OK;
}

/* ---- life -------------------------------------------------------------------------------------- */

static void cancel(struct door *door)
{
    pthread_mutex_lock(&door->lock);
    door->is_cancelled = true;
    pthread_cond_broadcast(&door->changed);
    pthread_mutex_unlock(&door->lock);
    mqtt_link_cancel(door->link);
}

static void close_link(struct door *door)
{
    mqtt_link_close(door->link);
    pthread_cond_destroy(&door->changed);
    pthread_mutex_destroy(&door->lock);
    free(door);
}

static weir_status open_link(const struct door_config *config, struct door **out,
                             struct weir_error *err)
{
    static const char *const names[N_TOPICS] = {"command", "reply", "state", "availability",
                                                "lockdown"};
    struct door *door = weir_xalloc(sizeof *door);
    *door = (struct door){.options = config->options, .config = *config};
    pthread_mutex_init(&door->lock, NULL);
    pthread_cond_init(&door->changed, NULL);
    for (size_t i = 0; i < N_TOPICS; i++) {
        (void)snprintf(door->topics[i], sizeof door->topics[i], "%s/%s/door/%s/%s",
                       door->options->prefix, config->spec->project,
                       config->board->doors[config->i_door].name, names[i]);
    }
    const struct mqtt_link_config link = {
        .broker = &door->options->broker,
        .topics = {door->topics[REPLY], door->topics[STATE], door->topics[AVAILABILITY]},
        .heard = heard,
        .connected = door->options->discovery ? discover : NULL,
        .context = door};
    weir_status status = mqtt_link_open(&link, &door->link, err);
    if (status != WEIR_OK) {
        close_link(door);
        return status;
    }
    *out = door;
    return WEIR_OK;
}

const struct door_ops door_mqtt = {.open = open_link,
                                   .send = send_command,
                                   .show = show,
                                   .tick = tick,
                                   .cancel = cancel,
                                   .close = close_link};
