#include "cluster/slurm/state.h"

#include "base/hosts.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 100000
/* Agents are asked to end a minute before their time is over, and Slurm is up to a minute early. */
#define EARLY_S 130

/* Slurm's states. What a state says by itself; NULL: the reason says it. */
static const struct state {
    const char *name;
    enum weir_allocation_phase phase;
    enum weir_allocation_ending ending;
    const char *why;
} states[] = {
    {"PENDING", WEIR_ALLOCATION_PENDING, 0, NULL},
    {"REQUEUED", WEIR_ALLOCATION_PENDING, 0, NULL},
    {"REQUEUE_FED", WEIR_ALLOCATION_PENDING, 0, NULL},
    {"REQUEUE_HOLD", WEIR_ALLOCATION_PENDING, 0,
     "its operator has put it back into the queue, and holds it there: `scontrol release` lets it "
     "go"},
    {"RESV_DEL_HOLD", WEIR_ALLOCATION_PENDING, 0,
     "its reservation was deleted: `scontrol release` lets it go without one"},
    {"SPECIAL_EXIT", WEIR_ALLOCATION_PENDING, 0,
     "its operator has marked it, and holds it: `scontrol release` lets it go"},
    {"CONFIGURING", WEIR_ALLOCATION_RUNNING, 0, "its nodes are being made ready"},
    {"RUNNING", WEIR_ALLOCATION_RUNNING, 0, NULL},
    {"RESIZING", WEIR_ALLOCATION_RUNNING, 0, NULL},
    {"SIGNALING", WEIR_ALLOCATION_RUNNING, 0, NULL},
    {"COMPLETING", WEIR_ALLOCATION_RUNNING, 0, "it is ending"},
    {"STAGE_OUT", WEIR_ALLOCATION_RUNNING, 0, "it is ending"},
    {"STOPPED", WEIR_ALLOCATION_RUNNING, 0, "Slurm has stopped its processes"},
    {"SUSPENDED", WEIR_ALLOCATION_RUNNING, 0, "Slurm has suspended its processes"},
    {"POWER_UP_NODE", WEIR_ALLOCATION_RUNNING, 0, "its nodes are being started"},
    {"COMPLETED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_RELEASED, "its agents had ended"},
    {"CANCELLED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_CANCELLED, "it was cancelled in Slurm"},
    {"PREEMPTED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_PREEMPTED, "Slurm took its nodes for others"},
    {"TIMEOUT", WEIR_ALLOCATION_ENDED, WEIR_ENDING_TIME, "its time was over"},
    {"DEADLINE", WEIR_ALLOCATION_ENDED, WEIR_ENDING_REFUSED,
     "it could not have ended before its deadline"},
    {"REVOKED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_REFUSED,
     "another cluster of the federation has taken it, which is not supported"},
    {"BOOT_FAIL", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "a node of it could not be started"},
    {"RECONFIG_FAIL", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED,
     "a node of it could not be configured"},
    {"LAUNCH_FAILED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED,
     "a node of it could not start its agent"},
    {"NODE_FAIL", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "a node of it failed"},
    {"OUT_OF_MEMORY", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED,
     "it used more memory than it had asked for"},
    {"FAILED", WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, NULL},
};

/* What Slurm's reasons for waiting mean, by how they begin: the first that fits. */
static const struct reason {
    const char *begins, *why;
} reasons[] = {
    {"Resources", "it waits for nodes that others have"},
    {"Priority", "others of a higher priority wait before it"},
    {"None", "Slurm has not looked at it yet"},
    {"BeginTime",
     "it may not begin yet: that is how it was asked for, or how Slurm holds what it put back"},
    {"Dependency", "another request of the same name has not ended yet"},
    {"ReqNodeNotAvail", "nodes that it needs are down, drained or reserved"},
    {"Reservation", "its reservation has not begun, or is full"},
    {"PartitionDown", "its partition is down"},
    {"PartitionInactive", "its partition is inactive: it starts nothing"},
    {"PartitionTimeLimit", "it asks for more time than its partition allows"},
    {"PartitionNodeLimit", "it asks for more nodes than its partition allows"},
    {"PartitionConfig", "it asks for more than its partition allows"},
    {"NodeDown", "nodes that it needs are down"},
    {"FrontEndDown", "a machine that starts its nodes is down"},
    {"BadConstraints", "no node can ever be as it asks"},
    {"Licenses", "it waits for licences that others have"},
    {"JobHeldAdmin", "an operator of the cluster holds it: `scontrol release` lets it go"},
    {"JobHeldUser", "its user holds it: `scontrol release` lets it go"},
    {"JobHoldMaxRequeue", "it was put back too often, and is held"},
    {"JobArrayTaskLimit", "too many of its array run"},
    {"Cleaning", "its nodes are being cleaned"},
    {"Prolog", "its nodes are being made ready"},
    {"AccountNotAllowed", "its partition does not allow its account"},
    {"QOSNotAllowed", "its partition does not allow its QOS"},
    {"InvalidAccount", "its account is none, or was removed"},
    {"InvalidQOS", "its QOS is none, or was removed"},
    {"QOSUsageThreshold", "its QOS has used more than its share"},
    {"QOSTimeLimit", "its QOS has used its time"},
    {"QOSGrp", "its QOS has reached what all of it together may use"},
    {"QOSMaxJobsPer", "its QOS runs as many jobs as it may"},
    {"QOSMax", "it asks for more than its QOS allows for one"},
    {"QOSMin", "it asks for less than its QOS wants for one"},
    {"QOS", "its QOS does not let it run"},
    {"AssocGrp", "its account has reached what all of it together may use"},
    {"AssocMaxJobs", "its account runs as many jobs as it may"},
    {"AssocMax", "it asks for more than its account allows for one"},
    {"Assoc", "its account does not let it run"},
    {"MaxGRESPerAccount", "its account uses as many devices as it may"},
    {"MaxCpuPerAccount", "its account uses as many processors as it may"},
    {"MaxNodePerAccount", "its account uses as many nodes as it may"},
    {"MaxMemoryPerAccount", "its account uses as much memory as it may"},
    {"MaxJobsPerAccount", "its account runs as many jobs as it may"},
    {"BurstBuffer", "its burst buffer is not ready"},
    {"DeadLine", "it could not end before its deadline"},
    {"SystemFailure", "Slurm failed"},
    {"launch failed",
     "its nodes could not start it, and Slurm holds it: `scontrol release` lets it go"},
};

/* The state of that name; a newer one that we do not know has nodes or waits. */
static struct state state_of(const struct slurm_job *job)
{
    size_t len = strcspn(job->state, " +");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(states); i++) {
        if (strlen(states[i].name) == len && strncmp(states[i].name, job->state, len) == 0) {
            return states[i];
        }
    }
    return (struct state){.name = job->state,
                          .phase = job->nodes[0] != '\0' ? WEIR_ALLOCATION_RUNNING
                                                         : WEIR_ALLOCATION_PENDING};
}

bool slurm_job_is_alive(const struct slurm_job *job)
{
    return state_of(job).phase != WEIR_ALLOCATION_ENDED;
}

bool slurm_job_is_doubtful(const struct slurm_job *job)
{
    static const char *const doubtful[] = {"COMPLETED", "FAILED", "TIMEOUT"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(doubtful); i++) {
        if (strcmp(job->state, doubtful[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct names {
    struct weir_arena *arena;
    const char **list;
    size_t n, room;
};

static weir_status add_name(void *context, const char *host, struct weir_error *err)
{
    struct names *names = context;
    if (names->n == NODES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d nodes", NODES_MAX);
    }
    if (names->n == names->room) {
        names->room = names->room == 0 ? 8 : names->room * 2;
        const char **list = WEIR_ARENA_ARRAY(names->arena, names->room, const char *);
        memcpy(list, names->list, names->n * sizeof *list);
        names->list = list;
    }
    names->list[names->n++] = weir_arena_strdup(names->arena, host);
    return WEIR_OK;
}

static void set_nodes(const struct slurm_job *job, struct weir_arena *arena,
                      struct weir_allocation_report *out)
{
    struct names names = {
        .arena = arena, .list = WEIR_ARENA_ARRAY(arena, 1, const char *), .room = 1};
    struct weir_error ignored;
    if (job->nodes[0] != '\0' &&
        weir_hosts_read(job->nodes, add_name, &names, &ignored) == WEIR_OK) {
        out->nodes = names.list;
        out->n_nodes = names.n;
    }
}

/* ---- why ------------------------------------------------------------------------------------- */

static const char *why_waiting(const char *reason, struct weir_arena *arena)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(reasons); i++) {
        if (strncmp(reason, reasons[i].begins, strlen(reasons[i].begins)) == 0) {
            return reasons[i].why;
        }
    }
    return reason[0] != '\0' ? weir_arena_printf(arena, "Slurm says \"%.100s\"", reason) : NULL;
}

static bool is_near_its_end(const struct slurm_job *job)
{
    return job->limit_s >= SLURM_WARNED_S && job->used_s + EARLY_S >= job->limit_s;
}

static void set_ending(const struct slurm_job *job, int64_t uid, struct weir_arena *arena,
                       struct weir_allocation_report *out)
{
    const char *by = strstr(job->state, " by ");
    bool is_released = strncmp(job->comment, SLURM_RELEASED, strlen(SLURM_RELEASED)) == 0 ||
                       (by != NULL && strtoll(by + 4, NULL, 10) == uid);
    bool is_early = strcmp(job->state, "TIMEOUT") == 0 && job->limit_s > 0 &&
                    job->used_s + EARLY_S < job->limit_s;
    if (out->ending == WEIR_ENDING_CANCELLED && is_released) {
        out->ending = WEIR_ENDING_RELEASED;
        out->why = "its nodes were given back";
    } else if (slurm_job_is_doubtful(job) && (job->was_preempted || is_early)) {
        out->ending = WEIR_ENDING_PREEMPTED;
        out->why = "Slurm took its nodes for others";
    } else if (slurm_job_is_doubtful(job) && is_near_its_end(job)) {
        out->ending = WEIR_ENDING_TIME;
        out->why = "its time was over";
    } else if (out->ending == WEIR_ENDING_FAILED && out->why == NULL) {
        out->why =
            job->exit_status < 0
                ? "its agents did not start, or ended with an error"
                : weir_arena_printf(
                      arena,
                      "its agents ended with exit status %d: /tmp/weir-%s.out of its first node "
                      "(%.80s) has what they said",
                      job->exit_status, job->name, out->n_nodes > 0 ? out->nodes[0] : "unknown");
    }
}

void slurm_report(const struct slurm_job *job, int64_t uid, struct weir_arena *arena,
                  struct weir_allocation_report *out)
{
    struct state state = state_of(job);
    bool is_pending = state.phase == WEIR_ALLOCATION_PENDING;
    bool says_reason = job->reason[0] != '\0' && strcmp(job->reason, "None") != 0;
    *out = (struct weir_allocation_report){
        .phase = state.phase,
        .ending = state.ending,
        .their_id = weir_arena_printf(arena, "%lld", (long long)job->id),
        .said =
            says_reason ? weir_arena_printf(arena, "%s (%s)", job->state, job->reason) : job->state,
        .why = state.why,
        .starts_ms = is_pending ? job->starts_ms : 0,
        .ends_ms = state.phase == WEIR_ALLOCATION_RUNNING ? job->ends_ms : 0};
    set_nodes(job, arena, out);
    if (is_pending && out->why == NULL) {
        out->why = why_waiting(job->reason, arena);
    } else if (state.phase == WEIR_ALLOCATION_ENDED) {
        set_ending(job, uid, arena, out);
    }
    if (state.phase != WEIR_ALLOCATION_RUNNING) {
        out->nodes = NULL;
        out->n_nodes = 0;
    }
}
