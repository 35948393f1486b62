/** weir door: doors locked down and released by hand. */
#include "cli/core/verb.h"

#include <string.h>

struct door_options {
    struct cli_common common;
    char *ion, *note;
};

static const struct weir_option door_options[] = {
    CLI_COMMON_OPTIONS(door_options),
    CLI_TEXT(door_options, ion, "ion", 0, "ION",
             "Whose door; without: the one that has such a door"),
    CLI_TEXT(door_options, note, "note", 'm', "TEXT", "Why; kept with the lock-down"),
};

/* The ION that has a door of this name, where one has. */
static weir_status find_ion(struct cli_call *call, json_t *body, struct weir_error *err)
{
    struct door_options *options = call->options;
    json_t *answer, *door;
    const char *found = NULL;
    size_t i, n = 0;
    (void)body;
    if (options->ion != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/doors", NULL, &answer, err));
    json_array_foreach(json_object_get(answer, "items"), i, door)
    {
        if (strcmp(cli_text(call, door, "name"), call->words[1]) == 0) {
            const char *ion = cli_text(call, door, "ion");
            found = n++ == 0 ? ion : weir_arena_printf(call->arena, "%s, %s", found, ion);
        }
    }
    json_decref(answer);
    if (n != 1) {
        return weir_error_set(err, n == 0 ? WEIR_ERR_NOT_FOUND : WEIR_ERR_INVALID,
                              n == 0 ? "there is no door \"%s\": `weir get doors` lists them%s"
                                     : "several IONs have a door \"%s\" (%s): say which, by --ion",
                              call->words[1], n == 0 ? "" : found);
    }
    options->ion = (char *)found;
    return WEIR_OK;
}

#define LOCK_DOWN "/api/v1/ions/{-ion}/doors/{1}/lock-down"

const struct cli_command cli_door = {
    .name = "door",
    .usage = "lock-down|release DOOR [--ion ION] [--note TEXT]",
    .summary = "Lock a door down, so that nobody is let in there, or release it",
    .help = "A lock-down holds until it is released, whatever is restarted meanwhile. It does not "
            "stop what "
            "opens the door without Weir: handles, keys, fire alarms. `weir get doors` shows how "
            "doors stand.",
    CLI_WORDS(2, 2),
    CLI_OPTIONS(door_options, door_options),
    // clang-format off: a table
    CLI_VERBS(
        {"lock-down", 2, 2, .prepare = find_ion, .call = "PUT " LOCK_DOWN, .body = "-note",
         .say = "door {1} of {-ion} is locked down", .gives = "ion=-ion door=1 locked_down=true"},
        {"release", 2, 2, .prepare = find_ion, .call = "DELETE " LOCK_DOWN,
         .say = "door {1} of {-ion} is released", .gives = "ion=-ion door=1 locked_down=false"}),
    // clang-format on
};
