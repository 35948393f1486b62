#include "agree.h"

#include "sample.h"

#include "base/arena.h"
#include "base/deadline.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS      3
#define MOST_WRONG 1    /* Draws that may differ: one may have met a jump. */
#define TOLERANCE  1e-2 /* Of an output's size: more than rounding makes, less than a fault. */
#define NUDGE      1e-6
#define EXCUSED    10 /* Times what a nudge does. */
#define SEED       20240301

/** A comparison, which a thread of its own makes; who is last frees it. */
struct comparison {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_over; /* Under lock. */
    atomic_int n_users;
    const char *path, *other;
    struct executor_options options;
    size_t n_inputs, n_outputs, n_draws;
    struct weir_tensor *in[DRAWS][SERVE_PORTS_MAX], *out[DRAWS][SERVE_PORTS_MAX];
    /* What came of it. */
    size_t n_compared, n_wrong, i_output;
    double distance;
};

static atomic_int n_given_up;

bool agree_is_running(void)
{
    return atomic_load(&n_given_up) > 0;
}

static void leave(struct comparison *it)
{
    if (atomic_fetch_sub(&it->n_users, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < DRAWS; i++) {
        serve_tensors_release(it->in[i], it->n_inputs);
        serve_tensors_release(it->out[i], it->n_outputs);
    }
    pthread_cond_destroy(&it->ended);
    pthread_mutex_destroy(&it->lock);
    free(it);
}

/* ---- the other way ---------------------------------------------------------------------------- */

static double farthest(struct weir_tensor *const *is, struct weir_tensor *const *of, size_t n,
                       size_t *out_i)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double distance = sample_distance(is[i], of[i]);
        if (distance > most) {
            most = distance;
            *out_i = i;
        }
    }
    return most;
}

/* How far the other's own answer goes if the input is changed by a millionth. */
static double jump(const struct comparison *it, struct serve_model *other, size_t i_draw,
                   struct weir_tensor *const *answer)
{
    struct weir_tensor *near[SERVE_PORTS_MAX] = {NULL}, *out[SERVE_PORTS_MAX] = {NULL};
    struct weir_error err;
    struct weir_rng rng;
    size_t i_output;
    weir_rng_init(&rng, SEED, i_draw);
    weir_status status = WEIR_OK;
    for (size_t i = 0; status == WEIR_OK && i < it->n_inputs; i++) {
        status = sample_repeat(it->in[i_draw][i], 1, &near[i], &err);
        for (size_t k = 0;
             status == WEIR_OK && near[i]->dtype == WEIR_DTYPE_FLOAT && k < near[i]->n_elems; k++) {
            ((float *)near[i]->data)[k] *= 1 + (float)(NUDGE * weir_rng_normal(&rng));
        }
    }
    status = status == WEIR_OK ? serve_model_run(other, near, out, &err) : status;
    double most = status == WEIR_OK ? farthest(out, answer, it->n_outputs, &i_output) : 0;
    serve_tensors_release(near, it->n_inputs);
    serve_tensors_release(out, it->n_outputs);
    return most;
}

static void compare_draw(struct comparison *it, struct serve_model *other, size_t i_draw)
{
    struct weir_tensor *out[SERVE_PORTS_MAX] = {NULL};
    struct weir_error err;
    size_t i_output = 0;
    if (serve_model_run(other, it->in[i_draw], out, &err) != WEIR_OK) {
        return;
    }
    double distance = farthest(it->out[i_draw], out, it->n_outputs, &i_output);
    it->n_compared++;
    if (distance > TOLERANCE && distance > EXCUSED * jump(it, other, i_draw, out)) {
        it->n_wrong++;
        it->i_output = i_output;
        it->distance = distance;
    }
    serve_tensors_release(out, it->n_outputs);
}

static void compare(struct comparison *it)
{
    struct serve_model *other;
    struct weir_error err;
    if (executor_load(it->other, it->path, &it->options, &other, &err) != WEIR_OK) {
        return;
    }
    bool is_alike = other->n_inputs == it->n_inputs && other->n_outputs == it->n_outputs;
    for (size_t i = 0; is_alike && i < it->n_draws; i++) {
        size_t n_right = it->n_compared - it->n_wrong;
        if (n_right <= MOST_WRONG && it->n_wrong <= MOST_WRONG) { /* else it is decided */
            compare_draw(it, other, i);
        }
    }
    serve_model_unload(other);
}

