/* What Slurm's commands print, whatever it is: it is read without harm, and what is made of it is bounded and true to the
 * driver's header. */
#include "cluster/slurm/check.h"
#include "cluster/slurm/job.h"
#include "cluster/slurm/pool.h"
#include "cluster/slurm/refusal.h"
#include "cluster/slurm/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

static void try_jobs(const struct slurm_jobs *jobs, struct weir_arena *arena)
{
    for (size_t i = 0; i < jobs->n && i < 64; i++) {
        struct weir_allocation_report report;
        slurm_report(&jobs->list[i], 1000, arena, &report);
        must(jobs->list[i].id > 0 && jobs->list[i].limit_s >= 0 && jobs->list[i].used_s >= 0);
        must(report.phase > WEIR_ALLOCATION_UNKNOWN && report.phase <= WEIR_ALLOCATION_ENDED);
        must(report.phase == WEIR_ALLOCATION_RUNNING || report.n_nodes == 0);
        must(report.phase != WEIR_ALLOCATION_ENDED || report.why != NULL);
        must(slurm_job_is_alive(&jobs->list[i]) == (report.phase != WEIR_ALLOCATION_ENDED));
        for (size_t k = 0; k < report.n_nodes; k++) {
            must(report.nodes[k][0] != '\0' && report.nodes[k][0] != '-');
        }
    }
}

static void try_pools(const char *text, struct weir_arena *arena)
{
    static const char *const partitions[] = {NULL, "a", "a,b"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(partitions); i++) {
        struct slurm_pool *pools;
        size_t n;
        slurm_pools_read(text, partitions[i], arena, &pools, &n);
        for (size_t k = 0; k < n; k++) {
            const struct weir_pool_offer *offer = &pools[k].offer;
            must(offer->max_nodes > 0 && offer->cpu_slots >= 0 && offer->memory_bytes >= 0);
            must((offer->n_accelerators > 0) == (offer->accelerator != NULL));
            must(pools[k].n_usable > 0 || offer->why != NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err;
    const char *account, *qos;
    if (size > 65536) {
        return 0;
    }
    weir_arena_init(&arena, 0);
    const char *text = weir_arena_memdup(&arena, data, size);
    struct slurm_jobs queued = slurm_jobs_read_queue(text, &arena);
    struct slurm_jobs past = slurm_jobs_read_history(text, &arena);
    try_jobs(&queued, &arena);
    try_jobs(&past, &arena);
    try_pools(text, &arena);
    must(slurm_span_s(text) >= 0 && slurm_time_ms(text) >= 0 && slurm_version_read(text) >= 0);
    struct slurm_gres gres = slurm_gres_read(text, &arena);
    must((gres.n_gpus > 0) == (gres.model != NULL));
    must(slurm_refusal("sbatch", text, &err) != WEIR_OK && err.message[0] != '\0');
    (void)slurm_munge_socket(text, &arena);
    (void)slurm_config_time_ms(text);
    (void)slurm_partition_refuses(text, &(struct slurm_payer){"vis", "guar"}, &arena);
    slurm_association_read(text, NULL, &arena, &account, &qos);
    weir_arena_fini(&arena);
    return 0;
}
