#include "notify/match.h"

#include "base/json.h"
#include "notify/notify.h"
#include "store/alert_kind.h"

#include <string.h>

#define PATTERN_MAX_BYTES 200

/* Greedy, with one place to come back to: the last star. */
bool notify_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

static bool is_equal(const char *pattern, const char *text)
{
    return strcmp(pattern, text) == 0;
}

static bool any(const char *list, const char *text, bool (*fits)(const char *, const char *))
{
    json_t *items = json_loads(list, 0, NULL), *item;
    bool is_any = false;
    size_t i;
    json_array_foreach(items, i, item)
    {
        is_any = is_any || (json_is_string(item) && fits(json_string_value(item), text));
    }
    json_decref(items);
    return is_any;
}

bool notify_list_has(const char *list, const char *text)
{
    return list != NULL && any(list, text, is_equal);
}

bool notify_matches(const struct notify_match *match, const struct weir_alert *alert)
{
    const char *subject = alert->subject != NULL ? alert->subject : "";
    return (match->kinds == NULL || any(match->kinds, alert->kind, is_equal)) &&
           (match->subjects == NULL || any(match->subjects, subject, notify_glob)) &&
           (match->severities == NULL || any(match->severities, alert->severity, is_equal));
}

/* ---- check ----------------------------------------------------------------------------------- */

static bool is_kind(const char *text)
{
    return weir_alert_kind_find(text) != NULL;
}

static bool is_severity(const char *text)
{
    return strcmp(text, "info") == 0 || strcmp(text, "warning") == 0 ||
           strcmp(text, "critical") == 0;
}

static bool is_pattern(const char *text)
{
    size_t len = strlen(text);
    return len >= 1 && len <= PATTERN_MAX_BYTES;
}

static weir_status check_list(const char *name, const char *list, bool (*is_good)(const char *),
                              const char *expected, struct weir_error *err)
{
    if (list == NULL) {
        return WEIR_OK;
    }
    json_t *items = json_loads(list, 0, NULL), *item;
    weir_status status = WEIR_OK;
    size_t i;
    if (!json_is_array(items) || json_array_size(items) == 0 ||
        json_array_size(items) > WEIR_ALERT_LIST_MAX) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of 1 to %d texts",
                                name, WEIR_ALERT_LIST_MAX);
    }
    json_array_foreach(items, i, item)
    {
        if (status == WEIR_OK && !(json_is_string(item) && is_good(json_string_value(item)))) {
            status =
                weir_error_set(err, WEIR_ERR_INVALID, "$.%s[%zu]: expected %s", name, i, expected);
        }
    }
    json_decref(items);
    return status;
}

weir_status notify_match_check(const struct notify_match *match, struct weir_error *err)
{
    WEIR_TRY(check_list("kinds", match->kinds, is_kind,
                        "a kind of alert (docs/reference/health.md lists them)", err));
    WEIR_TRY(check_list("subjects", match->subjects, is_pattern,
                        "a pattern of 1 to 200 bytes, as in ion/door*", err));
    return check_list("severities", match->severities, is_severity, "info, warning or critical",
                      err);
}
