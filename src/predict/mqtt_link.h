/**
 * MQTT link: one connection to a broker, by MQTT 5, made again whenever it breaks. Nothing of a connection
 * that broke is sent on the next one: what was not acknowledged is its sender's to send again, or not.
 *
 *     mqtt_link_open(&config, &link, err);             // returns at once
 *     mqtt_link_publish(link, &message, 2000, err);    // until the broker has it
 *
 * A thread of its own connects and reads. Only where libmosquitto is in the build.
 */
#ifndef WEIR_PREDICT_MQTT_LINK_H
#define WEIR_PREDICT_MQTT_LINK_H

#include "endpoint/broker.h"

#include <stddef.h>

#define MQTT_LINK_TOPICS_MAX 4

struct mqtt_link;

/** All borrowed, and there until the link is closed. Functions are called on the link's thread. */
struct mqtt_link_config {
    const struct weir_broker *broker;
    /** Topic that is "online", retained, while it is connected, and else "offline"; NULL: none. */
    const char *availability;
    const char *topics[MQTT_LINK_TOPICS_MAX]; /**< That are listened to; NULL: no more. */
    void (*heard)(void *context, const char *topic, const char *text, size_t len);
    /** It is connected again; must not publish with a wait. NULL: nobody asks. */
    void (*connected)(void *context, struct mqtt_link *link);
    void *context;
};

struct mqtt_message {
    const char *topic, *text;
    bool is_retained;
    bool needs_listener; /**< Nobody listens to its topic: UNAVAILABLE, if the broker says so. */
    int64_t expiry_ms;   /**< The broker throws it away after that, in whole seconds; 0: never. */
};

weir_status mqtt_link_open(const struct mqtt_link_config *config, struct mqtt_link **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Send with QoS 1 and wait until the broker has it. One thread at a time.
 * @return UNAVAILABLE: there is no connection, or it broke; TIMEOUT; DENIED: the broker does not let it; CANCELLED.
 */
weir_status mqtt_link_publish(struct mqtt_link *link, const struct mqtt_message *message,
                              int64_t timeout_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Send and wait for nothing. Any thread. */
void mqtt_link_say(struct mqtt_link *link, const struct mqtt_message *message);

/** OK, or UNAVAILABLE with why there is no connection. Any thread. */
weir_status mqtt_link_look(struct mqtt_link *link, struct weir_error *err) WEIR_MUST_CHECK;

/** Waits end at once from now on. Any thread. */
void mqtt_link_cancel(struct mqtt_link *link);

/** Says "offline" first. NULL is accepted. */
void mqtt_link_close(struct mqtt_link *link);

#endif
