/** Loading of one version: its file, first runs with zeros, the golden check, and the batcher it answers from. */
#include "serve/replica/versions_private.h"

#include "base/clock.h"
#include "serve/model/probe.h"
#include "serve/model/sample.h"
#include "serve/replica/golden.h"
#include "serve/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t resident_bytes(void)
{
    unsigned long long n_total = 0, n_resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    int n = fscanf(file, "%llu %llu", &n_total, &n_resident);
    (void)fclose(file);
    return n == 2 ? (size_t)n_resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* What is computed by one thread, and by all, is made and timed in the first runs of a shape. */
#define FIRST_RUNS 4

static weir_status run_first(struct version *version, struct weir_tensor *const *in,
                             struct weir_error *err)
{
    weir_status status = WEIR_OK;
    for (int i = 0; status == WEIR_OK && i < FIRST_RUNS; i++) {
        struct weir_tensor *out[SERVE_PORTS_MAX] = {0};
        status = serve_model_run(version->executor, in, out, err);
        serve_tensors_release(out, version->executor->n_outputs);
    }
    return status;
}

/* First runs of as many rows as a batch has. */
static weir_status warm_up_batch(struct version *version, struct weir_tensor *const *rows,
                                 int64_t n_rows, struct weir_error *err)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {0};
    weir_status status = WEIR_OK;
    for (size_t i = 0; status == WEIR_OK && i < version->executor->n_inputs; i++) {
        status = sample_repeat(
            rows[i], WEIR_MAX(n_rows / WEIR_MAX(rows[i]->dims[0], (int64_t)1), (int64_t)1), &in[i],
            err);
    }
    if (status == WEIR_OK) {
        status = run_first(version, in, err);
    }
    serve_tensors_release(in, version->executor->n_inputs);
    return status;
}

/* Is every dimension but the batch's known? Then zeros of that shape must work. */
static bool has_known_shapes(const struct version *version)
{
    for (size_t i = 0; i < version->executor->n_inputs; i++) {
        const struct serve_port *port = &version->executor->inputs[i];
        if (port->rank < 0 || port->dtype == WEIR_DTYPE_STRING) {
            return false;
        }
        for (int32_t k = version->signature.is_batched; k < port->rank; k++) {
            if (port->dims[k] < 0) {
                return false;
            }
        }
    }
    return true;
}

/* The first runs are slow: memory is taken, code is generated. They are nobody's request. */
static weir_status warm_up(struct version *version, const struct version_wanted *wanted,
                           struct weir_error *err)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {0}, *out[SERVE_PORTS_MAX] = {0};
    const struct probe_golden golden = {.text = wanted->golden, .len = wanted->golden_len};
    weir_status status = probe_find(version->executor, &version->signature, &golden, in, out, err);
    serve_tensors_release(out, version->executor->n_outputs);
    if (status == WEIR_OK) {
        status = run_first(version, in, err);
    }
    if (status == WEIR_OK && version->joins && wanted->rules.batch_max > 1) {
        status = warm_up_batch(version, in, wanted->rules.batch_max, err);
    }
    serve_tensors_release(in, version->executor->n_inputs);
    if (status != WEIR_OK && has_known_shapes(version)) {
        return weir_error_prefix(err, "a first run: ");
    }
    return wanted->golden == NULL
               ? WEIR_OK
               : golden_check(version->executor, wanted->golden, wanted->golden_len, err);
}

static weir_status load_executor(const struct versions_config *config,
                                 const struct version_wanted *wanted, struct version *version,
                                 struct weir_error *err)
{
    struct executor_options options = config->executor;
    options.batch_max = (int32_t)WEIR_MIN(wanted->rules.batch_max, (int64_t)BATCHER_ROWS_MAX);
    char why[EXECUTOR_WHY_BYTES];
    if (wanted->signature != NULL) {
        WEIR_TRY(weir_signature_read(wanted->signature, "signature", &version->arena,
                                     &version->signature, err));
        options.shapes = version->signature.inputs;
        options.n_shapes = version->signature.n_inputs;
        WEIR_TRY(executor_load(version->signature.executor, wanted->path, &options,
                               &version->executor, err));
    } else {
        static const struct signature_extras none;
        const struct signature_extras *extras = wanted->extras != NULL ? wanted->extras : &none;
        WEIR_TRY(signature_shapes(extras, &version->arena, &options, err));
        WEIR_TRY(executor_choose(wanted->path, &options, &version->executor, why, err));
        WEIR_TRY(weir_signature_make(version->executor, serve_model_format(version->executor), why,
                                     extras, &version->arena, &version->signature, err));
    }
    if (version->signature.n_inputs != version->executor->n_inputs ||
        version->signature.n_outputs != version->executor->n_outputs) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the file has %zu inputs and %zu outputs, its signature %zu and %zu",
                              version->executor->n_inputs, version->executor->n_outputs,
                              version->signature.n_inputs, version->signature.n_outputs);
    }
    return WEIR_OK;
}

static weir_status run_model(void *context, struct weir_tensor *const *in, struct weir_tensor **out,
                             struct weir_error *err)
{
    struct version *version = context;
    struct weir_error own;
    err = err != NULL ? err : &own;
    weir_status status = serve_model_run(version->executor, in, out, err);
    if (status != WEIR_OK && version->executor->is_broken) {
        versions_take_out_broken(version, err->message);
    }
    return status;
}

static weir_status build(const struct versions_config *config, const struct version_wanted *wanted,
                         struct version *version, struct weir_error *err)
{
    struct stat facts;
    if (stat(wanted->path, &facts) != 0) {
        return weir_error_set_errno(err, errno, "%s", wanted->path);
    }
    size_t before = resident_bytes();
    WEIR_TRY(versions_check_room(version->owner, wanted, (size_t)facts.st_size, err));
    WEIR_TRY(load_executor(config, wanted, version, err));
    version->joins = serve_model_joins(version->executor, &version->signature);
    WEIR_TRY(warm_up(version, wanted, err));
    size_t after = resident_bytes();
    size_t grown = after > before ? after - before : 0;
    version->memory_bytes = WEIR_MAX(grown, (size_t)facts.st_size);
    WEIR_TRY(versions_check_room(version->owner, wanted, version->memory_bytes, err));
    const struct batcher_config batches = {.n_inputs = version->signature.n_inputs,
                                           .n_outputs = version->signature.n_outputs,
                                           .is_batched = version->joins,
                                           .rules = wanted->rules,
                                           .run = run_model,
                                           .context = version};
    return batcher_start(&batches, &version->batcher, err);
}

void version_destroy(struct version *version)
{
    batcher_stop(version->batcher);
    serve_model_unload(version->executor);
    weir_arena_fini(&version->arena);
    free(version);
}

weir_status version_create(const struct versions_config *config, struct versions *owner,
                           const struct version_wanted *wanted, struct version **out,
                           struct weir_error *err)
{
    struct version *version = weir_xalloc(sizeof *version);
    uint64_t start_ns = weir_mono_ns();
    memset(version, 0, sizeof *version);
    weir_arena_init(&version->arena, 0);
    atomic_init(&version->n_refs, 1);
    version->owner = owner;
    version->model = weir_arena_strdup(&version->arena, wanted->model);
    version->number = wanted->number;
    version->blob = weir_arena_strdup(&version->arena, wanted->blob != NULL ? wanted->blob : "");
    weir_status status = build(config, wanted, version, err);
    if (status != WEIR_OK) {
        version_destroy(version);
        return status;
    }
    version->load_ms = (double)(weir_mono_ns() - start_ns) / 1e6;
    *out = version;
    return WEIR_OK;
}
