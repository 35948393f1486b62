#include "framework/job_plan.h"
#include "framework/program.h"
#include "framework/training.h"

static weir_status spec_int(const json_t *spec, const char *name, int64_t fallback, int64_t lo,
                            int64_t hi, int64_t *out, struct weir_error *err)
{
    const json_t *value = json_object_get(spec, name);
    if (value == NULL || json_is_null(value)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < lo ||
        json_integer_value(value) > hi) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.%s: expected an integer from %lld to %lld", name,
                              (long long)lo, (long long)hi);
    }
    *out = json_integer_value(value);
    return WEIR_OK;
}

static void set_checkpoint_dir(const struct weir_launch_job *job, json_t *spec)
{
    if (json_object_get(spec, "checkpoint_dir") == NULL) {
        json_object_set_new(spec, "checkpoint_dir",
                            json_sprintf("%s/checkpoints/%s", job->shared_dir, job->id));
    }
}

/* What lies in the output of worker 0 becomes files of the run: its event file for TensorBoard, and a
 * model that is registered under no name and was not to lie elsewhere. */
static void keep_with_run(json_t *spec)
{
    if (json_object_get(spec, "run") == NULL) {
        return;
    }
    if (json_object_get(spec, "tensorboard") == NULL) {
        json_object_set_new(spec, "tensorboard", json_string("output/tensorboard"));
    }
    if (json_object_get(spec, "model_name") == NULL && json_object_get(spec, "output") == NULL) {
        json_object_set_new(spec, "output", json_string("output/model.safetensors"));
    }
}

static json_t *define_worker(struct job_plan *plan, json_t *spec, bool is_first)
{
    if (is_first) {
        keep_with_run(spec);
    }
    return job_plan_worker(plan, "train", spec);
}

/* Where the ranks meet: at rank 0's address, which their agents learn from each other. Parameter servers
 * write parts of one checkpoint: all their nodes must see one folder. */
static void meet(json_t *definition, int64_t n_ranks, int64_t n_servers)
{
    program_meet(definition, n_ranks, n_servers > 0 ? n_ranks : 1);
    program_meet_env(definition, "WEIR_RENDEZVOUS", "tcp://{{0|@address:@port}}");
    if (n_servers > 0) {
        json_object_set_new(json_object_get(definition, "meet"), "needs_folder", json_true());
    }
}

/* A gang is stopped when one of its tasks is lost; so the workers of an elastic training are the
 * processes of one task, a weir-worker that starts them and replaces those that are lost. */
static weir_status plan_elastic(struct job_plan *plan, int64_t n_workers, struct weir_error *err)
{
    WEIR_TRY(job_plan_room(plan, 1, err));
    json_t *spec = job_plan_spec(plan);
    set_checkpoint_dir(plan->job, spec);
    job_plan_add(plan, "command", 0, n_workers * 1000, WEIGHT_WORKER,
                 define_worker(plan, spec, true));
    return WEIR_OK;
}

static weir_status plan_train(struct job_plan *plan, struct weir_error *err)
{
    int64_t n_workers, n_servers;
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(spec_int(job->spec, "workers", 1, 1, WEIR_FRAMEWORK_TASKS_MAX, &n_workers, err));
    WEIR_TRY(
        spec_int(job->spec, "parameter_servers", 0, 0, WEIR_FRAMEWORK_TASKS_MAX, &n_servers, err));
    if (json_is_true(json_object_get(job->spec, "elastic"))) {
        return plan_elastic(plan, n_workers, err);
    }
    WEIR_TRY(job_plan_room(plan, n_workers + n_servers, err));
    for (int64_t rank = 0; rank < n_workers + n_servers; rank++) {
        const char *role = rank < n_workers ? "worker" : "parameter_server";
        json_t *spec = job_plan_spec(plan);
        json_object_set_new(spec, "role", json_string(role));
        json_object_set_new(spec, "rank", json_integer(rank));
        json_object_set_new(spec, "rendezvous", json_string("env://WEIR_RENDEZVOUS"));
        json_object_set_new(spec, "secret", json_string(job->secret));
        set_checkpoint_dir(job, spec);
        json_t *definition = define_worker(plan, spec, rank == 0);
        if (n_workers + n_servers > 1) {
            meet(definition, n_workers + n_servers, n_servers);
        }
        job_plan_add(plan, role, rank, rank < n_workers ? 1000 : 0,
                     rank < n_workers ? WEIGHT_WORKER : WEIGHT_PARAMETER_SERVER, definition);
    }
    return WEIR_OK;
}

static weir_status check_train(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    weir_status status = weir_training_spec_check(spec, arena, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "$.spec.");
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "nodes", "replicas", "processes"), "workers", "weir train --workers N"},
    {WEIR_WORDS("argv"), NULL,
     "a training is told by options; a program of your own is of another kind, as pytorch or "
     "command"},
};

static const struct weir_job_ops ops = {
    .has_known_exits = true,
    .is_training = true,
    .save_signal = "USR1",
    .max_restarts = 3,
    .check = check_train,
    .plan = plan_train,
};

const struct weir_kind weir_job_train = {
    .name = "train",
    .doc = "Trains a model, data-parallel over workers that start together or not at all. It is "
           "tracked as a run, and goes on from its last checkpoint when it is started again.",
    .options = weir_training_table,
    .n_options = WEIR_TRAINING_N_OPTIONS,
    .options_bytes = sizeof(struct weir_train_config),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
