#include "control/queue_sample.h"

#include "control/schedule/guarantee.h"

static int64_t devices_of(const struct weir_sched_demand *demand)
{
    int64_t each = demand->device_milli > 0 ? demand->device_milli : WEIR_SCHED_DEVICE;
    return demand->n_devices * each;
}

static void add_task(const struct weir_sched_snapshot *rows, const struct weir_sched_job *job,
                     const struct weir_sched_task *task, struct weir_queue_sample *out)
{
    bool has_node = weir_sched_task_has_node(task->state);
    if (!has_node && task->state != WEIR_SCHED_PENDING && task->state != WEIR_SCHED_PIPELINED) {
        return;
    }
    for (int32_t q = job->queue; q >= 0; q = rows->queues[q].parent) {
        *(has_node ? &out[q].devices.used : &out[q].devices.waiting) += devices_of(&task->demand);
        *(has_node ? &out[q].cpus.used : &out[q].cpus.waiting) += task->demand.cpu_milli;
        out[q].memory_bytes += has_node ? task->demand.memory_bytes : 0;
    }
}

static void add_guarantee(const struct weir_sched_snapshot *rows, int32_t q,
                          enum weir_sched_resource resource, struct weir_queue_amounts *out)
{
    int64_t quota = guarantee_share(rows, &rows->queues[q], (int32_t)resource, NULL)->quota;
    out->guarantee = quota == WEIR_SCHED_UNLIMITED ? out->used : quota;
    out->borrowed = WEIR_MAX(out->used - out->guarantee, (int64_t)0);
}

void queue_sample(const struct snapshot *snapshot, struct weir_queue_sample *out)
{
    const struct weir_sched_snapshot *rows = &snapshot->rows;
    const struct queue_tree *tree = &snapshot->queues;
    for (int32_t q = 0; q < rows->n_queues; q++) {
        out[q] = (struct weir_queue_sample){.queue = rows->queues[q].name};
    }
    for (size_t i = 0; i < tree->n_projects; i++) {
        out[tree->projects[i].row].project = tree->projects[i].name;
    }
    for (int32_t j = 0; j < rows->n_jobs; j++) {
        const struct weir_sched_job *job = &rows->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            add_task(rows, job, &rows->tasks[t], out);
        }
    }
    for (int32_t q = 0; q < rows->n_queues; q++) {
        add_guarantee(rows, q, WEIR_SCHED_ACCELERATOR, &out[q].devices);
        add_guarantee(rows, q, WEIR_SCHED_CPU, &out[q].cpus);
    }
}
