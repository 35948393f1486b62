#include "endpoint/sink/mqtt.h"

#include "predict/mqtt_link.h"
#include "predict/sink.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 10000

struct sink {
    const struct weir_sink_mqtt *options;
    struct mqtt_link *link;
    char availability[WEIR_BROKER_TOPIC_MAX + 16];
};

/* The topic, with the camera in its place; a camera's name has no wildcard, nor may it add levels. */
static char *topic_of(const struct sink *sink, const json_t *decision, struct weir_arena *arena)
{
    static const char hole[] = "{camera}";
    const char *topic = sink->options->topic, *at = strstr(topic, hole);
    const char *camera = json_string_value(json_object_get(decision, "camera"));
    if (at == NULL) {
        return weir_arena_strdup(arena, topic);
    }
    char *name = weir_arena_strdup(arena, camera != NULL ? camera : "");
    for (char *c = name; *c != '\0'; c++) {
        *c = strchr("/+#", *c) != NULL ? '_' : *c;
    }
    return weir_arena_printf(arena, "%.*s%s%s", (int)(at - topic), topic, name,
                             at + sizeof hole - 1);
}

static weir_status publish(struct sink *sink, const json_t *decision, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct mqtt_message message = {.topic = topic_of(sink, decision, &arena),
                                         .text = weir_json_text(decision, &arena),
                                         .is_retained = sink->options->last};
    weir_status status = mqtt_link_publish(sink->link, &message, TIMEOUT_MS, err);
    weir_arena_fini(&arena);
    return status;
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err)
{
    for (size_t i = 0; i < outcome->n; i++) {
        weir_status status = publish(sink, json_array_get(decisions, i), err);
        if (status != WEIR_OK && i > 0) {
            outcome->n = i;
            return WEIR_OK; /* the rest comes again, and says what is wrong */
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

static void cancel(struct sink *sink)
{
    mqtt_link_cancel(sink->link);
}

static void close_link(struct sink *sink)
{
    mqtt_link_close(sink->link);
    free(sink);
}

static weir_status open_link(const struct sink_config *config, struct sink **out,
                             struct weir_error *err)
{
    struct sink *sink = weir_xalloc(sizeof *sink);
    *sink = (struct sink){.options = config->options};
    const char *topic = sink->options->topic, *at = strstr(topic, "/{camera}");
    size_t len = at != NULL ? (size_t)(at - topic) : strlen(topic);
    (void)snprintf(sink->availability, sizeof sink->availability, "%.*s/availability", (int)len,
                   topic);
    const struct mqtt_link_config link = {.broker = &sink->options->broker,
                                          .availability = sink->availability};
    weir_status status = mqtt_link_open(&link, &sink->link, err);
    if (status != WEIR_OK) {
        close_link(sink);
        return status;
    }
    *out = sink;
    return WEIR_OK;
}

static const char *topic_option(const void *options)
{
    return ((const struct weir_sink_mqtt *)options)->topic;
}

const struct sink_ops sink_mqtt = {.open = open_link,
                                   .deliver = deliver,
                                   .cancel = cancel,
                                   .close = close_link,
                                   .identity = topic_option,
                                   .waits_event = "mqtt_waits"};
