#include "fast.h"

#include "batch.h"
#include "onednn.h"
#include "plan.h"
#include "threads.h"

#include "base/clock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* ---- constants in other layouts --------------------------------------------------------------- */

void *fast_pack_find(const struct fast *fast, size_t step, int slot,
                     const struct weir_dnn_layout *md)
{
    for (const struct fast_pack *pack = fast->packs; pack != NULL; pack = pack->next) {
        if (pack->step == step && pack->slot == slot && weir_dnn_layout_equal(&pack->md, md)) {
            return pack->data;
        }
    }
    return NULL;
}

void *fast_pack_add(struct fast *fast, size_t step, int slot, const struct weir_dnn_layout *md,
                    size_t n_bytes)
{
    struct fast_pack *pack = calloc(1, sizeof *pack);
    size_t unit = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    size_t whole = (n_bytes / unit + 1) * unit;
    void *data = pack != NULL ? aligned_alloc(unit, whole) : NULL;
    if (data == NULL) {
        free(pack);
        return NULL;
    }
    if (unit == HUGE_PAGE) {
        (void)madvise(data, whole, MADV_HUGEPAGE); /* a hint */
    }
    memset(data, 0, whole);
    *pack = (struct fast_pack){step, n_bytes, slot, *md, data, fast->packs};
    fast->packs = pack;
    return data;
}

/* ---- create and destroy ----------------------------------------------------------------------- */

static int32_t count_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

weir_status fast_create(struct weir_onnx *onnx, struct fast **out, struct weir_error *err)
{
    struct fast *fast = calloc(1, sizeof *fast);
    if (fast == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    fast->onnx = onnx;
    fast->most_threads = onnx->limits.n_threads > 0 ? onnx->limits.n_threads : count_cpus();
    fast->n_threads = fast->most_threads;
    fast_chains_find(onnx, &fast->chains);
    threads_set(fast->n_threads);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(
        onednn_check(dnnl_engine_create(&fast->engine, dnnl_cpu, 0), "creating an engine", err),
        status, destroy);
    WEIR_TRY_GOTO(
        onednn_check(dnnl_stream_create(&fast->stream, fast->engine, dnnl_stream_default_flags),
                     "creating a stream", err),
        status, destroy);
    WEIR_TRY_GOTO(weir_arena_check(&onnx->model->arena, "an ONNX model", err), status, destroy);
    *out = fast;
    return WEIR_OK;
destroy:
    fast_destroy(fast);
    return status;
}

void fast_destroy(struct fast *fast)
{
    if (fast == NULL) {
        return;
    }
    for (size_t i = 0; i < FAST_PLANS_MAX; i++) {
        fast_plan_free(fast->places[i].plans[0]);
        fast_plan_free(fast->places[i].plans[1]);
        fast_plan_free(fast->places[i].with_nan);
    }
    for (struct fast_pack *pack = fast->packs, *next; pack != NULL; pack = next) {
        next = pack->next;
        free(pack->data);
        free(pack);
    }
    if (fast->stream != NULL) {
        dnnl_stream_destroy(fast->stream);
    }
    if (fast->engine != NULL) {
        dnnl_engine_destroy(fast->engine);
    }
    region_close(&fast->region);
    free(fast);
}

/* ---- run -------------------------------------------------------------------------------------- */

static bool fits(const struct fast_plan *plan)
{
    const struct weir_onnx *onnx = plan->fast->onnx;
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        const struct weir_tensor *tensor = onnx->values[onnx->input_values[i]];
        const struct fast_shape *shape = &plan->inputs[i];
        if (shape->dtype != tensor->dtype || shape->rank != tensor->rank ||
            memcmp(shape->dims, tensor->dims, (size_t)shape->rank * sizeof *shape->dims) != 0) {
            return false;
        }
    }
    return true;
}

/* The place whose plans are for the inputs, or else where they belong: an empty one, or that used
 * longest ago. */
static size_t find_place(const struct fast *fast, bool *out_has)
{
    size_t oldest = 0;
    *out_has = true;
    for (size_t i = 0; i < FAST_PLANS_MAX; i++) {
        const struct fast_twins *place = &fast->places[i];
        const struct fast_plan *any = place->plans[0] != NULL ? place->plans[0] : place->plans[1];
        if (any != NULL && fits(any)) {
            return i;
        }
        if (place->last_run < fast->places[oldest].last_run) {
            oldest = i;
        }
    }
    *out_has = false;
    return oldest;
}

/* ---- how many threads -------------------------------------------------------------------------- */

#define TRIED_AGAIN 32 /* Runs of the faster one, for each time that the slower takes as long. */
#define NEWEST      0.25

/* All threads, then one, then the faster; the slower is tried so seldom that it costs a few percent. */
static size_t choose_plan(const struct fast *fast, const struct fast_twins *place)
{
    if (fast->most_threads <= 1) {
        return 0;
    }
    if (place->ns[0] == 0 || place->ns[1] == 0) {
        return place->ns[1] == 0 ? 1 : 0;
    }
    size_t fastest = place->ns[1] < place->ns[0] ? 1 : 0;
    double due = TRIED_AGAIN * place->ns[1 - fastest] / place->ns[fastest];
    return (double)place->n_since >= due ? 1 - fastest : fastest;
}

static void note_time(struct fast_twins *place, size_t which, double ns)
{
    bool was_fastest = place->ns[which] > 0 && place->ns[which] <= place->ns[1 - which];
    place->ns[which] = was_fastest ? place->ns[which] + NEWEST * (ns - place->ns[which]) : ns;
    place->n_since = was_fastest ? place->n_since + 1 : 0;
}

