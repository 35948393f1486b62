#include "control/cluster/allocation_step.h"

#include "base/json.h"

#include <string.h>

static const char *const endings[] = {
    [WEIR_ENDING_RELEASED] = "released",   [WEIR_ENDING_TIME] = "time",
    [WEIR_ENDING_PREEMPTED] = "preempted", [WEIR_ENDING_CANCELLED] = "cancelled",
    [WEIR_ENDING_FAILED] = "failed",       [WEIR_ENDING_REFUSED] = "refused"};

const char *allocation_ending_text(enum weir_allocation_ending ending)
{
    return endings[ending];
}

bool allocation_ended_as_foreseen(const struct weir_allocation *allocation)
{
    return allocation->ending != NULL &&
           strcmp(allocation->ending, endings[WEIR_ENDING_FAILED]) != 0;
}

static bool is(const struct weir_allocation *allocation, const char *state)
{
    return strcmp(allocation->state, state) == 0;
}

static void end(struct weir_allocation *allocation, enum weir_allocation_ending ending,
                const char *why, int64_t now_ms)
{
    allocation->state = (char *)WEIR_ALLOCATION_OVER;
    /* One that was given up has an ending already. */
    allocation->ending = allocation->ending != NULL ? allocation->ending : (char *)endings[ending];
    allocation->why = (char *)why;
    allocation->starts_ms = 0;
    allocation->closed = NULL;
    allocation->ended_ms = now_ms;
}

void allocation_refuse(struct weir_allocation *allocation, const char *why, int64_t now_ms)
{
    end(allocation, WEIR_ENDING_REFUSED, why, now_ms);
}

static char *nodes_text(const struct weir_allocation_report *report, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_array();
    for (size_t i = 0; i < report->n_nodes; i++) {
        json_array_append_new(list, json_string(report->nodes[i]));
    }
    return report->n_nodes > 0 ? weir_json_text(list, arena) : NULL;
}

static void take_words(struct weir_allocation *allocation,
                       const struct weir_allocation_report *report, struct weir_arena *arena)
{
    allocation->said = weir_arena_strdup(arena, report->said);
    if (report->their_id != NULL) {
        allocation->their_id = weir_arena_strdup(arena, report->their_id);
    }
}

/* Machines that it holds in vain are for others. */
static void give_up_stuck(struct weir_allocation *allocation,
                          const struct weir_allocation_report *report, int64_t now_ms,
                          struct weir_arena *arena)
{
    if (report->stuck_since_ms > 0 && now_ms - report->stuck_since_ms >= ALLOCATION_STUCK_MS) {
        allocation->state = (char *)WEIR_ALLOCATION_RELEASING;
        allocation->ending = (char *)endings[WEIR_ENDING_FAILED];
        allocation->why = weir_arena_printf(arena, "its agents did not start: %s",
                                            report->why != NULL    ? report->why
                                            : report->said != NULL ? report->said
                                                                   : "no reason is said");
    }
}

static void take_pending(struct weir_allocation *allocation,
                         const struct weir_allocation_report *report, int64_t now_ms,
                         struct weir_arena *arena)
{
    take_words(allocation, report, arena);
    allocation->asked_ms = allocation->asked_ms > 0 ? allocation->asked_ms : now_ms;
    if (!is(allocation, WEIR_ALLOCATION_RELEASING)) {
        allocation->state = (char *)WEIR_ALLOCATION_PENDS;
        allocation->why = weir_arena_strdup(arena, report->why);
        allocation->starts_ms = report->starts_ms;
        give_up_stuck(allocation, report, now_ms, arena);
    }
}

static void take_running(struct weir_allocation *allocation,
                         const struct weir_allocation_report *report, int64_t now_ms,
                         struct weir_arena *arena)
{
    take_words(allocation, report, arena);
    allocation->asked_ms = allocation->asked_ms > 0 ? allocation->asked_ms : now_ms;
    allocation->started_ms = allocation->started_ms > 0 ? allocation->started_ms : now_ms;
    allocation->starts_ms = 0;
    allocation->ends_ms = report->ends_ms;
    allocation->nodes = nodes_text(report, arena);
    allocation->closed = report->closed_node == NULL
                             ? NULL
                             : weir_arena_printf(arena, "%s: %s", report->closed_node,
                                                 report->closed_why != NULL ? report->closed_why
                                                                            : "no reason is said");
    if (!is(allocation, WEIR_ALLOCATION_RELEASING)) {
        allocation->state = (char *)WEIR_ALLOCATION_RUNS;
        allocation->why = weir_arena_strdup(arena, report->why);
    }
}

static void take_end(struct weir_allocation *allocation,
                     const struct weir_allocation_report *report, int64_t now_ms,
                     struct weir_arena *arena)
{
    bool was_released = is(allocation, WEIR_ALLOCATION_RELEASING);
    const char *why = weir_arena_strdup(arena, report->why);
    take_words(allocation, report, arena);
    end(allocation, was_released ? WEIR_ENDING_RELEASED : report->ending,
        was_released ? allocation->why : why, now_ms);
}

static void take_unknown(struct weir_allocation *allocation, int64_t now_ms)
{
    if (is(allocation, WEIR_ALLOCATION_RELEASING)) {
        end(allocation, WEIR_ENDING_RELEASED, allocation->why, now_ms);
    } else if (!is(allocation, WEIR_ALLOCATION_WANTED)) {
        end(allocation, WEIR_ENDING_FAILED, "its cluster does not know of it any more", now_ms);
    }
}

struct allocation_step allocation_step(struct weir_allocation *allocation,
                                       const struct weir_allocation_report *report, int64_t now_ms,
                                       struct weir_arena *arena)
{
    struct allocation_step step = {0};
    const char *before = weir_record_text(&weir_allocation_resource, allocation, arena);
    if (report != NULL && !is(allocation, WEIR_ALLOCATION_OVER)) {
        switch (report->phase) {
        case WEIR_ALLOCATION_UNKNOWN:
            take_unknown(allocation, now_ms);
            break;
        case WEIR_ALLOCATION_PENDING:
            take_pending(allocation, report, now_ms, arena);
            break;
        case WEIR_ALLOCATION_RUNNING:
            take_running(allocation, report, now_ms, arena);
            break;
        case WEIR_ALLOCATION_ENDED:
            take_end(allocation, report, now_ms, arena);
            break;
        }
    }
    const char *after = weir_record_text(&weir_allocation_resource, allocation, arena);
    step.is_changed = strcmp(before, after) != 0;
    step.has_ended = step.is_changed && is(allocation, WEIR_ALLOCATION_OVER);
    step.asks = is(allocation, WEIR_ALLOCATION_WANTED);
    step.releases = is(allocation, WEIR_ALLOCATION_RELEASING);
    return step;
}
