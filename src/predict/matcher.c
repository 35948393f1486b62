#include "predict/matcher.h"

#include <math.h>

#define LANES 16

double match_cosine(const float *a, const float *b, size_t dim)
{
    /* Sixteen sums side by side: a form that compilers turn into vector instructions without being
     * allowed to reorder additions. */
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= dim; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            sums[j] += a[i + j] * b[i + j];
        }
    }
    double total = 0;
    for (; i < dim; i++) {
        total += (double)a[i] * b[i];
    }
    for (size_t j = 0; j < LANES; j++) {
        total += sums[j];
    }
    return total;
}

static void consider(struct match *best, const struct templates *templates, const float *probe,
                     size_t i)
{
    double score = match_cosine(templates->vectors + i * templates->dim, probe, templates->dim);
    if (best->person < 0 || score > best->score) {
        *best = (struct match){templates->persons[i], score, i};
    }
}

static const struct match nobody = {.person = -1, .score = NAN};

struct match match_best(const struct templates *templates, const float *probe)
{
    struct match best = nobody;
    for (size_t i = 0; i < templates->n; i++) {
        consider(&best, templates, probe, i);
    }
    return best;
}

void match_each(const struct templates *templates, const float *probe, size_t n_persons,
                float *out_scores)
{
    for (size_t p = 0; p < n_persons; p++) {
        out_scores[p] = -INFINITY;
    }
    for (size_t i = 0; i < templates->n; i++) {
        float score =
            (float)match_cosine(templates->vectors + i * templates->dim, probe, templates->dim);
        float *best = &out_scores[templates->persons[i]];
        *best = score > *best ? score : *best;
    }
}

/* The place of a person among n; n: it has none. */
static size_t place_of(const struct match *matches, size_t n, int32_t person)
{
    size_t i = 0;
    while (i < n && matches[i].person != person) {
        i++;
    }
    return i;
}

size_t match_nearest(const struct templates *templates, const float *probe, size_t k,
                     struct match *out)
{
    size_t n = 0;
    for (size_t i = 0; i < templates->n; i++) {
        struct match match = {.person = templates->persons[i], .i_template = i};
        match.score = match_cosine(templates->vectors + i * templates->dim, probe, templates->dim);
        if (isnan(match.score) || (n == k && !(n > 0 && match.score > out[n - 1].score))) {
            continue;
        }
        /* One that has been pushed out was worse than all that stay: it comes back only by a better template. */
        size_t place = place_of(out, n, match.person);
        if (place < n && !(match.score > out[place].score)) {
            continue;
        }
        n += place == n && n < k;
        place = place < n ? place : n - 1;
        for (; place > 0 && match.score > out[place - 1].score; place--) {
            out[place] = out[place - 1];
        }
        out[place] = match;
    }
    return n;
}

struct match match_best_same(const struct templates *templates, const float *probe, int32_t person,
                             size_t i_excluded)
{
    struct match best = nobody;
    for (size_t i = 0; i < templates->n; i++) {
        if (templates->persons[i] == person && i != i_excluded) {
            consider(&best, templates, probe, i);
        }
    }
    return best;
}
