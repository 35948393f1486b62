/** A cluster's file from outside: any bytes give nodes that a snapshot accepts, or an error. */
#include "sim/cluster_file.h"

#include "sched/snapshot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size, const char *what)
{
    struct weir_error err = {0};
    struct weir_sim_cluster cluster = {0};
    if (weir_sim_cluster_parse((const char *)data, size, what, &cluster, &err) != WEIR_OK) {
        if (err.message[0] == '\0' || cluster.nodes != NULL) {
            abort();
        }
        return;
    }
    struct weir_sched_snapshot snapshot = {.nodes = cluster.nodes,
                                           .n_nodes = cluster.n_nodes,
                                           .queues = cluster.queues,
                                           .n_queues = cluster.n_queues};
    if (weir_sched_snapshot_check(&snapshot, &err) != WEIR_OK) {
        abort();
    }
    weir_sim_cluster_fini(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, "fuzz.yaml");
    parse(data, size, "fuzz.csv");
    return 0;
}
