#include "ion/cron.h"

#include "base/macros.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIELDS_MAX     7
#define TEXT_MAX_BYTES 256
#define YEAR_FIRST     1970
#define YEAR_LAST      2099
#define DAY_S          86400

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR };

struct field {
    const char *name;
    int min, max;
    const char *const *names; /**< Of min, min + 1 …; NULL if none. */
};

static const char *const month_names[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                          "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const weekday_names[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

static const struct field fields[FIELDS_MAX] = {
    [SECOND] = {"second", 0, 59, NULL},
    [MINUTE] = {"minute", 0, 59, NULL},
    [HOUR] = {"hour", 0, 23, NULL},
    [DAY] = {"day of month", 1, 31, NULL},
    [MONTH] = {"month", 1, 12, month_names},
    [WEEKDAY] = {"day of week", 1, 7, weekday_names},
    [YEAR] = {"year", YEAR_FIRST, YEAR_LAST, NULL},
};

/** Allowed values of one field: bit i of word i / 64 is value min + i. */
struct bits {
    uint64_t words[3];
};

static void set_bit(struct bits *bits, const struct field *field, int value)
{
    int i = value - field->min;
    bits->words[i / 64] |= (uint64_t)1 << (i % 64);
}

/** One number or name; *text moves behind it. */
static weir_status parse_value(const char **text, const struct field *field, int *out,
                               struct weir_error *err)
{
    for (int i = 0; field->names != NULL && field->names[i] != NULL; i++) {
        if (strncasecmp(*text, field->names[i], 3) == 0 && !isalnum((unsigned char)(*text)[3])) {
            *out = field->min + i;
            *text += 3;
            return WEIR_OK;
        }
    }
    if (strchr("LW#", toupper((unsigned char)**text)) != NULL && **text != '\0') {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s: L, W and # are not supported",
                              field->name);
    }
    char *end;
    long value = isdigit((unsigned char)**text) ? strtol(*text, &end, 10) : -1;
    if (value < 0 || isalpha((unsigned char)*end) || *end == '#') {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.20s\" is not a value", field->name,
                              *text);
    }
    if (value < field->min || value > field->max) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s %ld is not in %d-%d", field->name, value,
                              field->min, field->max);
    }
    *out = (int)value;
    *text = end;
    return WEIR_OK;
}

static weir_status parse_step(const char **text, const struct field *field, int *out,
                              struct weir_error *err)
{
    char *end;
    long step = isdigit((unsigned char)**text) ? strtol(*text, &end, 10) : 0;
    if (step < 1 || step > field->max) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: a step is a number from 1 to %d",
                              field->name, field->max);
    }
    *out = (int)step;
    *text = end;
    return WEIR_OK;
}

/** One element of a list: `*`, `a`, `a-b`, each perhaps with `/n`. */
static weir_status parse_element(const char **text, const struct field *field, struct bits *bits,
                                 struct weir_error *err)
{
    int first = field->min, last = field->max, step = 1;
    bool is_single = false;
    if (**text == '*') {
        (*text)++;
    } else {
        WEIR_TRY(parse_value(text, field, &first, err));
        is_single = **text != '-';
        last = first;
        if (!is_single) {
            (*text)++;
            WEIR_TRY(parse_value(text, field, &last, err));
        }
    }
    if (**text == '/') {
        (*text)++;
        WEIR_TRY(parse_step(text, field, &step, err));
        last = is_single ? field->max : last;
    }
    if (last < first && field == &fields[YEAR]) {
        return weir_error_set(err, WEIR_ERR_INVALID, "year: %d-%d runs backwards", first, last);
    }
    int n_values = field->max - field->min + 1;
    int span = last >= first ? last - first : last - first + n_values;
    for (int i = 0; i <= span; i += step) {
        set_bit(bits, field, field->min + (first - field->min + i) % n_values);
    }
    return WEIR_OK;
}

static weir_status parse_field(const char *text, const struct field *field, struct bits *out,
                               struct weir_error *err)
{
    struct bits bits = {{0}};
    for (;;) {
        WEIR_TRY(parse_element(&text, field, &bits, err));
        if (*text == '\0') {
            break;
        }
        if (*text != ',') {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.20s\" is not understood",
                                  field->name, text);
        }
        text++;
    }
    *out = bits;
    return WEIR_OK;
}

