#include "endpoint/door/mqtt.h"

#include "endpoint/door.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_door_mqtt, broker.url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "The broker: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] with TLS"),
    WEIR_OPT_JSON(weir_door_mqtt, broker.user, "user", TEXT, 0, NULL, 0, 0,
                  "Name that the broker knows it by"),
    WEIR_OPT_JSON(weir_door_mqtt, broker.password, "password", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Password of the user"),
    WEIR_OPT_JSON(weir_door_mqtt, broker.ca_file, "ca-file", TEXT, WEIR_OPTION_PATH, NULL, 0, 0,
                  "File on the node with the authorities to trust, in place of the system's"),
    WEIR_OPT_JSON(weir_door_mqtt, prefix, "prefix", TEXT, 0, "weir", 0, 0,
                  "What its topics begin with: PREFIX/PROJECT/door/DOOR/…"),
    WEIR_OPT_JSON(weir_door_mqtt, discovery, "discovery", BOOL, 0, NULL, 0, 0,
                  "Tell Home Assistant whether it is open: by a retained message on "
                  "homeassistant/binary_sensor/weir_PROJECT/DOOR/config"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    const struct weir_door_mqtt *mqtt = options_of;
    WEIR_TRY(weir_broker_check(&mqtt->broker, err));
    return weir_broker_check_topic(mqtt->prefix, ".prefix", err);
}

static const struct weir_endpoint_ops ops = {.check = check};

const struct weir_kind weir_door_mqtt_kind = {
    .name = "mqtt",
    .doc =
        "A controller that a broker reaches, by MQTT 5. Below PREFIX/PROJECT/door/DOOR lie "
        "command (JSON; never retained, and gone from the broker once it is not valid any more), "
        "reply, where the controller answers {\"id\", \"answer\", \"at\"}; retained: state, where "
        "it says LOCKED, UNLOCKED, OPEN or JAMMED, availability, where it says online, and "
        "offline by its last will, and lockdown, where Weir says ON or OFF.",
    WEIR_KIND_OPTIONS(weir_door_mqtt, options),
    .ops = &ops,
    .library = "mosquitto",
};
