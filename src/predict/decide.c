#include "predict/decide.h"

#include <stdlib.h>
#include <string.h>

const char *verdict_text(enum verdict verdict)
{
    static const char *const texts[] = {"grant", "deny", "unknown", "error", "label"};
    return texts[verdict];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void lists_sort(struct lists *lists)
{
    if (lists->n_allow > 0) {
        qsort(lists->allow, lists->n_allow, sizeof *lists->allow, by_name);
    }
    if (lists->n_deny > 0) {
        qsort(lists->deny, lists->n_deny, sizeof *lists->deny, by_name);
    }
}

static bool is_on(const char *name, const char *const *names, size_t n)
{
    return n > 0 && bsearch(&name, names, n, sizeof *names, by_name) != NULL;
}

bool lists_bar(const struct lists *lists, const char *name)
{
    return name != NULL && is_on(name, lists->deny, lists->n_deny);
}

double decide_threshold(const char *name, const struct thresholds *thresholds,
                        const struct lists *lists)
{
    return lists_bar(lists, name) ? thresholds->barred : thresholds->known;
}

enum verdict decide_person(const char *name, const struct lists *lists)
{
    if (lists_bar(lists, name)) {
        return VERDICT_DENY;
    }
    if (is_on(name, lists->allow, lists->n_allow)) {
        return VERDICT_GRANT;
    }
    return lists->fallback;
}

enum verdict decide(double score, const char *name, const struct thresholds *thresholds,
                    const struct lists *lists)
{
    /* Written so that a score that is not a number is unknown. */
    if (name == NULL || !(score >= decide_threshold(name, thresholds, lists))) {
        return VERDICT_UNKNOWN;
    }
    return decide_person(name, lists);
}

enum verdict decide_label(double score, double threshold, bool is_rejected)
{
    return score >= threshold && !is_rejected ? VERDICT_LABEL : VERDICT_UNKNOWN;
}
