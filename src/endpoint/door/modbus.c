#include "endpoint/door/modbus.h"

#include "endpoint/door.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_door_modbus, host, "host", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Name or address of the module"),
    WEIR_OPT_JSON(weir_door_modbus, port, "port", INT, 0, "502", 1, 65535, "Its TCP port"),
    WEIR_OPT_JSON(weir_door_modbus, unit, "unit", INT, 0, "1", 0, 255, "Its unit identifier"),
    WEIR_OPT_JSON(weir_door_modbus, coil, "coil", INT, WEIR_OPTION_REQUIRED, NULL, 0, 65535,
                  "Address of the coil, from 0"),
};

const struct weir_kind weir_door_modbus_kind = {
    .name = "modbus",
    .doc =
        "A relay of a module, by Modbus over TCP: the coil is set, read back, and cleared after "
        "pulse_ms, and whenever the replica starts or stops. Modbus knows no passwords: give "
        "modules a network of their own. If the replica is killed while the coil is set, it stays "
        "set until the replica runs again: set the module's own pulse time, too, where it has "
        "one.",
    WEIR_KIND_OPTIONS(weir_door_modbus, options),
    .library = "modbus",
};
