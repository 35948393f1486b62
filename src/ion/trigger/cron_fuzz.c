/* Any text: refused with a sentence, or a schedule whose times are in order and match its fields.
 */
#include "ion/cron.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read with the C library's calendar, not with ours. */
static bool is_match(const struct weir_cron *cron, int64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm at;
    if (gmtime_r(&seconds, &at) == NULL || at.tm_year < 70) {
        abort();
    }
    unsigned year = (unsigned)at.tm_year - 70;
    return (cron->seconds >> at.tm_sec & 1) != 0 && (cron->minutes >> at.tm_min & 1) != 0 &&
           (cron->hours >> at.tm_hour & 1) != 0 && (cron->days >> at.tm_mday & 1) != 0 &&
           (cron->months >> (at.tm_mon + 1) & 1) != 0 && (cron->weekdays >> at.tm_wday & 1) != 0 &&
           year < 130 && (cron->years[year / 64] >> (year % 64) & 1) != 0;
}

static void follow(const struct weir_cron *cron, int64_t after_ms)
{
    for (int i = 0; i < 4; i++) {
        int64_t next_ms, again_ms;
        if (weir_cron_next(cron, after_ms, &next_ms) != WEIR_OK) {
            return;
        }
        if (next_ms <= after_ms || next_ms % 1000 != 0 || !is_match(cron, next_ms)) {
            abort();
        }
        if (weir_cron_next(cron, next_ms - 1, &again_ms) != WEIR_OK || again_ms != next_ms) {
            abort(); /* the first one after a moment is also the first after the one before it */
        }
        after_ms = next_ms;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_cron cron;
    struct weir_error err = {0};
    char *text = strndup((const char *)data, size);
    if (text == NULL) {
        return 0;
    }
    if (weir_cron_parse(text, &cron, &err) == WEIR_OK) {
        follow(&cron, -1);
        follow(&cron, INT64_C(1709164799999)); /* 28 February 2024, 23:59:59.999 */
        follow(&cron, INT64_C(4102444799000)); /* the last second of 2099 */
        follow(&cron, INT64_MAX - 1);
    } else if (err.message[0] == '\0') {
        abort();
    }
    free(text);
    return 0;
}
