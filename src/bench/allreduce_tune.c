#include "bench/allreduce.h"

#include "base/buf.h"

#include <math.h>
#include <string.h>

/* The size of messages matters once there is more than one of them. */
static const char *const candidates[] = {"flat",      "direct#64K",   "direct#256K", "direct#1M",
                                         "ring#64K",  "ring#256K",    "ring#1M",     "tree#64K",
                                         "tree#256K", "halving#256K", "halving#1M"};

/* What was best for the size before counts as best unless another is faster by more than this. */
static const double ENOUGH = 0.95;

enum { FLAT_MOST_BYTES = 1 << 20, SMALL_BYTES = 64 << 10, TEXT_MAX_BYTES = 1024 };

static bool is_worth_trying(const char *candidate, size_t bytes)
{
    bool is_flat = strcmp(candidate, "flat") == 0;
    if (is_flat) {
        return bytes <= FLAT_MOST_BYTES;
    }
    return bytes > SMALL_BYTES || strstr(candidate, "#256K") != NULL;
}

static weir_status try_size(struct weir_comm *comm, const struct allreduce_plan *plan, void *buf,
                            size_t bytes, int *i_best, struct allreduce_row *out,
                            struct weir_error *err)
{
    struct allreduce_row rows[WEIR_ARRAY_LEN(candidates)];
    int i_fastest = -1;
    for (int i = 0; i < (int)WEIR_ARRAY_LEN(candidates); i++) {
        rows[i].time_us = INFINITY;
        if (is_worth_trying(candidates[i], bytes)) {
            WEIR_TRY(weir_comm_set_algorithm(comm, candidates[i], err));
            WEIR_TRY(allreduce_measure(comm, plan, bytes, buf, &rows[i]));
            i_fastest = i_fastest < 0 || rows[i].time_us < rows[i_fastest].time_us ? i : i_fastest;
        }
    }
    /* All ranks have the same times, so they come to the same. */
    if (*i_best < 0 || rows[i_fastest].time_us < ENOUGH * rows[*i_best].time_us) {
        *i_best = i_fastest;
    }
    *out = rows[*i_best];
    return WEIR_OK;
}

/** The fastest candidates by size; each but the last up to a number of bytes. */
struct tuning {
    size_t n;
    int candidates[WEIR_COMM_MAX_RULES];
    uint64_t up_to_bytes[WEIR_COMM_MAX_RULES];
};

/* Between two sizes of which another is best for each the border is in the middle, as a ratio. */
static void add_rule(struct tuning *tuning, int i_candidate, double border)
{
    if (tuning->n == WEIR_COMM_MAX_RULES ||
        (tuning->n > 0 && tuning->candidates[tuning->n - 1] == i_candidate)) {
        return;
    }
    if (tuning->n > 0) {
        tuning->up_to_bytes[tuning->n - 1] = (uint64_t)border;
    }
    tuning->candidates[tuning->n++] = i_candidate;
}

/* As comm's config.algorithm spells it: at most 16 rules of 13 + 1 + 20 + 1 characters. */
static void print_tuning(const struct tuning *tuning, struct weir_buf *out)
{
    for (size_t i = 0; i < tuning->n; i++) {
        weir_buf_printf(out, "%s", candidates[tuning->candidates[i]]);
        if (i + 1 < tuning->n) {
            weir_buf_printf(out, ":%llu:", (unsigned long long)tuning->up_to_bytes[i]);
        }
    }
}

static weir_status save(const struct weir_comm *comm, const char *path, const struct tuning *tuning,
                        struct weir_error *err)
{
    struct weir_buf text;
    weir_buf_init(&text, TEXT_MAX_BYTES);
    print_tuning(tuning, &text);
    weir_status status = text.status == WEIR_OK
                             ? weir_comm_tuning_save(comm, path, text.data, err)
                             : weir_error_set(err, text.status, "no memory for %s", path);
    weir_buf_fini(&text);
    return status;
}

weir_status allreduce_tune(struct weir_comm *comm, const struct allreduce_plan *plan, void *buf,
                           struct allreduce_row *out_rows, struct weir_error *err)
{
    struct tuning tuning = {.n = 0};
    int i_best = -1;
    if (!weir_comm_has_algorithms(comm)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "--tune: there is one way in shared memory; use --transport ucx or "
                              "tcp, or --split");
    }
    for (size_t i = 0; i < plan->n_sizes; i++) {
        size_t bytes = plan->sizes[i], before = i > 0 ? plan->sizes[i - 1] : bytes;
        WEIR_TRY(try_size(comm, plan, buf, bytes, &i_best, &out_rows[i], err));
        add_rule(&tuning, i_best, sqrt((double)before * (double)bytes));
    }
    return weir_comm_rank(comm) == 0 ? save(comm, plan->options->tune, &tuning, err) : WEIR_OK;
}
