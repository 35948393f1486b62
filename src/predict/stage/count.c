#include "predict/count.h"

#include "base/hash.h"
#include "endpoint/stage/count.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_json(uint64_t hash, const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    hash = weir_hash_text(hash, text != NULL ? text : "-");
    free(text);
    return hash;
}

static uint64_t hash_of(const struct weir_stage_count *options)
{
    char numbers[256];
    (void)snprintf(numbers, sizeof numbers, "%s %" PRId64 " %" PRId64 " %g %g %" PRId64 " %" PRId64,
                   options->by, options->over, options->under, options->for_s, options->long_s,
                   options->enter_ms, options->leave_ms);
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, numbers);
    return add_json(add_json(add_json(hash, options->zone), options->line), options->classes);
}

static struct count_rules rules_of(const struct weir_stage_count *options)
{
    struct count_rules rules = {.name = options->name,
                                .cameras = options->cameras,
                                .classes = options->classes,
                                .hash = hash_of(options),
                                .has_zone = weir_stage_count_has_zone(options),
                                .has_line = options->line != NULL,
                                .zone = weir_occupancy_usual,
                                .long_s = options->long_s};
    float line[2 * WEIR_STAGE_COUNT_POINTS] = {0};
    struct weir_occupancy_options *zone = &rules.zone;
    (void)weir_stage_count_points(options->line, line);
    rules.line = (struct weir_line){line[0], line[1], line[2], line[3]};
    zone->zone.n_points = (uint32_t)weir_stage_count_points(options->zone, zone->zone.points);
    zone->is_by_foot = strcmp(options->by, "foot") == 0;
    zone->enter_ms = options->enter_ms;
    zone->leave_ms = options->leave_ms;
    zone->over = (int32_t)options->over;
    zone->under = (int32_t)options->under;
    zone->settle_ms = (int64_t)(options->for_s * 1000);
    zone->long_ms = (int64_t)(options->long_s * 1000);
    return rules;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct count_rules rules = rules_of(options);
    return counts_step(at->counts, &rules, at, err);
}

static weir_status wait_on(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct count_rules rules = rules_of(options);
    (void)err;
    counts_wait(at->counts, &rules, at);
    return WEIR_OK;
}

const struct stage_ops stage_count = {.run = run, .wait = wait_on};
