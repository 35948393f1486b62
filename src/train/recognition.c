#include "train/recognition.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

float recognition_score(const float *probe, const float *const *enrolled, size_t n, size_t dim)
{
    float best = -INFINITY;
    for (size_t k = 0; k < n; k++) {
        float dot = 0;
        for (size_t i = 0; i < dim; i++) {
            dot += probe[i] * enrolled[k][i];
        }
        best = fmaxf(best, dot);
    }
    return best;
}

static int compare_falling(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static bool is_first(const float *row, uint32_t person, size_t n_people)
{
    size_t best = 0;
    for (size_t q = 1; q < n_people; q++) {
        if (row[q] > row[best]) {
            best = q;
        }
    }
    return best == person;
}

weir_status recognition_measure(const float *scores, const uint32_t *persons, size_t n_probes,
                                size_t n_people, double false_accept_rate, struct recognition *out)
{
    size_t n_impostors = 0, n_first = 0, n_accepted = 0;
    float *impostors = malloc(n_probes * n_people * sizeof *impostors);
    if (impostors == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (size_t i = 0; i < n_probes; i++) {
        const float *row = scores + i * n_people;
        n_first += is_first(row, persons[i], n_people);
        for (size_t q = 0; q < n_people; q++) {
            if (q != persons[i]) {
                impostors[n_impostors++] = row[q];
            }
        }
    }
    qsort(impostors, n_impostors, sizeof *impostors, compare_falling);
    float threshold = impostors[(size_t)floor(false_accept_rate * (double)n_impostors)];
    free(impostors);
    for (size_t i = 0; i < n_probes; i++) {
        n_accepted += scores[i * n_people + persons[i]] > threshold;
    }
    *out = (struct recognition){.rank1 = (double)n_first / (double)n_probes,
                                .tar = (double)n_accepted / (double)n_probes};
    return WEIR_OK;
}
