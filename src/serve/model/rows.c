#include "serve/rows.h"

#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DRAWS     5
#define FAR       1e4
#define ROUNDING  1e-5 /* Of an output's size: what sums in another order may change. */
#define SEED      20240229
#define ROWS_OF_A 2
#define ROWS_OF_B 1

static const int64_t free_sizes[] = {1, 32, 224, 512, 2, 16};

/* One row of floats far from all others: what looks at the whole batch answers to it. */
static void put_far(struct weir_tensor *tensor)
{
    size_t each = tensor->n_elems / (size_t)tensor->dims[0];
    for (size_t i = 0; tensor->dtype == WEIR_DTYPE_FLOAT && i < each; i++) {
        ((float *)tensor->data)[i] = (float)(FAR * (i % 2 == 0 ? 1 : -1));
    }
}

static weir_status run(struct serve_model *model, struct weir_tensor **in, struct weir_tensor **out)
{
    struct weir_error err;
    weir_status status = serve_model_run(model, in, out, &err);
    serve_tensors_release(in, model->n_inputs);
    return status;
}

/* Rows first to first + n of what came of all are what came of these alone. */
static bool is_part(const struct weir_tensor *all, const struct weir_tensor *alone, int64_t n_all,
                    int64_t first, int64_t n)
{
    struct weir_tensor *part;
    struct weir_error err;
    if (all->rank < 1 || alone->rank < 1 || all->dims[0] != n_all || alone->dims[0] != n ||
        sample_rows(all, first, n, &part, &err) != WEIR_OK) {
        return false;
    }
    bool is = sample_distance(part, alone) <= ROUNDING;
    weir_tensor_release(part);
    return is;
}

/* What came of a and b alone stands together in what came of both. */
static bool came_together(const struct serve_model *model, struct weir_tensor *const *both,
                          struct weir_tensor *const *a, struct weir_tensor *const *b, int64_t n_a,
                          int64_t n_b)
{
    bool is = true;
    for (size_t i = 0; is && i < model->n_outputs; i++) {
        is = is_part(both[i], a[i], n_a + n_b, 0, n_a) &&
             is_part(both[i], b[i], n_a + n_b, n_a, n_b);
    }
    return is;
}

static weir_status join_all(const struct serve_model *model, struct weir_tensor *const *a,
                            struct weir_tensor *const *b, struct weir_tensor **out)
{
    struct weir_error err;
    weir_status status = WEIR_OK;
    memset(out, 0, SERVE_PORTS_MAX * sizeof(struct weir_tensor *));
    for (size_t i = 0; status == WEIR_OK && i < model->n_inputs; i++) {
        status = sample_join(a[i], b[i], &out[i], &err);
    }
    if (status != WEIR_OK) {
        serve_tensors_release(out, model->n_inputs);
    }
    return status;
}

/* Two requests, alone, and together in both orders. False too if they cannot be run together. The
 * inputs are released. *out_ran: could they be run alone? */
static bool come_apart(struct serve_model *model, struct weir_tensor **a, struct weir_tensor **b,
                       bool *out_ran)
{
    struct weir_tensor *ab[SERVE_PORTS_MAX], *ba[SERVE_PORTS_MAX];
    struct weir_tensor *out_a[SERVE_PORTS_MAX] = {NULL}, *out_b[SERVE_PORTS_MAX] = {NULL};
    struct weir_tensor *out_ab[SERVE_PORTS_MAX] = {NULL}, *out_ba[SERVE_PORTS_MAX] = {NULL};
    bool has_ab = join_all(model, a, b, ab) == WEIR_OK,
         has_ba = join_all(model, b, a, ba) == WEIR_OK;
    bool ran_a = run(model, a, out_a) == WEIR_OK, ran_b = run(model, b, out_b) == WEIR_OK;
    bool are = has_ab && run(model, ab, out_ab) == WEIR_OK;
    are = has_ba && run(model, ba, out_ba) == WEIR_OK && are;
    *out_ran = ran_a && ran_b;
    are = are && *out_ran && came_together(model, out_ab, out_a, out_b, ROWS_OF_A, ROWS_OF_B) &&
          came_together(model, out_ba, out_b, out_a, ROWS_OF_B, ROWS_OF_A);
    struct weir_tensor **const all[] = {out_a, out_b, out_ab, out_ba};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        serve_tensors_release(all[i], model->n_outputs);
    }
    return are;
}

static weir_status make_pair(const struct weir_signature *signature, int64_t free_size,
                             size_t i_draw, struct weir_rng *rng, struct weir_tensor **a,
                             struct weir_tensor **b)
{
    struct weir_error err;
    enum sample_kind kind = i_draw % 2 == 0 ? SAMPLE_SMALL : SAMPLE_WIDE;
    const struct sample_size of_a = {.batch = ROWS_OF_A, .free_size = free_size};
    const struct sample_size of_b = {.batch = ROWS_OF_B, .free_size = free_size};
    WEIR_TRY(sample_make(signature, &of_a, a, &err));
    weir_status status = sample_make(signature, &of_b, b, &err);
    for (size_t i = 0; status == WEIR_OK && i < signature->n_inputs; i++) {
        status = sample_fill(a[i], kind, rng, &err);
        status = status == WEIR_OK ? sample_fill(b[i], kind, rng, &err) : status;
        if (status == WEIR_OK && i_draw > 0) {
            put_far(i_draw % 2 == 1 ? a[i] : b[i]);
        }
    }
    if (status != WEIR_OK) {
        serve_tensors_release(a, signature->n_inputs);
        serve_tensors_release(b, signature->n_inputs);
    }
    return status;
}

/* Draws until the first that does not come apart. Those that the model refuses alone say nothing. */
static bool try_size(struct serve_model *model, const struct weir_signature *signature,
                     int64_t free_size, size_t *out_n_ran)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, (uint64_t)free_size);
    *out_n_ran = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        struct weir_tensor *a[SERVE_PORTS_MAX], *b[SERVE_PORTS_MAX];
        bool ran;
        if (make_pair(signature, free_size, i, &rng, a, b) != WEIR_OK) {
            return false;
        }
        bool are_apart = come_apart(model, a, b, &ran);
        *out_n_ran += ran;
        if (ran && !are_apart) {
            return false;
        }
    }
    return true;
}

static void try_rows(struct serve_model *model, const struct weir_signature *signature)
{
    size_t n_ran = 0;
    bool are_apart = true;
    for (size_t i = 0; are_apart && n_ran == 0 && i < WEIR_ARRAY_LEN(free_sizes); i++) {
        are_apart = try_size(model, signature, free_sizes[i], &n_ran);
    }
    model->rows = are_apart && n_ran > 1 ? SERVE_ROWS_APART : SERVE_ROWS_MIXED;
    if (model->rows == SERVE_ROWS_MIXED) {
        (void)snprintf(model->rows_why, sizeof model->rows_why, "%s",
                       are_apart ? "it could not be tried whether rows of a batch stay apart"
                                 : "random rows came out of a batch otherwise than alone");
    }
}

bool serve_model_joins(struct serve_model *model, const struct weir_signature *signature)
{
    if (!signature->is_batched) {
        return false;
    }
    if (model->rows == SERVE_ROWS_UNSURE) {
        try_rows(model, signature);
    }
    return model->rows == SERVE_ROWS_APART;
}
