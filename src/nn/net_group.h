/**
 * Groups of nets on GPUs, one a process, that sum their gradients there, without the processor's memory.
 *
 *     struct weir_net_gpu gpu;
 *     weir_net_gpu_find(&config, &gpu, err);         // tell the others, compare: no two are the same
 *     weir_net_create(graph, &config, &net, err);
 *     weir_net_group_make_id(net, &id, err);         // one rank, which gives it to the others
 *     weir_net_group_open(net, &(struct weir_net_group){.id = id, .rank = rank, .size = n,
 *                                                       .timeout_ms = 30000}, err);
 *     for each step:
 *         weir_net_step(net, step, NULL, NULL, &result);
 *         weir_optimizer_update_net(optimizer, net, NULL, lr, step);
 *
 * In each step every gradient bucket is summed as soon as the backward pass has made it, while the rest
 * of it runs. All ranks have the same bits then. They make the same steps, of nets of the same graph.
 *
 * Failure: a rank that does not come ends the step by the group's deadline, or when its check or the
 * library knows earlier. The step returns PEER, TIMEOUT or INTERNAL (weir_net_group_failure has the
 * sentence), its gradients are undefined, its weights as they were before. The net is in no group then
 * and good for everything else.
 *
 * Threads: as the net's.
 */
#ifndef WEIR_NN_NET_GROUP_H
#define WEIR_NN_NET_GROUP_H

#include "nn/nn.h"

#define WEIR_NET_GPU_BYTES 96

/** Which GPU a net would lie on: the texts of two nets are equal if it is the same one. */
struct weir_net_gpu {
    char place[WEIR_NET_GPU_BYTES];
};

struct weir_net_group_id {
    char bytes[128];
};

/** A group, as one of its ranks enters it. */
struct weir_net_group {
    struct weir_net_group_id id;
    int rank, size;
    int timeout_ms;   /**< Longest wait for the others, in opening and in a step. */
    bool accumulates; /**< Steps may have several runs (weir_net_group_set_run). */
    /** Asked while the GPU is waited for, often: a status other than OK ends the step and becomes its
     *  result. NULL: nobody is asked. It must not block. */
    weir_status (*check)(void *context);
    void *context; /**< Borrowed until the net leaves the group. */
};

/**
 * Find the GPU of a net of this configuration, and what a group needs, without opening it.
 *
 * @return UNSUPPORTED with what is missing: a back-end on a GPU, a GPU, the driver, NCCL.
 */
weir_status weir_net_gpu_find(const struct weir_net_config *config, struct weir_net_gpu *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Make the name of a new group. @return UNSUPPORTED (no NCCL, or no GPU), INTERNAL. */
weir_status weir_net_group_make_id(struct weir_net *net, struct weir_net_group_id *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Enter a group. It returns when all ranks have come. Gradient buckets become
 * WEIR_NET_GROUP_BUCKET_BYTES.
 *
 * @param net  For training, and without updates_in_backward.
 * @return INVALID (another net); UNSUPPORTED; TIMEOUT; what `check` said; INTERNAL with NCCL's words;
 *         NOMEM. The net is in no group then.
 * Cost: a second or two, and NCCL's own memory on the GPU, which no limit counts.
 */
weir_status weir_net_group_open(struct weir_net *net, const struct weir_net_group *group,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Buckets smaller than that cost more in beginnings than they gain by overlapping. */
#define WEIR_NET_GROUP_BUCKET_BYTES ((size_t)4 << 20)

/** Leave the group, without waiting for the others. Without one it does nothing; so does destroying the
 *  net with one. Ranks that still wait for this one's sums fail. */
void weir_net_group_close(struct weir_net *net);

/**
 * Of a step that is computed in several runs: what the next weir_net_step is. Gradients of a step's runs
 * are added up on the GPU, and their sums over the ranks made in the last. After opening: the only run.
 */
void weir_net_group_set_run(struct weir_net *net, bool is_first, bool is_last);

/** Why the net's last group was given up. @return OK: it was not. err may be NULL. */
weir_status weir_net_group_failure(const struct weir_net *net, struct weir_error *err);

#endif
