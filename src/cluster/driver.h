/**
 * Drivers: suppliers of nodes. A driver asks somebody who has machines (this machine itself; a cluster with its own
 * queue) for some of them, on which agents then register as nodes. It places no task: that is the planner's, which sees
 * an allocation's nodes as all others, until they end. One whose cluster has no scheduler of its own may let Weir's
 * planner place what runs there (ops->tend).
 *
 *     ops->check(&link, arena, &missing, err)               what lacks here, by name
 *     ops->list(&link, arena, &offers, &n, err)             what can be had
 *     ops->request(&link, &request, err)                    twice with one tag asks for nothing twice
 *     ops->poll(&link, tags, n, arena, reports, err)        all of one cluster at once
 *     ops->release(&link, tag, err)
 *     ops->tend(&link, queues, n_queues, err)               where Weir places what runs over there
 *     ops->shown(&link, arena, &shown, err)                 what its people see of our jobs
 *     ops->show(&link, &showing, err)
 *     weir_driver_close(ops, &link)
 *
 * Drivers are kinds (base/kind.h), each a file of this folder. All functions may take as long as the other side does, and
 * are called from a thread that may wait; never from the engine's. Each is called by one thread at a time per cluster.
 */
#ifndef WEIR_CLUSTER_DRIVER_H
#define WEIR_CLUSTER_DRIVER_H

#include "base/arena.h"
#include "base/kind.h"

struct weir_sched_queue; /* sched/snapshot.h */

/** A tag's form is [a-z0-9-], of at most so many bytes: it names an allocation for ever, in this server and over there. */
#define WEIR_ALLOCATION_TAG_MAX_BYTES 63

/** Like nodes that can be had. Text lies in the caller's arena. */
struct weir_pool_offer {
    const char *name;
    int64_t cpu_slots, memory_bytes, n_accelerators; /**< Of one node. */
    const char *accelerator;                         /**< Model of its accelerators; NULL: none. */
    int64_t accelerator_parts; /**< Into how many equal parts one can be had; 0: whole ones only. */
    int64_t max_nodes;         /**< How many at a time; 0: nobody says. */
    int64_t time_max_ms;       /**< For how long at the most; 0: nobody says. */
    double weight;             /**< What one costs beside those of other pools; 1: as usual. */
    /** CPUs of its nodes that are in use, also by others; -1: nobody says. */
    int64_t cpus_busy;
    const char *why; /**< Why none can be had now ("the partition is down"); NULL: they can. */
};

/** What runs on each node: `PROGRAM agent …`, which joins the server. */
struct weir_node_agent {
    const char *server; /**< Its address, as the nodes reach it. */
    /** To join with (`weir node token`): good for all nodes of the request. A driver hands it over so that other users
     *  of the nodes do not read it. */
    const char *secret;
    /** Authorities to trust for https, as a file that the nodes have; NULL: the system's. */
    const char *ca_file;
};

struct weir_node_request {
    const char *tag;
    const char *pool;
    int64_t n_nodes;
    int64_t time_ms; /**< For how long; 0: until they are released. */
    /** Each node has at least so much. All 0: whole nodes. */
    int64_t cpu_slots, memory_bytes, n_accelerators;
    /** How much of the one accelerator, in thousandths, a multiple of the pool's parts rounded down; 0: all of each. */
    int64_t accelerator_milli;
    const char *accelerator; /**< Model; NULL: any. */
    const char *queue;       /**< Weir's queue that its job waits in; NULL: no single one. */
    /** What its job wants of the pods that its nodes are (framework/pod.h): {"image", "volumes"}; NULL: nothing. Only a
     *  driver that makes pods is asked. */
    const json_t *pod;
    const char *text; /**< For people over there: "job train-7 of ann"; NULL: nothing. */
    struct weir_node_agent agent;
};

enum weir_allocation_phase {
    WEIR_ALLOCATION_UNKNOWN, /**< Nothing of this tag was ever asked for, or it is long forgotten. */
    WEIR_ALLOCATION_PENDING, /**< It waits over there. */
    WEIR_ALLOCATION_RUNNING, /**< Its agents run, or are being started. */
    WEIR_ALLOCATION_ENDED,   /**< Its nodes are gone for good. */
};

/** How one ended. */
enum weir_allocation_ending {
    WEIR_ENDING_RELEASED,  /**< As it was asked to, or its agents ended by themselves. */
    WEIR_ENDING_TIME,      /**< Its time was over. */
    WEIR_ENDING_PREEMPTED, /**< It was taken for others. */
    WEIR_ENDING_CANCELLED, /**< A person over there ended it. */
    WEIR_ENDING_FAILED,    /**< A node failed, or its agents did not start. */
    WEIR_ENDING_REFUSED,   /**< It never ran, and never would have. */
};

/** Text lies in the caller's arena. */
struct weir_allocation_report {
    enum weir_allocation_phase phase;
    enum weir_allocation_ending ending; /**< Once it has ended. */
    const char *their_id;               /**< What they call it ("4711"); NULL: not told. */
    const char *said; /**< Its state or reason in their own words; NULL: nobody says. */
    const char *why;  /**< Why it waits, or how it ended: a sentence; NULL: nobody says. */
    /** While it waits: when it is expected to start, since 1970; 0: nobody says. */
    int64_t starts_ms;
    /** While it waits: since when it has machines on which its agents do not start (there is no such image), since 1970; 0:
     *  they are on their way, or it has none yet. */
    int64_t stuck_since_ms;
    /** While it runs: when its nodes end at the latest; 0: when they are released. */
    int64_t ends_ms;
    const char **nodes; /**< Their names of its nodes, while it runs. */
    size_t n_nodes;
    /** A node of it that takes nothing new over there (drained, down), and what they say of it; NULL: all do. */
    const char *closed_node, *closed_why;
};

