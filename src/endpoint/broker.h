/** Broker: where MQTT messages go, as doors and sinks of kind "mqtt" are told. Pure. */
#ifndef WEIR_ENDPOINT_BROKER_H
#define WEIR_ENDPOINT_BROKER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_BROKER_TOPIC_MAX 255

/** The member `broker` of a kind's options. */
struct weir_broker {
    char *url, *user, *password, *ca_file; /**< NULL: none, but for url. */
};

/** What an address says. */
struct weir_broker_place {
    char host[256];
    int64_t port;
    bool is_tls;
};

/** @return INVALID with what is wrong, at ".url". */
weir_status weir_broker_place_read(const char *url, struct weir_broker_place *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Address, and a user with a password only. @return INVALID with the place. */
weir_status weir_broker_check(const struct weir_broker *broker,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** May messages be sent to it? Not with wildcards, blanks at its ends, or "$" in front.
 *  @param place  ".topic" */
weir_status weir_broker_check_topic(const char *topic, const char *place,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
