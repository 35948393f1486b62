/**
 * Schedules: Quartz-style cron expressions with a seconds field, in UTC. Pure.
 *
 *     second minute hour day-of-month month day-of-week [year]
 *     "0 0 3 * * ?"        every day at 03:00:00
 *     "0 0/10 * * * ?"     every ten minutes
 *     "0 30 8 ? * MON-FRI" working days at 08:30
 *
 * Fields: `*`, a number, `a-b` (may wrap: FRI-MON), lists `a,b`, steps with `/n` after `*`, `a` (to
 * the field's end) or `a-b`. Months JAN-DEC or 1-12; days of the week SUN-SAT or 1-7 (1 = Sunday);
 * years 1970-2099. `?` is `*` for the day that is not restricted; restricting both days is refused,
 * as Quartz does. L, W and # are not supported and said so.
 */
#ifndef WEIR_ION_CRON_H
#define WEIR_ION_CRON_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** One bit per allowed value. */
struct weir_cron {
    uint64_t seconds, minutes;
    uint32_t hours, days, months,
        weekdays;      /**< days 1-31, months 1-12, weekdays 0-6 (0 = Sunday). */
    uint64_t years[3]; /**< bit i: year 1970 + i */
};

/** @return INVALID or UNSUPPORTED, naming the field: "schedule \"0 61 * * * ?\": minute 61 is not
 * in 0-59". */
weir_status weir_cron_parse(const char *text, struct weir_cron *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The first time strictly after after_ms at which it fires.
 * @return END if there is none before the year 2100 (30 February).
 */
weir_status weir_cron_next(const struct weir_cron *cron, int64_t after_ms,
                           int64_t *out_ms) WEIR_MUST_CHECK;

#endif
