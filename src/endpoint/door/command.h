/** Options of the door "command". */
#ifndef WEIR_ENDPOINT_DOOR_COMMAND_H
#define WEIR_ENDPOINT_DOOR_COMMAND_H

struct weir_door_command {
    char *program;
};

#endif
