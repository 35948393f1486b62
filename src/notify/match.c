#include "notify/match.h"

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

struct notify_words notify_words_read(const char *list, struct weir_arena *arena)
{
    struct notify_words words = {.is_any = list == NULL};
    json_t *items = list != NULL ? json_loads(list, 0, NULL) : NULL, *item;
    size_t i;
    words.items = WEIR_ARENA_ARRAY(arena, json_array_size(items) + 1, const char *);
    json_array_foreach(items, i, item)
    {
        if (json_is_string(item)) {
            words.items[words.n++] = weir_arena_strdup(arena, json_string_value(item));
        }
    }
    json_decref(items);
    return words;
}

struct notify_match notify_match_read(const struct notify_lists *lists, struct weir_arena *arena)
{
    return (struct notify_match){.kinds = notify_words_read(lists->kinds, arena),
                                 .subjects = notify_words_read(lists->subjects, arena),
                                 .severities = notify_words_read(lists->severities, arena)};
}

static bool any(const struct notify_words *words, const char *text,
                bool (*fits)(const char *, const char *))
{
    bool is_any = false;
    for (size_t i = 0; i < words->n && !is_any; i++) {
        is_any = fits(words->items[i], text);
    }
    return is_any;
}

bool notify_words_name(const struct notify_words *words, const char *text)
{
    return any(words, text, is_equal);
}

bool notify_list_has(const char *list, const char *text)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct notify_words words = notify_words_read(list, &arena);
    bool has = notify_words_name(&words, text);
    weir_arena_fini(&arena);
    return has;
}

bool notify_matches(const struct notify_match *match, const struct weir_alert *alert)
{
    const char *subject = alert->subject != NULL ? alert->subject : "";
    return (match->kinds.is_any || any(&match->kinds, alert->kind, is_equal)) &&
           (match->subjects.is_any || any(&match->subjects, subject, notify_glob)) &&
           (match->severities.is_any || any(&match->severities, alert->severity, is_equal));
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
    WEIR_AUTO(weir_json_auto_free) json_t *items = json_loads(list, 0, NULL);
    const json_t *item;
    size_t i;
    if (!json_is_array(items) || json_array_size(items) == 0 ||
        json_array_size(items) > WEIR_ALERT_LIST_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of 1 to %d texts", name,
                              WEIR_ALERT_LIST_MAX);
    }
    json_array_foreach(items, i, item)
    {
        if (!json_is_string(item) || !is_good(json_string_value(item))) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s[%zu]: expected %s", name, i,
                                  expected);
        }
    }
    return WEIR_OK;
}

weir_status notify_match_check(const struct notify_lists *lists, struct weir_error *err)
{
    WEIR_TRY(check_list("kinds", lists->kinds, is_kind,
                        "a kind of alert (docs/reference/health.md lists them)", err));
    WEIR_TRY(check_list("subjects", lists->subjects, is_pattern,
                        "a pattern of 1 to 200 bytes, as in ion/door*", err));
    return check_list("severities", lists->severities, is_severity, "info, warning or critical",
                      err);
}
