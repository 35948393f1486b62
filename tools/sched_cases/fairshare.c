#include "sched_cases/fairshare.h"

#include "base/macros.h"
#include "sched/share/division.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define QUEUES_MAX 64

static int64_t scaled(const json_t *object, const char *key, int64_t unit)
{
    double value = json_number_value(json_object_get(object, key));
    return value < 0 ? -1 : llround(value * (double)unit);
}

static int32_t load(const json_t *queues, int64_t unit, struct division_part *parts,
                    const char **names)
{
    int32_t n = (int32_t)WEIR_MIN(json_array_size(queues), QUEUES_MAX);
    for (int32_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(queues, (size_t)i);
        names[i] = json_string_value(json_object_get(from, "name"));
        parts[i] = (struct division_part){
            .quota = scaled(from, "quota", unit),
            .limit = scaled(from, "limit", unit),
            .weight = scaled(from, "weight", 1000),
            .want = scaled(from, "request", unit),
            .share = scaled(from, "start_share", unit),
            .usage_ppm = scaled(from, "usage", DIVISION_PPM),
            .priority = (int32_t)json_integer_value(json_object_get(from, "priority")),
            .age_rank = i,
        };
    }
    return n;
}

static int compare(struct weir_buf *out, const char *what, int64_t expected, int64_t got,
                   int64_t unit)
{
    if (expected == got) {
        return 0;
    }
    weir_buf_printf(out, "    %s: expected %g, got %g\n", what, (double)expected / (double)unit,
                    (double)got / (double)unit);
    return 1;
}

int fairshare_run(const json_t *document, struct weir_buf *out)
{
    struct division_part parts[QUEUES_MAX];
    const char *names[QUEUES_MAX];
    const char *resource = json_string_value(json_object_get(document, "resource"));
    const char *phase = json_string_value(json_object_get(document, "phase"));
    int64_t unit = resource != NULL && strcmp(resource, "gpu") == 0 ? 1000 : 1;
    int32_t n = load(json_object_get(document, "queues"), unit, parts, names);
    int64_t rest = scaled(document, "total", unit);
    if (phase != NULL && strcmp(phase, "over-quota only") != 0) {
        rest = division_give_quota(parts, n, rest);
    }
    const struct division_rule rule = {.unit = unit,
                                       .usage_weight_ppm = scaled(document, "k", DIVISION_PPM)};
    rest = division_give_rest(parts, n, rest, &rule);
    const json_t *expected = json_object_get(document, "expect");
    const json_t *shares = json_object_get(expected, "share");
    int n_wrong = 0;
    if (json_is_number(json_object_get(expected, "remaining"))) {
        n_wrong += compare(out, "remaining", scaled(expected, "remaining", unit), rest, unit);
    }
    for (int32_t i = 0; i < n; i++) {
        const char *name = names[parts[i].age_rank];
        if (name != NULL && json_object_get(shares, name) != NULL) {
            n_wrong += compare(out, name, scaled(shares, name, unit), parts[i].share, unit);
        }
    }
    return n_wrong;
}
