#include "deploy/shares.h"

#include "base/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PPM_OF_PERCENT 10000 /* WEIR_SHARES_PPM of 100 */
#define NUMBER_BYTES   32

/* ---- versions -------------------------------------------------------------------------------- */

/* "v12" or "12"; 0 if it is none. */
static int64_t number_of(const char *word, size_t len)
{
    int64_t number = 0;
    size_t i = len > 1 && (word[0] == 'v' || word[0] == 'V') ? 1 : 0;
    if (len - i > 15) {
        return 0;
    }
    for (; i < len; i++) {
        if (word[i] < '0' || word[i] > '9') {
            return 0;
        }
        number = 10 * number + (word[i] - '0');
    }
    return number;
}

static weir_status no_version(const struct weir_share_model *model, int64_t version,
                              const char *where, struct weir_error *err)
{
    if (model->n_versions == 0) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND,
            "%s: model \"%s\" has no version yet: `weir model push %s FILE` makes "
            "one",
            where, model->name, model->name);
    }
    struct weir_names names = {0};
    for (size_t i = model->n_versions; i > 0; i--) {
        char text[NUMBER_BYTES];
        (void)snprintf(text, sizeof text, "v%" PRId64, model->versions[i - 1]);
        weir_names_add(&names, text, strlen(text));
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "%s: model \"%s\" has no version %" PRId64 "; there %s %s", where,
                          model->name, version, model->n_versions == 1 ? "is" : "are", names.text);
}

static weir_status no_alias(const struct weir_share_model *model, const char *word, size_t len,
                            const char *where, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    for (size_t i = 0; i < model->n_aliases; i++) {
        weir_nearest_see(&nearest, word, len, model->aliases[i].alias);
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "%s: model \"%s\" has no alias \"%.*s\"; did you mean \"%s\"?", where,
                              model->name, (int)WEIR_MIN(len, (size_t)60), word, nearest.name);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "%s: model \"%s\" has no alias \"%.*s\"; a version is named as v3, and "
                          "`weir get versions %s` lists them",
                          where, model->name, (int)WEIR_MIN(len, (size_t)60), word, model->name);
}

weir_status weir_share_version_read(const struct weir_share_model *model, const char *word,
                                    size_t len, const char *where, int64_t *out,
                                    struct weir_error *err)
{
    for (size_t i = 0; i < model->n_aliases; i++) {
        if (strlen(model->aliases[i].alias) == len &&
            memcmp(model->aliases[i].alias, word, len) == 0) {
            *out = model->aliases[i].version;
            return WEIR_OK;
        }
    }
    int64_t number = number_of(word, len);
    if (number == 0) {
        return no_alias(model, word, len, where, err);
    }
    for (size_t i = 0; i < model->n_versions; i++) {
        if (model->versions[i] == number) {
            *out = number;
            return WEIR_OK;
        }
    }
    return no_version(model, number, where, err);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static weir_status add(struct weir_shares *shares, int64_t version, double percent,
                       const char *where, struct weir_error *err)
{
    int64_t ppm = percent > 0 && percent <= 100 ? (int64_t)llround(percent * PPM_OF_PERCENT) : 0;
    if (ppm == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: the share of v%" PRId64 " is no percentage above 0 and at most "
                              "100: leave a version out that shall get none",
                              where, version);
    }
    size_t at = 0;
    while (at < shares->n && shares->items[at].version < version) {
        at++;
    }
    if (at < shares->n && shares->items[at].version == version) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: v%" PRId64 " is named twice", where,
                              version);
    }
    if (shares->n == WEIR_SHARES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: at most %d versions can share the traffic",
                              where, WEIR_SHARES_MAX);
    }
    memmove(&shares->items[at + 1], &shares->items[at], (shares->n - at) * sizeof *shares->items);
    shares->items[at] = (struct weir_share){version, ppm};
    shares->n++;
    return WEIR_OK;
}

static weir_status check_sum(const struct weir_shares *shares, const char *where,
                             struct weir_error *err)
{
    int64_t sum = 0;
    for (size_t i = 0; i < shares->n; i++) {
        sum += shares->items[i].ppm;
    }
    if (sum != WEIR_SHARES_PPM) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: the shares sum to %g, and must sum to 100", where,
                              (double)sum / PPM_OF_PERCENT);
    }
    return WEIR_OK;
}

static weir_status read_text(const struct weir_share_model *model, const char *text,
                             const char *where, struct weir_shares *out, struct weir_error *err)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ","), name_len = strcspn(text, "=,");
        char *end;
        int64_t version;
        if (name_len == 0 || name_len == len || text[name_len + 1] == ',' ||
            text[name_len + 1] == '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: \"%.*s\": expected VERSION=PERCENT, as in v3=90,v4=10",
                                  where, (int)WEIR_MIN(len, (size_t)60), text);
        }
        WEIR_TRY(weir_share_version_read(model, text, name_len, where, &version, err));
        double percent = strtod(text + name_len + 1, &end);
        end += *end == '%';
        if (end != text + len) {
            percent = 0;
        }
        WEIR_TRY(add(out, version, percent, where, err));
        text += len;
        text += *text == ',';
    }
    return WEIR_OK;
}

static weir_status read_array(const struct weir_share_model *model, const json_t *array,
                              const char *where, struct weir_shares *out, struct weir_error *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item)
    {
        char word[NUMBER_BYTES];
        int64_t version;
        const json_t *number = json_object_get(item, "version");
        const json_t *percent = json_object_get(item, "percent");
        if (!json_is_integer(number) || !json_is_number(percent) || json_object_size(item) != 2) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s[%zu]: expected {\"version\": NUMBER, \"percent\": NUMBER}",
                                  where, i);
        }
        (void)snprintf(word, sizeof word, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
        WEIR_TRY(weir_share_version_read(model, word, strlen(word), where, &version, err));
        WEIR_TRY(add(out, version, json_number_value(percent), where, err));
    }
    return WEIR_OK;
}

weir_status weir_shares_read(const struct weir_share_model *model, const json_t *value,
                             const char *where, struct weir_shares *out, struct weir_error *err)
{
    struct weir_shares shares = {0};
    if (json_is_string(value)) {
        WEIR_TRY(read_text(model, json_string_value(value), where, &shares, err));
    } else if (json_is_array(value)) {
        WEIR_TRY(read_array(model, value, where, &shares, err));
    } else {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected \"v3=90,v4=10\", or an array of {version, percent}",
                              where);
    }
    WEIR_TRY(check_sum(&shares, where, err));
    *out = shares;
    return WEIR_OK;
}

struct weir_shares weir_shares_of(int64_t version)
{
    return (struct weir_shares){.items = {{version, WEIR_SHARES_PPM}}, .n = 1};
}

json_t *weir_shares_to_json(const struct weir_shares *shares)
{
    json_t *array = json_array();
    for (size_t i = 0; i < shares->n; i++) {
        json_array_append_new(array, json_pack("{s:I,s:f}", "version",
                                               (json_int_t)shares->items[i].version, "percent",
                                               (double)shares->items[i].ppm / PPM_OF_PERCENT));
    }
    return array;
}

char *weir_shares_text(const struct weir_shares *shares, struct weir_arena *arena)
{
    char *text = weir_arena_strdup(arena, shares->n == 0 ? "none" : "");
    for (size_t i = 0; i < shares->n; i++) {
        text = weir_arena_printf(arena, "%s%sv%" PRId64 "=%g", text, i > 0 ? "," : "",
                                 shares->items[i].version,
                                 (double)shares->items[i].ppm / PPM_OF_PERCENT);
    }
    return text;
}
