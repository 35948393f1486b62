#include "train/identification.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>

static const char *const group_keys[] = {"trained", "unseen_five", "unseen_one"};
static const char *const group_titles[] = {
    "trained people, five enrolled", "unseen people, five enrolled", "unseen people, one enrolled"};
static const char *const method_keys[] = {"weir", "pixel_cosine", "pca"};
static const char *const method_titles[] = {"Weir", "pixel cosine, mean removed",
                                            "whitened PCA, 50 components"};
_Static_assert(WEIR_ARRAY_LEN(group_keys) == IDENTIFICATION_GROUPS, "one key per group");
_Static_assert(WEIR_ARRAY_LEN(method_keys) == IDENTIFICATION_METHODS, "one key per method");

/** Mean and deviation of one figure, `offset` bytes into struct recognition. */
static void summarise(const struct identification_round *rounds, size_t n, int g, int m,
                      size_t offset, struct identification_summary *out)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += *(const double *)((const char *)&rounds[i].figures[g][m] + offset);
    }
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double value = *(const double *)((const char *)&rounds[i].figures[g][m] + offset);
        squares += (value - mean) * (value - mean);
    }
    *(double *)((char *)&out->mean + offset) = mean;
    *(double *)((char *)&out->spread + offset) = sqrt(squares / (double)n);
}

void identification_summarise(const struct identification_round *rounds, size_t n_rounds,
                              struct identification_result *out)
{
    out->n_seeds = n_rounds;
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        for (int m = 0; m < IDENTIFICATION_METHODS; m++) {
            struct identification_summary *summary = &out->summaries[g][m];
            summarise(rounds, n_rounds, g, m, offsetof(struct recognition, rank1), summary);
            summarise(rounds, n_rounds, g, m, offsetof(struct recognition, tar), summary);
        }
    }
}

static void print_json(const struct identification_result *result, FILE *file)
{
    json_t *object = json_object();
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        json_t *group = json_object();
        for (int m = 0; m < IDENTIFICATION_METHODS; m++) {
            const struct identification_summary *s = &result->summaries[g][m];
            json_object_set_new(group, method_keys[m],
                                json_pack("{s:f,s:f,s:f,s:f}", "rank1", s->mean.rank1, "tar",
                                          s->mean.tar, "rank1_sd", s->spread.rank1, "tar_sd",
                                          s->spread.tar));
        }
        json_object_set_new(object, group_keys[g], group);
    }
    json_object_set_new(object, "seeds", json_integer((json_int_t)result->n_seeds));
    json_object_set_new(object, "people", json_integer((json_int_t)result->n_people));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)fprintf(file, "%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(object);
}

static void print_table(const struct identification_result *result, FILE *file)
{
    (void)fprintf(file,
                  "%zu people, %zu of them trained; mean and deviation over %zu splits, in %%\n",
                  result->n_people, result->n_trained, result->n_seeds);
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        (void)fprintf(file, "\n%-32s %16s  %20s\n", group_titles[g], "rank-1", "TAR at 1 % FAR");
        for (int m = 0; m < IDENTIFICATION_METHODS; m++) {
            const struct identification_summary *s = &result->summaries[g][m];
            (void)fprintf(file, "  %-30s %9.2f ± %4.2f  %12.2f ± %5.2f\n", method_titles[m],
                          100 * s->mean.rank1, 100 * s->spread.rank1, 100 * s->mean.tar,
                          100 * s->spread.tar);
        }
    }
}

void identification_print(const struct identification_result *result, bool is_json, FILE *file)
{
    if (is_json) {
        print_json(result, file);
    } else {
        print_table(result, file);
    }
}
