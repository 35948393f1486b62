#include "endpoint/door/command.h"

#include "base/record.h"
#include "endpoint/door.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_door_command, program, "program", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Name of a program in the folder " WEIR_DOOR_PROGRAMS " of the node"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    const struct weir_door_command *command = options_of;
    return weir_name_is_valid(command->program)
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     ".program: \"%.80s\" is no name of a program: only those are started "
                     "that the node's operator has put into " WEIR_DOOR_PROGRAMS
                     ", and they are named as they are called there",
                     command->program);
}

static const struct weir_endpoint_ops ops = {.check = check};

const struct weir_kind weir_door_command_kind = {
    .name = "command",
    .doc =
        "A program of the node, which gets the command as one line of JSON on its standard input "
        "and ends within the command's time: with exit status 0 it is done, 10 repeated, 11 late, "
        "12 refused, any other jammed. Which programs there are is the operator's: files "
        "in " WEIR_DOOR_PROGRAMS " that only root can write.",
    WEIR_KIND_OPTIONS(weir_door_command, options),
    .ops = &ops,
};