static void *comparison_main(void *context)
{
    struct comparison *it = context;
    compare(it);
    pthread_mutex_lock(&it->lock);
    it->is_over = true;
    pthread_cond_signal(&it->ended);
    pthread_mutex_unlock(&it->lock);
    leave(it);
    return NULL;
}

/* ---- the executor's answers ------------------------------------------------------------------- */

/* Random inputs, or tamer ones where the model refuses those; else what it is known to take. */
static weir_status draw(struct comparison *it, struct serve_model *model,
                        struct weir_tensor *const *like, size_t i_draw, struct weir_error *err)
{
    static const enum sample_kind kinds[] = {SAMPLE_WIDE, SAMPLE_SMALL};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED + 1, i_draw);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        WEIR_TRY(sample_like(like, it->n_inputs, kinds[i], &rng, it->in[i_draw], err));
        if (serve_model_run(model, it->in[i_draw], it->out[i_draw], err) == WEIR_OK) {
            return WEIR_OK;
        }
        serve_tensors_release(it->in[i_draw], it->n_inputs);
    }
    for (size_t i = 0; i < it->n_inputs; i++) {
        it->in[i_draw][i] = weir_tensor_retain(like[i]);
    }
    return serve_model_run(model, it->in[i_draw], it->out[i_draw], err);
}

/* True: it has ended, in time. */
static bool wait_for(struct comparison *it)
{
    struct timespec deadline = weir_deadline_after(AGREE_TIME_MS);
    bool is_over;
    pthread_mutex_lock(&it->lock);
    while (!it->is_over && weir_cond_wait_until(&it->ended, &it->lock, &deadline) == 0) {
    }
    is_over = it->is_over;
    pthread_mutex_unlock(&it->lock);
    return is_over;
}

static weir_status judge(const struct comparison *it, const struct serve_model *model,
                         struct weir_error *err)
{
    size_t n_right = it->n_compared - it->n_wrong;
    if (it->n_wrong == 0 || it->n_wrong <= n_right) {
        return WEIR_OK;
    }
    bool is_own = strcmp(it->other, "onnx") == 0;
    char size[64] = "in its shape, or in what is no number";
    if (it->distance < 1 || (isfinite(it->distance) && it->distance > 1)) {
        (void)snprintf(size, sizeof size, "by %.2g of its size", it->distance);
    }
    return weir_error_set(
        err, WEIR_ERR_UNSUPPORTED,
        "its output \"%.80s\" for random inputs differs %s from what %s gives: Weir "
        "computes this model wrongly; please report it",
        model->outputs[it->i_output].name, size,
        is_own ? "Weir's own plain way to compute it" : it->other);
}

weir_status agree_check(const char *path, const struct executor_options *options,
                        struct serve_model *model, struct weir_tensor *const *like,
                        const char *other, struct weir_error *err)
{
    pthread_t thread;
    struct comparison *it = weir_xalloc(sizeof *it);
    memset(it, 0, sizeof *it);
    *it = (struct comparison){.path = path,
                              .other = other,
                              .options = *options,
                              .n_inputs = model->n_inputs,
                              .n_outputs = model->n_outputs};
    it->options.only_interprets = true;
    pthread_mutex_init(&it->lock, NULL);
    pthread_cond_init(&it->ended, NULL);
    atomic_init(&it->n_users, 1);
    while (it->n_draws < DRAWS && draw(it, model, like, it->n_draws, err) == WEIR_OK) {
        it->n_draws++;
    }
    atomic_store(&it->n_users, 2);
    if (it->n_draws == 0 || pthread_create(&thread, NULL, comparison_main, it) != 0) {
        atomic_store(&it->n_users, 1);
        leave(it);
        return WEIR_OK; /* nothing is known */
    }
    (void)pthread_detach(thread);
    weir_status status = WEIR_OK;
    if (wait_for(it)) {
        status = judge(it, model, err);
    } else {
        atomic_fetch_add(&n_given_up, 1);
    }
    leave(it);
    return status;
}
