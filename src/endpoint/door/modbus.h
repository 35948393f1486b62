/** Options of the door "modbus". */
#ifndef WEIR_ENDPOINT_DOOR_MODBUS_H
#define WEIR_ENDPOINT_DOOR_MODBUS_H

#include <stdint.h>

struct weir_door_modbus {
    char *host;
    int64_t port, unit, coil;
};

#endif
