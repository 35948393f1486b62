#include "endpoint/sink/mqtt.h"

#include "endpoint/endpoint.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_sink_mqtt, broker.url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "The broker: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] with TLS"),
    WEIR_OPT_JSON(weir_sink_mqtt, broker.user, "user", TEXT, 0, NULL, 0, 0,
                  "Name that the broker knows it by"),
    WEIR_OPT_JSON(weir_sink_mqtt, broker.password, "password", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Password of the user"),
    WEIR_OPT_JSON(weir_sink_mqtt, broker.ca_file, "ca-file", TEXT, WEIR_OPTION_PATH, NULL, 0, 0,
                  "File on the node with the authorities to trust, in place of the system's"),
    WEIR_OPT_JSON(weir_sink_mqtt, topic, "topic", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "What each decision is sent to; {camera} in it is the decision's camera"),
    WEIR_OPT_JSON(weir_sink_mqtt, last, "last", BOOL, 0, NULL, 0, 0,
                  "The broker keeps the last decision of each topic for whoever comes later"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    const struct weir_sink_mqtt *mqtt = options_of;
    WEIR_TRY(weir_broker_check(&mqtt->broker, err));
    return weir_broker_check_topic(mqtt->topic, ".topic", err);
}

static const struct weir_endpoint_ops ops = {.check = check};

const struct weir_kind weir_sink_mqtt_kind = {
    .name = "mqtt",
    .doc =
        "A broker, by MQTT 5: each decision is one message, JSON, delivered at least once (QoS 1). "
        "One may come again, with the same \"id\". While the broker does not take them, decisions "
        "wait in the replica's outbox. On TOPIC/availability (without {camera}) there is online, "
        "retained, and offline once the replica is gone.",
    WEIR_KIND_OPTIONS(weir_sink_mqtt, options),
    .ops = &ops,
    .library = "mosquitto",
};
