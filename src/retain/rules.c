#include "retain/retain.h"

#include "store/event.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND ((int64_t)1000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define MB     ((int64_t)1000000)
#define GB     (1000 * MB)

#define SETTING   "retention"
#define WORDS_MAX 128

/* ---- limits as text -------------------------------------------------------------------------- */

struct unit {
    const char *text;
    int64_t factor;
};

/* Largest first: the first that fits without a rest is the one to print. */
static const struct unit age_units[] = {{"d", DAY}, {"h", HOUR}, {"m", 60 * SECOND}, {"s", SECOND}};
static const struct unit size_units[] = {
    {"TB", 1000 * GB},
    {"GB", GB},
    {"MB", MB},
    {"kB", 1000},
    {"TiB", (int64_t)1 << 40},
    {"GiB", (int64_t)1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"B", 1},
};

static bool in_units(const char *number_end, double number, const struct unit *units, size_t n,
                     int64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        double value = number * (double)units[i].factor;
        if (strcmp(number_end, units[i].text) == 0 && value < 9e18) {
            *out = (int64_t)llround(value);
            return true;
        }
    }
    return false;
}

static bool read_word(const char *word, int kind, struct weir_retain_limit *limit)
{
    char *end;
    if (strcmp(word, "default") == 0) {
        *limit = weir_retain_rule(kind)->limit;
        return true;
    }
    if (strcmp(word, "forever") == 0) {
        limit->keep_ms = WEIR_RETAIN_ANY;
        return true;
    }
    if (strcmp(word, "unbounded") == 0) {
        limit->max_bytes = WEIR_RETAIN_ANY;
        return true;
    }
    double number = strtod(word, &end);
    if (end == word || !(number >= 0) || strchr("0123456789.", *word) == NULL) {
        return false;
    }
    return in_units(end, number, age_units, WEIR_ARRAY_LEN(age_units), &limit->keep_ms) ||
           in_units(end, number, size_units, WEIR_ARRAY_LEN(size_units), &limit->max_bytes);
}

weir_status weir_retain_limit_parse(const char *text, int kind, struct weir_retain_limit *limit,
                                    struct weir_error *err)
{
    char words[WORDS_MAX];
    struct weir_retain_limit read = *limit;
    int len = snprintf(words, sizeof words, "%s", text);
    bool is_good = len > 0 && (size_t)len < sizeof words;
    for (char *word = words; is_good && word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        is_good = read_word(word, kind, &read);
        word = comma;
    }
    if (!is_good) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "\"%.80s\": expected an age (30d, 12h, forever), a size (10GB, 500MB, "
            "unbounded), both with a comma between, or default",
            text);
    }
    *limit = read;
    return WEIR_OK;
}

static int print_in_units(char *out, size_t size, int64_t value, const struct unit *units, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && (value == 0 || value % units[i].factor != 0)) {
        i++;
    }
    return snprintf(out, size, "%" PRId64 "%s", value / units[i].factor, units[i].text);
}

const char *weir_retain_limit_text(const struct weir_retain_limit *limit,
                                   char out[WEIR_RETAIN_LIMIT_TEXT_BYTES])
{
    const size_t size = WEIR_RETAIN_LIMIT_TEXT_BYTES;
    int len = limit->keep_ms < 0
                  ? snprintf(out, size, "forever")
                  : print_in_units(out, size, limit->keep_ms, age_units, WEIR_ARRAY_LEN(age_units));
    len += snprintf(out + len, size - (size_t)len, ",");
    if (limit->max_bytes < 0) {
        (void)snprintf(out + len, size - (size_t)len, "unbounded");
    } else {
        (void)print_in_units(out + len, size - (size_t)len, limit->max_bytes, size_units,
                             WEIR_ARRAY_LEN(size_units));
    }
    return out;
}

/* ---- the setting ----------------------------------------------------------------------------- */

weir_status weir_retain_policy_load(struct weir_txn *txn, struct weir_arena *arena,
                                    struct weir_retain_policy *out, struct weir_error *err)
{
    struct weir_retain_policy policy;
    struct weir_error missing;
    char *text;
    json_t *changes;
    const char *name;
    const json_t *value;
    for (int i = 0; i < weir_retain_n(); i++) {
        policy.limits[i] = weir_retain_rule(i)->limit;
    }
    weir_status status = weir_setting_get(txn, SETTING, arena, &text, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        *out = policy;
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), "the setting \"" SETTING "\"", &changes, err));
    json_object_foreach(changes, name, value)
    {
        int kind = weir_retain_kind_from_text(name);
        if (kind >= 0 && json_is_string(value) && status == WEIR_OK) { /* others: of a newer Weir */
            status =
                weir_retain_limit_parse(json_string_value(value), kind, &policy.limits[kind], err);
        }
    }
    json_decref(changes);
    WEIR_TRY(status);
    *out = policy;
    return WEIR_OK;
}

weir_status weir_retain_policy_save(struct weir_txn *txn, const struct weir_retain_policy *policy,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_error *err)
{
    json_t *changes = json_object();
    for (int i = 0; i < weir_retain_n(); i++) {
        const struct weir_retain_limit *limit = &policy->limits[i];
        const struct weir_retain_limit *fallback = &weir_retain_rule(i)->limit;
        char text[WEIR_RETAIN_LIMIT_TEXT_BYTES];
        if (limit->keep_ms != fallback->keep_ms || limit->max_bytes != fallback->max_bytes) {
            json_object_set_new(changes, weir_retain_rule(i)->name,
                                json_string(weir_retain_limit_text(limit, text)));
        }
    }
    char *text = weir_json_text(changes, arena);
    json_decref(changes);
    return weir_setting_put(txn, SETTING, text, now_ms, err);
}
