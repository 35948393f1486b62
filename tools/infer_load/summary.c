/* What the records of a load tell, as text and as JSON. */
#include "infer_load/load.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdlib.h>

#define KINDS_MAX 64

static bool is_good(const struct load_record *record)
{
    return record->http_status >= 200 && record->http_status < 300;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_ms(const uint64_t *sorted, size_t n, double q)
{
    return n == 0 ? 0 : (double)sorted[WEIR_MIN((size_t)(q * (double)n), n - 1)] / 1e6;
}

void load_summarise(const struct load_result *result, struct load_summary *out)
{
    uint64_t *taken = weir_xalloc((result->n + 1) * sizeof *taken);
    uint64_t *late = weir_xalloc((result->n + 1) * sizeof *late);
    size_t n_good = 0, n_sent = 0;
    for (size_t i = 0; i < result->n; i++) {
        const struct load_record *record = &result->records[i];
        if (is_good(record)) {
            taken[n_good++] = record->done_ns - record->due_ns;
        }
        if (record->sent_ns != 0) {
            late[n_sent++] = record->sent_ns - record->due_ns;
        }
    }
    qsort(taken, n_good, sizeof *taken, compare);
    qsort(late, n_sent, sizeof *late, compare);
    *out = (struct load_summary){.n = result->n,
                                 .n_failed = result->n - n_good,
                                 .p50_ms = quantile_ms(taken, n_good, 0.5),
                                 .p90_ms = quantile_ms(taken, n_good, 0.9),
                                 .p99_ms = quantile_ms(taken, n_good, 0.99),
                                 .p999_ms = quantile_ms(taken, n_good, 0.999),
                                 .max_ms = quantile_ms(taken, n_good, 1),
                                 .late_p99_ms = quantile_ms(late, n_sent, 0.99),
                                 .answered_s =
                                     result->seconds > 0 ? (double)n_good / result->seconds : 0};
    free(taken);
    free(late);
}

/* How often each value comes; values beyond KINDS_MAX different ones are left out. */
struct counts {
    int64_t values[KINDS_MAX];
    size_t n_of[KINDS_MAX], n;
};

static void count(struct counts *counts, int64_t value)
{
    size_t i = 0;
    while (i < counts->n && counts->values[i] != value) {
        i++;
    }
    if (i == counts->n && counts->n < KINDS_MAX) {
        counts->values[counts->n] = value;
        counts->n_of[counts->n++] = 0;
    }
    if (i < counts->n) {
        counts->n_of[i]++;
    }
}

static void count_all(const struct load_result *result, struct counts *statuses,
                      struct counts *versions)
{
    *statuses = *versions = (struct counts){.n = 0};
    for (size_t i = 0; i < result->n; i++) {
        count(statuses, result->records[i].http_status);
        if (is_good(&result->records[i]) && result->records[i].version != 0) {
            count(versions, result->records[i].version);
        }
    }
}

static void print_counts(const struct counts *counts, FILE *to)
{
    for (size_t i = 0; i < counts->n; i++) {
        (void)fprintf(to, "%s\"%" PRId64 "\": %zu", i == 0 ? "" : ", ", counts->values[i],
                      counts->n_of[i]);
    }
}

void load_print_json(const struct load_result *result, FILE *to)
{
    struct load_summary s;
    struct counts statuses, versions;
    load_summarise(result, &s);
    count_all(result, &statuses, &versions);
    (void)fprintf(to,
                  "{\"n\": %zu, \"n_failed\": %zu, \"seconds\": %.3f, \"answered_s\": %.1f, "
                  "\"p50_ms\": %.4f, \"p90_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, "
                  "\"max_ms\": %.4f, \"late_p99_ms\": %.4f, \"statuses\": {",
                  s.n, s.n_failed, result->seconds, s.answered_s, s.p50_ms, s.p90_ms, s.p99_ms,
                  s.p999_ms, s.max_ms, s.late_p99_ms);
    print_counts(&statuses, to);
    (void)fputs("}, \"versions\": {", to);
    print_counts(&versions, to);
    (void)fputs("}}\n", to);
}

void load_print_text(const struct load_result *result, FILE *to)
{
    struct load_summary s;
    struct counts statuses, versions;
    load_summarise(result, &s);
    count_all(result, &statuses, &versions);
    (void)fprintf(to, "%zu requests in %.2f s, %.0f good answers a second, %zu failed\n", s.n,
                  result->seconds, s.answered_s, s.n_failed);
    (void)fprintf(to, "p50 %.3f, p90 %.3f, p99 %.3f, p99.9 %.3f, largest %.3f ms\n", s.p50_ms,
                  s.p90_ms, s.p99_ms, s.p999_ms, s.max_ms);
    (void)fprintf(to, "begun late (p99): %.3f ms\n", s.late_p99_ms);
    (void)fputs("by status (0: no answer): ", to);
    print_counts(&statuses, to);
    if (versions.n > 0) {
        (void)fputs("\nby version: ", to);
        print_counts(&versions, to);
    }
    (void)fputs("\n", to);
}

void load_print_trace(const struct load_result *result, FILE *to)
{
    for (size_t i = 0; i < result->n; i++) {
        const struct load_record *r = &result->records[i];
        (void)fprintf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d %" PRId64 "\n", r->due_ns,
                      r->sent_ns, r->done_ns, r->http_status, r->version);
    }
}
