/** For tests: a driver of clusters that is a script. The partition "none" is not there, "away" does not answer, and of tokens
 *  "right" alone is good. A partition that is not said is guessed as "gpu". */
#ifndef WEIR_API_DRIVER_FIXTURE_H
#define WEIR_API_DRIVER_FIXTURE_H

#include "cluster/driver.h"

#include <string.h>

struct scripted {
    char *partition, *token, *server;
    int64_t port;
};

static const struct weir_option scripted_options[] = {
    WEIR_OPT_JSON(scripted, partition, "partition", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, "P"),
    WEIR_OPT_JSON(scripted, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0, "T"),
    WEIR_OPT_JSON(scripted, server, "server", TEXT, 0, NULL, 0, 0, "S"),
    WEIR_OPT_JSON(scripted, port, "port", INT, 0, "1", 1, 9, "N"),
};

static weir_status scripted_check(struct weir_driver_link *link, struct weir_arena *arena,
                                  const char **out, struct weir_error *err)
{
    const struct scripted *options = link->options;
    bool is_known = options->token == NULL || strcmp(options->token, "right") == 0;
    *out = !is_known ? "token: it is wrong"
           : strcmp(options->partition, "none") == 0
               ? weir_arena_printf(arena, "partition: there is no %s", options->partition)
               : NULL;
    return strcmp(options->partition, "away") != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAVAILABLE, "it does not answer");
}

static weir_status scripted_list(struct weir_driver_link *link, struct weir_arena *arena,
                                 struct weir_pool_offer **out, size_t *out_n,
                                 struct weir_error *err)
{
    const struct scripted *options = link->options;
    struct weir_pool_offer *offer = WEIR_ARENA_ARRAY(arena, 1, struct weir_pool_offer);
    (void)err;
    *offer = (struct weir_pool_offer){.name = options->partition,
                                      .cpu_slots = 64,
                                      .n_accelerators = 8,
                                      .accelerator = "H100",
                                      .max_nodes = 4,
                                      .weight = 1};
    *out = offer;
    *out_n = 1;
    return WEIR_OK;
}

static weir_status scripted_guess(json_t *document, struct weir_arena *arena,
                                  struct weir_error *err)
{
    (void)arena;
    (void)err;
    if (json_object_get(document, "partition") == NULL) {
        json_object_set_new(document, "partition", json_string("gpu"));
    }
    return WEIR_OK;
}

static const struct weir_driver_ops scripted_ops = {
    .check = scripted_check, .list = scripted_list, .guess = scripted_guess};
static const struct weir_kind scripted_kind = {.name = "scripted",
                                               .doc = "D.",
                                               .ops = &scripted_ops,
                                               WEIR_KIND_OPTIONS(scripted, scripted_options)};
static const struct weir_kind *const scripted_kinds[] = {&weir_driver_local, &scripted_kind};
static const struct weir_registry scripted_drivers = {.noun = "driver",
                                                      .plural = "drivers",
                                                      .doc = "D.",
                                                      .kinds = scripted_kinds,
                                                      .n_kinds = 2,
                                                      .planned = WEIR_WORDS("nomad")};

#endif