/* Without the inputs: they are needed again. */
static void drop_results(struct fast *fast)
{
    struct weir_onnx *onnx = fast->onnx;
    for (size_t i = 0; i < onnx->n_steps; i++) {
        for (size_t k = 0; k < onnx->steps[i].node->n_out; k++) {
            onnx_drop(onnx, onnx->steps[i].out[k]);
        }
    }
}

static weir_status make_plan(struct fast *fast, bool keeps_nan, struct fast_plan **plan,
                             struct weir_error *err)
{
    struct fast_plan *old = *plan;
    *plan = NULL;
    fast->last = NULL;
    if (old != NULL) {
        drop_results(fast);
    }
    if (fast->region.base == NULL) {
        WEIR_TRY(region_open(&fast->region, fast->onnx->limits.run_bytes, err));
    }
    fast_plan_free(old);
    return fast_plan_make(fast, keeps_nan, plan, err);
}

/* A place for another shape. */
static void clear_place(struct fast *fast, struct fast_twins *place)
{
    if (place->plans[0] != NULL || place->plans[1] != NULL) {
        drop_results(fast);
    }
    fast->last = NULL;
    fast_plan_free(place->plans[0]);
    fast_plan_free(place->plans[1]);
    fast_plan_free(place->with_nan);
    *place = (struct fast_twins){.plans = {NULL}};
}

static weir_status take_output(const struct fast_plan *plan, int32_t value,
                               struct weir_tensor **out, struct weir_error *err)
{
    struct weir_tensor *tensor = fast_tensor(plan, value);
    if (!region_has(&plan->fast->region, tensor->data)) {
        *out = weir_tensor_retain(tensor);
        return WEIR_OK;
    }
    WEIR_TRY(weir_tensor_create(tensor->dtype, tensor->rank, tensor->dims, out, err));
    return weir_elems_copy(tensor->dtype, (*out)->data, tensor->data, tensor->n_elems);
}

static weir_status take_outputs(const struct fast_plan *plan, struct weir_tensor **out,
                                struct weir_error *err)
{
    const struct weir_onnx *onnx = plan->fast->onnx;
    for (size_t i = 0; i < onnx->n_outputs; i++) {
        weir_status status = take_output(plan, onnx->output_values[i], &out[i], err);
        for (size_t k = 0; status != WEIR_OK && k < i; k++) {
            weir_tensor_release(out[k]);
            out[k] = NULL;
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

/* Runs a plan of the inputs' shape, or makes it. *out_held: it was there. */
static weir_status run_plan(struct fast *fast, bool keeps_nan, int32_t n_threads,
                            struct fast_plan **plan, bool *out_held, struct weir_error *err)
{
    fast->n_threads = n_threads;
    threads_set(n_threads);
    drop_results(fast); /* of an earlier piece, or of a run that does not count */
    *out_held = *plan != NULL;
    if (*out_held) {
        WEIR_TRY(fast_plan_run(*plan, out_held, err));
    }
    if (!*out_held) {
        WEIR_TRY(make_plan(fast, keeps_nan, plan, err));
    }
    fast->last = *plan;
    return WEIR_OK;
}

weir_status fast_run_plan(struct fast *fast, double *out_ns, struct weir_error *err)
{
    bool has, held;
    struct fast_twins *place = &fast->places[find_place(fast, &has)];
    if (!has) {
        clear_place(fast, place);
    }
    size_t which = choose_plan(fast, place);
    uint64_t begin = weir_mono_ns();
    WEIR_TRY(run_plan(fast, false, which == 0 ? 1 : fast->most_threads, &place->plans[which], &held,
                      err));
    if (held) {
        note_time(place, which, (double)(weir_mono_ns() - begin));
    }
    place->last_run = ++fast->n_runs;
    if (fast->last->rings) {
        bool keeps_apart = fast->last->keeps_apart;
        WEIR_TRY(run_plan(fast, true, fast->most_threads, &place->with_nan, &held, err));
        fast->last->keeps_apart = keeps_apart; /* it does so as the other does */
    }
    if (out_ns != NULL) {
        bool has_both = place->ns[0] > 0 && place->ns[1] > 0;
        *out_ns = has_both ? WEIR_MIN(place->ns[0], place->ns[1]) : place->ns[0];
    }
    return WEIR_OK;
}

weir_status fast_run(struct fast *fast, struct weir_tensor **out, struct weir_error *err)
{
    bool is_done;
    WEIR_TRY(batch_run(fast, batch_count(fast->onnx), out, &is_done, err));
    if (is_done) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_run_plan(fast, NULL, err));
    return take_outputs(fast->last, out, err);
}

/* ---- times ------------------------------------------------------------------------------------ */

void fast_profile(struct fast *fast)
{
    fast->profiles = true;
}

void fast_profile_print(const struct fast *fast, FILE *out)
{
    for (size_t i = 0; fast->last != NULL && i < fast->last->n_actions; i++) {
        const struct fast_action *action = fast->last->actions[i];
        const struct onnx_node *node = fast->onnx->steps[action->i_step].node;
        if (action->n_runs > 0 && action->sum_ns / action->n_runs >= 1000) {
            (void)fprintf(out, "%10.1f us  %-24s %-24s %s\n",
                          (double)action->sum_ns / 1e3 / (double)action->n_runs, action->name,
                          node->type, node->name);
        }
    }
}

size_t fast_n_interpreted(const struct fast *fast)
{
    return fast->last != NULL ? fast->last->n_interpreted : 0;
}