/** Cut a copy of the text into fields. */
static weir_status split(char *text, char *out[FIELDS_MAX], struct weir_error *err)
{
    size_t n = 0;
    char *rest = text, *word;
    while ((word = strsep(&rest, " \t")) != NULL) {
        if (*word == '\0') {
            continue;
        }
        if (n == FIELDS_MAX) {
            n++;
            break;
        }
        out[n++] = word;
    }
    if (n != FIELDS_MAX && n != FIELDS_MAX - 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected 6 or 7 fields: second minute hour day-of-month month "
                              "day-of-week [year]");
    }
    if (n == FIELDS_MAX - 1) {
        out[YEAR] = "*";
    }
    return WEIR_OK;
}

static bool is_open(const char *text)
{
    return strcmp(text, "*") == 0 || strcmp(text, "?") == 0;
}

static weir_status parse(const char *text, struct weir_cron *out, struct weir_error *err)
{
    char copy[TEXT_MAX_BYTES];
    char *words[FIELDS_MAX];
    struct bits bits[FIELDS_MAX];
    if (strlen(text) >= sizeof(copy)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "longer than %d characters",
                              TEXT_MAX_BYTES - 1);
    }
    memcpy(copy, text, strlen(text) + 1);
    WEIR_TRY(split(copy, words, err));
    if (!is_open(words[DAY]) && !is_open(words[WEEKDAY])) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "day of month and day of week are both restricted: make one of them ?");
    }
    for (int i = 0; i < FIELDS_MAX; i++) {
        bool is_day = i == DAY || i == WEEKDAY;
        const char *word = is_day && strcmp(words[i], "?") == 0 ? "*" : words[i];
        WEIR_TRY(parse_field(word, &fields[i], &bits[i], err));
    }
    *out = (struct weir_cron){
        .seconds = bits[SECOND].words[0],
        .minutes = bits[MINUTE].words[0],
        .hours = (uint32_t)bits[HOUR].words[0],
        .days = (uint32_t)bits[DAY].words[0] << 1,
        .months = (uint32_t)bits[MONTH].words[0] << 1,
        .weekdays = (uint32_t)bits[WEEKDAY].words[0],
    };
    memcpy(out->years, bits[YEAR].words, sizeof(out->years));
    return WEIR_OK;
}

weir_status weir_cron_parse(const char *text, struct weir_cron *out, struct weir_error *err)
{
    struct weir_error cause = {0};
    weir_status status = parse(text, out, &cause);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "schedule \"%.100s\": %s", text, cause.message);
    }
    return WEIR_OK;
}

/* Days since 1970-01-01 and back, proleptic Gregorian; years 1970 to 2100 are enough here. */

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int year, int month)
{
    static const int days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : days[month];
}

static bool year_is_in(const struct weir_cron *cron, int year)
{
    int i = year - YEAR_FIRST;
    return (cron->years[i / 64] >> (i % 64) & 1) != 0;
}

/** The first second of the day, from `from` on, that matches; -1 if none. */
static int64_t second_in_day(const struct weir_cron *cron, int64_t from)
{
    for (int64_t hour = from / 3600; hour < 24; hour++) {
        if ((cron->hours >> hour & 1) == 0) {
            continue;
        }
        for (int64_t minute = hour == from / 3600 ? from / 60 % 60 : 0; minute < 60; minute++) {
            if ((cron->minutes >> minute & 1) == 0) {
                continue;
            }
            int64_t first = hour * 3600 + minute * 60;
            for (int64_t second = from > first ? from - first : 0; second < 60; second++) {
                if ((cron->seconds >> second & 1) != 0) {
                    return first + second;
                }
            }
        }
    }
    return -1;
}

weir_status weir_cron_next(const struct weir_cron *cron, int64_t after_ms, int64_t *out_ms)
{
    int64_t start_s = after_ms < 0 ? 0 : after_ms / 1000 + 1;
    int64_t day = start_s / DAY_S;
    int64_t in_day = start_s % DAY_S;
    int64_t month_first = 0; /* Day number of the month that is looked at. */
    for (int year = YEAR_FIRST; year <= YEAR_LAST; year++) {
        for (int month = 1; month <= 12; month++) {
            int n_days = month_days(year, month);
            bool is_in = year_is_in(cron, year) && (cron->months >> month & 1) != 0;
            for (int i = 1; is_in && i <= n_days; i++) {
                int64_t today = month_first + i - 1;
                /* 1970-01-01 was a Thursday. */
                bool is_day =
                    (cron->days >> i & 1) != 0 && (cron->weekdays >> ((today + 4) % 7) & 1);
                int64_t second =
                    is_day && today >= day ? second_in_day(cron, today == day ? in_day : 0) : -1;
                if (second >= 0) {
                    *out_ms = (today * DAY_S + second) * 1000;
                    return WEIR_OK;
                }
            }
            month_first += n_days;
        }
    }
    return WEIR_ERR_END;
}
