/** Options of the door "mqtt". */
#ifndef WEIR_ENDPOINT_DOOR_MQTT_H
#define WEIR_ENDPOINT_DOOR_MQTT_H

#include "endpoint/broker.h"

struct weir_door_mqtt {
    struct weir_broker broker;
    char *prefix;
    bool discovery;
};

#endif
