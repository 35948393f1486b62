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

/** Their rows, for a table of options. */
#define WEIR_BROKER_OPTIONS(strct)                                                                 \
    WEIR_OPT_JSON(strct, broker.url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,                \
                  "The broker: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] with TLS"),              \
        WEIR_OPT_JSON(strct, broker.user, "user", TEXT, 0, NULL, 0, 0,                             \
                      "Name that the broker knows it by"),                                         \
        WEIR_OPT_JSON(strct, broker.password, "password", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,    \
                      "Password of the user"),                                                     \
        WEIR_OPT_JSON(strct, broker.ca_file, "ca-file", TEXT, WEIR_OPTION_PATH, NULL, 0, 0,        \
                      "File on the node with the authorities to trust, in place of the system's")

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
