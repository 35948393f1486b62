/** Options of the sink "mqtt". */
#ifndef WEIR_ENDPOINT_SINK_MQTT_H
#define WEIR_ENDPOINT_SINK_MQTT_H

#include "endpoint/broker.h"

struct weir_sink_mqtt {
    struct weir_broker broker;
    char *topic;
    bool last;
};

#endif
