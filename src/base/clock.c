#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t system_now_ms(const struct weir_clock *clock)
{
    (void)clock;
    return weir_time_ms();
}

const struct weir_clock weir_system_clock = {.now_ms = system_now_ms};

int64_t weir_clock_now_ms(const struct weir_clock *clock)
{
    return clock->now_ms(clock);
}

static _Atomic int64_t steady_offset_ms; /* 0: the clock is not steadied */

static int64_t read_ms(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t weir_time_ms(void)
{
    int64_t offset_ms = atomic_load(&steady_offset_ms);
    return offset_ms != 0 ? weir_boot_ms() + offset_ms : read_ms(CLOCK_REALTIME);
}

int64_t weir_boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

void weir_boot_id(char out[WEIR_BOOT_ID_BYTES])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    out[0] = '\0';
    if (file != NULL) {
        if (fgets(out, WEIR_BOOT_ID_BYTES, file) == NULL) {
            out[0] = '\0';
        }
        (void)fclose(file);
    }
    out[strcspn(out, "\n")] = '\0';
}

void weir_clock_steady(int64_t offset_ms)
{
    int64_t from_wall_ms = read_ms(CLOCK_REALTIME) - weir_boot_ms();
    atomic_store(&steady_offset_ms, offset_ms != 0 ? offset_ms : from_wall_ms);
}

int64_t weir_clock_offset_ms(void)
{
    return atomic_load(&steady_offset_ms);
}

int64_t weir_clock_set_by_ms(void)
{
    return atomic_load(&steady_offset_ms) != 0 ? read_ms(CLOCK_REALTIME) - weir_time_ms() : 0;
}

void weir_clock_follow(int64_t by_ms)
{
    atomic_fetch_add(&steady_offset_ms, by_ms);
}

uint64_t weir_mono_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t weir_mono_ms(void)
{
    return (int64_t)(weir_mono_ns() / 1000000u);
}

void weir_time_format(int64_t time_ms, char out[WEIR_TIME_TEXT_BYTES])
{
    int64_t ms = time_ms % 1000;
    time_t seconds = (time_t)(time_ms / 1000);
    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL) {
        (void)snprintf(out, WEIR_TIME_TEXT_BYTES, "out-of-range");
        return;
    }
    size_t len = strftime(out, WEIR_TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + len, WEIR_TIME_TEXT_BYTES - len, ".%03dZ", (int)ms);
}

/* "Z" or "+hh:mm" or "-hh:mm", and nothing behind it. */
static weir_status parse_zone(const char *text, int *out_minutes)
{
    int hours, minutes, len = 0;
    if (strcmp(text, "Z") == 0) {
        *out_minutes = 0;
        return WEIR_OK;
    }
    if ((text[0] != '+' && text[0] != '-') ||
        sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &len) != 2 || len != 5 || text[6] != '\0') {
        return WEIR_ERR_INVALID;
    }
    *out_minutes = (text[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
    return WEIR_OK;
}

weir_status weir_time_parse(const char *text, int64_t *out_time_ms)
{
    struct tm tm = {0};
    int len = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &len) != 6 ||
        len != 19 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
        tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 || tm.tm_sec < 0 ||
        tm.tm_sec > 60) {
        return WEIR_ERR_INVALID;
    }
    const char *rest = text + len;
    int64_t ms = 0;
    if (*rest == '.') {
        int64_t scale = 100;
        for (rest++; *rest >= '0' && *rest <= '9'; rest++) {
            ms += (*rest - '0') * scale;
            scale /= 10;
        }
    }
    int zone_minutes;
    WEIR_TRY(parse_zone(rest, &zone_minutes));
    int month_day = tm.tm_mday, second = tm.tm_sec;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    time_t seconds = timegm(&tm);
    if (tm.tm_mday != month_day && second != 60) { /* a leap second may */
        return WEIR_ERR_INVALID;                   /* timegm moved the date: 31 February */
    }
    *out_time_ms = ((int64_t)seconds - zone_minutes * 60) * 1000 + ms;
    return WEIR_OK;
}