/** A job of ours, as people over there are to see it. Borrowed. */
struct weir_shown_job {
    const char *id;
    /* Not set where there is no such job: `state` is NULL then. */
    const char *name, *project, *queue, *kind, *state;
    const char *reason;           /**< NULL: there is nothing to say. */
    int64_t n_nodes;              /**< That it has now. */
    int64_t started_ms, ended_ms; /**< 0: not yet. */
    /** It is over, or on its way there whatever is asked: there is nothing to cancel. */
    bool is_ending;
};

/** Jobs to be shown over there. Borrowed. */
struct weir_showing {
    /** Ours, as its nodes reach it: several servers may show jobs in one place. */
    const char *server;
    const struct weir_shown_job *jobs;
    size_t n;
};

/** What is seen of jobs over there. Text lies in the caller's arena. */
struct weir_shown {
    bool is_wanted; /**< There is a place for jobs over there; else nothing below is set. */
    /** Identifiers of jobs that something is to be seen of and that may have changed since: they are to be shown, too,
     *  whatever has become of them. They may be of no job of ours. */
    const char **ids;
    size_t n_ids;
    /** Identifiers of shown jobs that a person over there has deleted: told until they are shown as ending. */
    const char **deleted;
    size_t n_deleted;
};

/** One cluster, as its driver is asked about it; used by one thread at a time. */
struct weir_driver_link {
    const void *options; /**< The kind's struct. */
    /** What the driver keeps from call to call (a connection); NULL at first, and by most. */
    void *kept;
};

/** `ops` of a driver. */
struct weir_driver_ops {
    bool makes_pods; /**< Its nodes are pods, made as a request says (weir_node_request.pod). */
    /**
     * Can this machine use it so?
     * @param out_missing  What lacks: a sentence that names the option, what the other side said, and the cure; NULL:
     *                     nothing. In the arena.
     * @return UNAVAILABLE if the other side does not answer.
     */
    weir_status (*check)(struct weir_driver_link *link, struct weir_arena *arena,
                         const char **out_missing, struct weir_error *err);
    /** What can be had. @return UNAVAILABLE if the other side does not answer. */
    weir_status (*list)(struct weir_driver_link *link, struct weir_arena *arena,
                        struct weir_pool_offer **out, size_t *out_n, struct weir_error *err);
    /** Ask for nodes, unless this tag has been asked for. @return NOT_FOUND without such a pool, LIMIT for more nodes than
     *  it has, UNAVAILABLE if the other side does not answer, INVALID if it refuses what is asked. After UNAVAILABLE
     *  the tag may or may not be known there: poll tells. */
    weir_status (*request)(struct weir_driver_link *link, const struct weir_node_request *request,
                           struct weir_error *err);
    /**
     * How they are. Cost: one question to the other side, however many there are.
     * @param out  One for each tag, in their order.
     * @return UNAVAILABLE if the other side does not answer: nothing is known of any.
     */
    weir_status (*poll)(struct weir_driver_link *link, const char *const *tags, size_t n,
                        struct weir_arena *arena, struct weir_allocation_report *out,
                        struct weir_error *err);
    /** Give the nodes back; what runs there is asked to end, and ended. Twice is harmless, so is a tag that is unknown. */
    weir_status (*release)(struct weir_driver_link *link, const char *tag, struct weir_error *err);
    /**
     * These are the server's queues now. NULL: it is all the same to it. For one over there that places also what is not
     * Weir's own, under these queues.
     * @param queues  Borrowed for the call.
     */
    weir_status (*tend)(struct weir_driver_link *link, const struct weir_sched_queue *queues,
                        size_t n_queues, struct weir_error *err);
    /** Like check, of what only ops->show needs: nodes can be had all the same. NULL: nothing can lack. */
    weir_status (*check_show)(struct weir_driver_link *link, struct weir_arena *arena,
                              const char **out_missing, struct weir_error *err);
    /** What is seen of jobs over there, as far as it is known: nothing is asked, and nothing waited for. NULL: nothing is
     *  ever shown. */
    weir_status (*shown)(struct weir_driver_link *link, struct weir_arena *arena,
                         struct weir_shown *out, struct weir_error *err);
    /** Show these jobs, and of others nothing, but what is seen already of those that nothing is said of. It is done a
     *  moment later, beside the other operations: what the other side refuses is logged, and tried again later. Set if
     *  shown is. */
    weir_status (*show)(struct weir_driver_link *link, const struct weir_showing *showing,
                        struct weir_error *err);
    /** Fill in what is not said in a document of the driver's options, by asking the other side ("partition" if there is
     *  one). NULL: there is nothing to guess. @param document  {"kind", …}, changed in place. */
    weir_status (*guess)(json_t *document, struct weir_arena *arena, struct weir_error *err);
    /**
     * The payer over there of what is asked for a queue: equal texts are the same payer. NULL: all pay alike. Nodes that
     * one pays for run nothing that another has to pay for. Pure; any thread, also the engine's.
     */
    const char *(*payer)(const void *options, const char *queue, struct weir_arena *arena);
    /** End what the link keeps; its options may be gone. NULL: it keeps nothing. */
    void (*close)(void *kept);
};

/** Done with a link, or its options are to be others. What it keeps is ended. */
void weir_driver_close(const struct weir_driver_ops *ops, struct weir_driver_link *link);

extern const struct weir_registry weir_drivers;

#define WEIR_KIND(name) extern const struct weir_kind weir_driver_##name;
#include "cluster/drivers.def"
#undef WEIR_KIND

#endif
