/* From what is seen to what is wrong. */
#include "watch/watch.h"

#include "base/clock.h"
#include "deploy/step.h"
#include "ion/door.h"
#include "store/alert_kind.h"
#include "watch/cameras.h"
#include "watch/place.h"

#include <inttypes.h>
#include <string.h>

void weir_watch_add(struct weir_watch_findings *findings, struct weir_arena *arena,
                    struct weir_watch_finding finding)
{
    if (findings->n == findings->cap) {
        size_t cap = findings->cap == 0 ? 16 : 2 * findings->cap;
        struct weir_watch_finding *grown = WEIR_ARENA_ARRAY(arena, cap, struct weir_watch_finding);
        if (findings->n > 0) {
            memcpy(grown, findings->items, findings->n * sizeof *grown);
        }
        findings->items = grown;
        findings->cap = cap;
    }
    if (finding.severity == NULL) {
        const struct weir_alert_kind *kind = weir_alert_kind_find(finding.kind);
        finding.severity = kind != NULL && kind->severity != NULL ? kind->severity : "critical";
    }
    findings->items[findings->n++] = finding;
}

/** One look, and where findings go. */
struct look {
    const struct weir_watch_seen *seen;
    struct weir_arena *arena;
    struct weir_watch_findings *findings;
};

static const char *time_text(const struct look *look, int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, text);
    return weir_arena_strdup(look->arena, text);
}

/* ---- prediction pipelines ------------------------------------------------------------------- */

/** A pipeline with its document and what its replicas reported. */
struct door {
    const struct weir_ion_state *ion;
    const struct weir_ion_pipeline *pipeline;
    const struct weir_ion_service *service;
    const struct weir_ion_doc_pipeline *doc;
    int64_t n_heard;    /**< Replicas that reported within the bound. */
    int64_t n_waiting;  /**< Frames that wait, by their reports. */
    int64_t backlog_ms; /**< The oldest. */
    const char *backlog_reader;
    int64_t n_refused;      /**< Decisions that the server refused, by their reports. */
    const char *refused_by; /**< The first replica that has some. */
    int64_t n_ignored;      /**< Files and requests that are no frames, by their reports. */
    const char *why_ignored;
};

/** Of a pipeline that is not critical nothing is more than a warning. */
static void find_of_door(const struct look *look, const struct door *door, const char *kind,
                         const char *severity, const char *message)
{
    severity = door->doc->is_critical ? severity : "warning";
    weir_watch_add(look->findings, look->arena,
                   (struct weir_watch_finding){
                       .key = weir_arena_printf(look->arena, "%s:%s", kind, door->pipeline->id),
                       .kind = kind,
                       .severity = severity,
                       .subject = weir_arena_printf(look->arena, "ion/%s", door->ion->ion.name),
                       .message = message});
}

static void hear(const struct look *look, struct door *door)
{
    for (size_t i = 0; i < door->ion->n_replicas; i++) {
        const struct weir_ion_replica *replica = &door->ion->replicas[i];
        if (strcmp(replica->pipeline, door->pipeline->name) != 0 ||
            !weir_ion_replica_is_of(replica->replica, door->pipeline->job)) {
            continue;
        }
        int64_t heard_ms = WEIR_MAX(replica->time_ms, look->seen->since_ms);
        door->n_heard += look->seen->now_ms - heard_ms < WEIR_WATCH_REPLICA_MS;
        door->n_waiting += replica->frames_waiting;
        if (replica->decisions_refused > 0 && door->n_refused == 0) {
            door->refused_by = replica->replica;
        }
        door->n_refused += replica->decisions_refused;
        if (replica->frames_ignored > 0 && door->n_ignored == 0) {
            door->why_ignored = replica->why_ignored;
        }
        door->n_ignored += replica->frames_ignored;
        if (replica->backlog_ms > door->backlog_ms) {
            door->backlog_ms = replica->backlog_ms;
            door->backlog_reader = replica->backlog_reader;
        }
    }
}

static void look_at_serving(const struct look *look, const struct door *door)
{
    const struct weir_ion_pipeline *pipeline = door->pipeline;
    int64_t in_state_ms = look->seen->now_ms - WEIR_MAX(pipeline->state_ms, look->seen->since_ms);
    bool has_ended = strcmp(pipeline->state, "WAITING") == 0;
    if (has_ended) {
        find_of_door(
            look, door, "not_serving", NULL,
            weir_arena_printf(look->arena,
                              "Pipeline %s decides nothing: its replicas have ended. They start "
                              "again with the next deployment (apply, approve or roll back).",
                              pipeline->name));
    } else if (strcmp(pipeline->state, "DEPLOYING") == 0 &&
               in_state_ms >= WEIR_WATCH_DEPLOYING_MS) {
        find_of_door(look, door, "not_serving", NULL,
                     weir_arena_printf(
                         look->arena,
                         "Pipeline %s decides nothing: since %s no replica has served "
                         "deployment %" PRId64 "; `weir logs %s/%s` may say why.",
                         pipeline->name, time_text(look, pipeline->state_ms),
                         door->service->deployment_revision, door->ion->ion.name, pipeline->name));
    }
}

static void look_at_replicas(const struct look *look, const struct door *door)
{
    const struct weir_ion_pipeline *pipeline = door->pipeline;
    if (door->service->served_revision == 0 || door->n_heard >= door->doc->replicas) {
        return;
    }
    if (door->n_heard == 0) {
        find_of_door(
            look, door, "replica_silent", "critical",
            weir_arena_printf(look->arena,
                              "No replica of pipeline %s reports: it seems to decide nothing.",
                              pipeline->name));
    } else if (look->seen->now_ms - pipeline->state_ms >= WEIR_WATCH_DEPLOYING_MS) {
        find_of_door(look, door, "replica_silent", "warning",
                     weir_arena_printf(look->arena,
                                       "Of the %" PRId64 " replicas of pipeline %s not all report.",
                                       door->doc->replicas, pipeline->name));
    }
}

static void look_at_frames(const struct look *look, const struct door *door)
{
    const struct weir_ion_pipeline *pipeline = door->pipeline;
    int64_t bound_ms = 1000 * door->doc->no_frames_after_s;
    int64_t last_ms = WEIR_MAX(door->service->last_frame_ms, look->seen->since_ms);
    if (bound_ms > 0 && door->service->last_frame_ms > 0 &&
        look->seen->now_ms - last_ms >= bound_ms) {
        find_of_door(look, door, "no_frames", NULL,
                     weir_arena_printf(look->arena, "Pipeline %s has taken no frame since %s%s.",
                                       pipeline->name,
                                       time_text(look, door->service->last_frame_ms),
                                       door->n_waiting > 0 ? ", though frames wait" : ""));
    }
    if (door->backlog_ms >= WEIR_WATCH_BACKLOG_MS && door->n_heard > 0) {
        find_of_door(
            look, door, "outbox_stuck", NULL,
            weir_arena_printf(look->arena,
                              "Decisions of pipeline %s do not reach %s; they are kept on the "
                              "replica's disk.",
                              pipeline->name,
                              door->backlog_reader != NULL ? door->backlog_reader : "the server"));
    }
}

static void look_at_refused(const struct look *look, const struct door *door)
{
    if (door->n_refused > 0) {
        find_of_door(
            look, door, "decisions_refused", NULL,
            weir_arena_printf(look->arena,
                              "The server or a sink has refused decisions of pipeline %s: they are "
                              "kept with the reason in refused.jsonl of replica %s's "
                              "folder. Look at them, and take the file away.",
                              door->pipeline->name, door->refused_by));
    }
}

static void look_at_ignored(const struct look *look, const struct door *door)
{
    if (door->n_ignored > 0) {
        find_of_door(
            look, door, "frames_ignored", NULL,
            weir_arena_printf(look->arena,
                              "Pipeline %s ignores what its source is given, and decides "
                              "nothing about it: %s.",
                              door->pipeline->name,
                              door->why_ignored != NULL ? door->why_ignored : "it is no frame"));
    }
}

/** What the threshold costs: the gallery's own people whom it does not know again. */
static void look_at_threshold(const struct look *look, const struct door *door)
{
    const struct weir_threshold *threshold = door->service->threshold;
    double refused = threshold != NULL ? threshold->refused_share : 0;
    if (refused > WEIR_WATCH_REFUSED_MAX) {
        find_of_door(
            look, door, "threshold_price", NULL,
            weir_arena_printf(look->arena,
                              "The threshold of pipeline %s refuses %.0f %% of the gallery's own "
                              "photos: enrolled people will often be unknown. More and other "
                              "photos of impostors, or a higher false_accept_rate, lower it.",
                              door->pipeline->name, 100 * refused));
    }
}

/** Versions that are tried, and that nothing can be said of. */
static void look_at_trials(const struct look *look, const struct weir_ion_state *ion)
{
    for (size_t i = 0; i < ion->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &ion->candidates[i];
        if (candidate->blocked != NULL) {
            weir_watch_add(
                look->findings, look->arena,
                (struct weir_watch_finding){
                    .key = weir_arena_printf(look->arena, "rollout_blocked:%s", candidate->id),
                    .kind = "rollout_blocked",
                    .subject = weir_arena_printf(look->arena, "ion/%s", ion->ion.name),
                    .message = weir_arena_printf(
                        look->arena,
                        "Version %" PRId64 " of model %s on link %s cannot be judged by %s: %s.",
                        candidate->version, candidate->model, candidate->link,
                        candidate->waits_for != NULL ? candidate->waits_for : "its policy",
                        candidate->blocked)});
        }
    }
}

static const struct weir_deployment *find_deployment(const struct weir_watch_seen *seen,
                                                     const char *name)
{
    for (size_t i = 0; i < seen->n_deployments; i++) {
        if (strcmp(seen->deployments[i].deployment.name, name) == 0) {
            return &seen->deployments[i].deployment;
        }
    }
    return NULL;
}

/** Links that serve a deployment which is not there. It is made within moments of the choice. */
static void look_at_targets(const struct look *look, const struct weir_ion_state *ion)
{
    for (size_t i = 0; i < ion->doc.n_links; i++) {
        const struct weir_ion_doc_link *link = &ion->doc.links[i];
        struct weir_ion_wanted wanted = weir_ion_wanted_of(ion, link);
        const struct weir_deployment *deployment =
            wanted.model != NULL ? find_deployment(look->seen, link->deployment) : NULL;
        if (wanted.model == NULL ||
            look->seen->now_ms - weir_ion_serving(ion, link->id)->served_ms <
                WEIR_WATCH_TARGET_MS ||
            (deployment != NULL && strcmp(deployment->model, wanted.model) == 0)) {
            continue;
        }
        weir_watch_add(look->findings, look->arena,
                       (struct weir_watch_finding){
                           .key = weir_arena_printf(look->arena, "deployment_gone:%s:%s",
                                                    ion->ion.name, link->id),
                           .kind = "deployment_gone",
                           .subject = weir_arena_printf(look->arena, "ion/%s", ion->ion.name),
                           .message = weir_arena_printf(
                               look->arena,
                               "Link %s serves nobody: deployment %s %s. `weir deploy %s@v%" PRId64
                               " --as %s` makes it again; else take the link out (`weir apply`).",
                               link->id, link->deployment,
                               deployment == NULL ? "is not there" : "is of another model",
                               wanted.model, wanted.serving, link->deployment)});
    }
}

static void find_at_door(const struct look *look, const struct weir_ion_door *door,
                         const char *kind, const char *message)
{
    weir_watch_add(
        look->findings, look->arena,
        (struct weir_watch_finding){.key = weir_arena_printf(look->arena, "%s:%s", kind, door->id),
                                    .kind = kind,
                                    .subject = weir_arena_printf(look->arena, "ion/%s", door->ion),
                                    .message = message});
}

/* By what their replicas report; a replica that reports nothing is told of itself. */
static void look_at_doors(const struct look *look, const struct weir_ion_state *ion)
{
    struct weir_ion_door *doors;
    size_t n;
    weir_ion_doors(ion, look->arena, &doors, &n);
    for (size_t i = 0; i < n; i++) {
        const struct weir_ion_door *door = &doors[i];
        bool is_silent = strcmp(door->contact, "lost") == 0 &&
                         look->seen->now_ms - door->since_ms >= WEIR_WATCH_DOOR_MS;
        if (is_silent) {
            find_at_door(look, door, "door_silent",
                         weir_arena_printf(
                             look->arena, "Door %s does not answer, and nobody is let in there: %s",
                             door->name, door->error != NULL ? door->error : "no reason"));
        }
        if (strcmp(door->state, "jammed") == 0) {
            find_at_door(
                look, door, "door_jammed",
                weir_arena_printf(look->arena, "Door %s is jammed: look at it.", door->name));
        }
    }
}

static void look_at_ion(const struct look *look, const struct weir_ion_state *ion)
{
    look_at_targets(look, ion);
    look_at_trials(look, ion);
    look_at_doors(look, ion);
    watch_cameras(look->seen, ion, look->arena, look->findings);
    weir_watch_find_places(look->seen, ion, look->arena, look->findings);
    for (size_t i = 0; i < ion->n_pipelines; i++) {
        struct door door = {.ion = ion,
                            .pipeline = &ion->pipelines[i],
                            .service = weir_ion_service_of(&ion->pipelines[i])};
        door.doc = weir_ion_doc_pipeline(&ion->doc, door.pipeline->name);
        if (door.service == NULL || door.doc == NULL ||
            strcmp(door.pipeline->state, "REMOVED") == 0 || door.pipeline->paused_by != NULL ||
            door.service->candidate == NULL) {
            continue;
        }
        hear(look, &door);
        look_at_serving(look, &door);
        look_at_replicas(look, &door);
        look_at_frames(look, &door);
        look_at_refused(look, &door);
        look_at_ignored(look, &door);
        look_at_threshold(look, &door);
    }
}

/* ---- deployments ---------------------------------------------------------------------------- */

static void find_of_deployment(const struct look *look, const struct weir_deployment *deployment,
                               const char *kind, const char *part, const char *severity,
                               const char *message)
{
    weir_watch_add(look->findings, look->arena,
                   (struct weir_watch_finding){
                       .key = weir_arena_printf(look->arena, "%s:%s%s%s", kind, deployment->name,
                                                part != NULL ? ":" : "", part != NULL ? part : ""),
                       .kind = kind,
                       .severity = severity,
                       .subject = weir_arena_printf(look->arena, "deployment/%s", deployment->name),
                       .message = message});
}

static void look_at_answering(const struct look *look, const struct weir_deployment *deployment)
{
    int64_t in_state_ms = look->seen->now_ms - WEIR_MAX(deployment->state_ms, look->seen->since_ms);
    bool has_failed = strcmp(deployment->state, WEIR_DEPLOYMENT_FAILED) == 0;
    bool is_late = strcmp(deployment->state, WEIR_DEPLOYMENT_DEPLOYING) == 0 &&
                   in_state_ms >= WEIR_WATCH_DEPLOYING_MS;
    if (has_failed || is_late) {
        find_of_deployment(look, deployment, "deployment_not_serving", NULL, NULL,
                           weir_arena_printf(look->arena,
                                             "Deployment %s answers nothing: %s. `weir describe "
                                             "deployment %s` says how its replicas are.",
                                             deployment->name,
                                             deployment->reason != NULL
                                                 ? deployment->reason
                                                 : "no replica has a version ready yet",
                                             deployment->name));
    }
}

static void look_at_deployment(const struct look *look, const struct weir_deploy_state *state)
{
    const struct weir_deployment *deployment = &state->deployment;
    look_at_answering(look, deployment);
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (row->failure != NULL) {
            find_of_deployment(look, deployment, "version_failed",
                               weir_arena_printf(look->arena, "%" PRId64, row->version), NULL,
                               weir_arena_printf(look->arena, "Deployment %s: %s.",
                                                 deployment->name, row->failure));
        }
    }
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deployment_replica *row = &state->replicas[i].row;
        if (strcmp(row->state, WEIR_DEPLOYED_SILENT) == 0) {
            find_of_deployment(
                look, deployment, "deployed_replica_silent", row->id, NULL,
                weir_arena_printf(look->arena,
                                  "Replica %s of deployment %s does not report: it gets no "
                                  "requests, and is replaced if that lasts.",
                                  row->id, deployment->name));
        }
    }
}

/* ---- nodes, jobs, disk ---------------------------------------------------------------------- */

/* Its own reason is the sentence; what it is about goes in front. */
static void look_at_health(const struct look *look, const struct weir_node *node)
{
    if (node->unhealthy != NULL) {
        weir_watch_add(
            look->findings, look->arena,
            (struct weir_watch_finding){
                .key = weir_arena_printf(look->arena, "node_unhealthy:%s", node->name),
                .kind = "node_unhealthy",
                .subject = weir_arena_printf(look->arena, "node/%s", node->name),
                .message = weir_arena_printf(look->arena, "Node %s takes no new tasks: %s.",
                                             node->name, node->unhealthy)});
    }
}

static void look_at_device(const struct look *look, const struct weir_device *device)
{
    bool is_bad = strcmp(device->state, WEIR_DEVICE_BAD) == 0;
    bool is_gone = strcmp(device->state, WEIR_DEVICE_GONE) == 0;
    const char *kind = is_bad ? "device_bad" : "device_gone";
    if ((is_bad || is_gone) && weir_device_is_accelerator(device)) {
        weir_watch_add(
            look->findings, look->arena,
            (struct weir_watch_finding){
                .key = weir_arena_printf(look->arena, "%s:%s", kind, device->name),
                .kind = kind,
                .subject = weir_arena_printf(look->arena, "node/%s", device->node),
                .message = weir_arena_printf(
                    look->arena, "Device %s (%s) is %s: %s.", device->name,
                    device->model != NULL ? device->model : device->id, device->state,
                    device->reason != NULL ? device->reason : "its agent gives no reason")});
    }
}

static void look_at_node(const struct look *look, const struct weir_node *node)
{
    if (strcmp(weir_node_state(node, look->seen->now_ms, look->seen->since_ms), WEIR_NODE_LOST) ==
        0) {
        weir_watch_add(look->findings, look->arena,
                       (struct weir_watch_finding){
                           .key = weir_arena_printf(look->arena, "node_lost:%s", node->name),
                           .kind = "node_lost",
                           .subject = weir_arena_printf(look->arena, "node/%s", node->name),
                           .message = weir_arena_printf(
                               look->arena,
                               "Node %s has not been heard of since %s: look whether the "
                               "machine, its network and its `weir agent` run.",
                               node->name, time_text(look, node->last_seen_ms))});
    }
}

static void look_at_job(const struct look *look, const struct weir_job *job)
{
    weir_watch_add(
        look->findings, look->arena,
        (struct weir_watch_finding){
            .key = weir_arena_printf(look->arena, "job_restarting:%s", job->id),
            .kind = "job_restarting",
            .subject = weir_arena_printf(look->arena, "job/%s", job->id),
            .message = weir_arena_printf(
                look->arena, "Job %s is started again and again; `weir explain job %s` says why.",
                job->name, job->id)});
}

static void look_at_kept(const struct look *look, const struct weir_task *task)
{
    weir_watch_add(look->findings, look->arena,
                   (struct weir_watch_finding){
                       .key = weir_arena_printf(look->arena, "task_kept:%s", task->id),
                       .kind = "task_kept",
                       .subject = weir_arena_printf(look->arena, "job/%s", task->job),
                       .message = weir_arena_printf(
                           look->arena, "Task %s-%lld is %s. It keeps what it was given meanwhile.",
                           task->role, (long long)task->rank, task->message)});
}

/** The alert of one failure is raised again by each further one, and ended by a success. */
static void look_at_failures(const struct look *look, const struct weir_alert *failed)
{
    const char *colon = strchr(failed->key, ':');
    weir_watch_add(
        look->findings, look->arena,
        (struct weir_watch_finding){
            .key = weir_arena_printf(look->arena, "job_failing%s", colon != NULL ? colon : ":"),
            .kind = "job_failing",
            .subject = failed->subject,
            .message =
                weir_arena_printf(look->arena, "It has failed %d times in a row. The last time: %s",
                                  WEIR_WATCH_FAILURES, failed->message)});
}

/** How full a disk is: NULL if there is room, else the severity. */
static const char *fullness(int64_t total_bytes, int64_t free_bytes)
{
    double share = total_bytes > 0 ? (double)free_bytes / (double)total_bytes : 1;
    if (share < WEIR_WATCH_DISK_LAST_PCT / 100.0) {
        return "critical";
    }
    bool is_low = share < WEIR_WATCH_DISK_LOW_PCT / 100.0 ||
                  (total_bytes > 0 && free_bytes < WEIR_WATCH_DISK_LOW_BYTES);
    return is_low ? "warning" : NULL;
}

static void look_at_disk(const struct look *look)
{
    const char *severity = fullness(look->seen->disk_bytes, look->seen->disk_free_bytes);
    if (severity != NULL) {
        bool is_last = strcmp(severity, "critical") == 0;
        weir_watch_add(look->findings, look->arena,
                       (struct weir_watch_finding){
                           .key = is_last ? "disk_filling:last" : "disk_filling:low",
                           .kind = "disk_filling",
                           .severity = severity,
                           .subject = "server/state",
                           .message = is_last
                                          ? "The disk of the server's state folder is nearly full: "
                                            "when it is, nothing more is stored and doors hold "
                                            "their frames. Make room on it."
                                          : "The disk of the server's state folder fills up: less "
                                            "than 10 % or 2 GiB is free."});
    }
}

/* The disk of the server's state folder is told as the server's. */
static void look_at_disk_of(const struct look *look, const struct weir_node *node)
{
    const char *severity = fullness(node->disk_bytes, node->disk_free_bytes);
    const char *servers = look->seen->disk_id;
    bool is_servers = node->disk_id != NULL && servers != NULL && *servers != '\0' &&
                      strcmp(node->disk_id, servers) == 0;
    if (severity == NULL || is_servers) {
        return;
    }
    bool is_last = strcmp(severity, "critical") == 0;
    weir_watch_add(
        look->findings, look->arena,
        (struct weir_watch_finding){
            .key = weir_arena_printf(look->arena, "node_disk_filling:%s:%s", node->name,
                                     is_last ? "last" : "low"),
            .kind = "node_disk_filling",
            .severity = severity,
            .subject = weir_arena_printf(look->arena, "node/%s", node->name),
            .message = weir_arena_printf(
                look->arena,
                is_last ? "The disk of node %s's agent is nearly full: when it is, tasks there "
                          "fail and replicas hold their frames. Make room on it."
                        : "The disk of node %s's agent fills up: less than 10 %% or 2 GiB is free.",
                node->name)});
}

static void find_cluster(const struct look *look, const char *kind, const char *of,
                         const char *cluster, const char *message)
{
    weir_watch_add(look->findings, look->arena,
                   (struct weir_watch_finding){
                       .key = weir_arena_printf(look->arena, "%s:%s", kind, of),
                       .kind = kind,
                       .subject = weir_arena_printf(look->arena, "cluster/%s", cluster),
                       .message = message});
}

static void look_at_cluster(const struct look *look, const struct weir_cluster *cluster)
{
    int64_t heard_ms = WEIR_MAX(cluster->heard_ms, cluster->created_ms);
    const char *said = cluster->said != NULL ? cluster->said : "it says nothing";
    if (strcmp(cluster->state, WEIR_CLUSTER_WRONG) == 0) {
        find_cluster(look, "cluster_wrong", cluster->name, cluster->name,
                     weir_arena_printf(look->arena,
                                       "Nothing is asked of cluster %s: %s. `weir cluster check "
                                       "%s` asks it again.",
                                       cluster->name, said, cluster->name));
    }
    if (strcmp(cluster->state, WEIR_CLUSTER_SILENT) == 0 &&
        look->seen->now_ms - heard_ms >= WEIR_WATCH_CLUSTER_MS) {
        find_cluster(look, "cluster_silent", cluster->name, cluster->name,
                     weir_arena_printf(look->arena,
                                       "Cluster %s has not answered since %s: %s. What runs there "
                                       "goes on, and nothing new is asked of it.",
                                       cluster->name, time_text(look, heard_ms), said));
    }
}

static void look_at_closed(const struct look *look, const struct weir_allocation *allocation)
{
    find_cluster(look, "cluster_node_closed", allocation->id, allocation->cluster,
                 weir_arena_printf(look->arena,
                                   "A node of cluster %s takes nothing new over there, and "
                                   "allocation %s (%s) has it: %s.",
                                   allocation->cluster, allocation->id,
                                   allocation->their_id != NULL ? allocation->their_id : "-",
                                   allocation->closed));
}

/* Silence that is the server's own. */
static void look_at_hearing(const struct look *look)
{
    const struct weir_watch_seen *seen = look->seen;
    if (seen->n_silent > 0) {
        weir_watch_add(look->findings, look->arena,
                       (struct weir_watch_finding){
                           .key = "server_cut_off:network",
                           .kind = "server_cut_off",
                           .subject = "server/network",
                           .message =
                               "Most nodes fell silent at once, so it is taken to be the server's "
                               "network and not the nodes: none of them counts as lost, and their "
                               "tasks are not started elsewhere. Look at the network between the "
                               "server and its nodes."});
    }
    if (seen->away_ms > 0 && seen->now_ms - seen->back_ms < WEIR_WATCH_AWAY_MS) {
        weir_watch_add(
            look->findings, look->arena,
            (struct weir_watch_finding){
                .key = "server_away:process",
                .kind = "server_away",
                .subject = "server/process",
                .message = weir_arena_printf(
                    look->arena,
                    "The server did not run for %" PRId64 " s until %s: it, or its machine, was "
                    "stopped, suspended or starved. Every node has the full time to report since "
                    "then.",
                    seen->away_ms / 1000, time_text(look, seen->back_ms))});
    }
}

void weir_watch_find(const struct weir_watch_seen *seen, struct weir_arena *arena,
                     struct weir_watch_findings *out)
{
    *out = (struct weir_watch_findings){0};
    const struct look look = {seen, arena, out};
    look_at_disk(&look);
    look_at_hearing(&look);
    for (size_t i = 0; i < seen->n_nodes; i++) {
        if (seen->nodes[i].left_ms > 0) {
            continue;
        }
        look_at_node(&look, &seen->nodes[i]);
        look_at_disk_of(&look, &seen->nodes[i]);
        look_at_health(&look, &seen->nodes[i]);
    }
    for (size_t i = 0; i < seen->n_clusters; i++) {
        look_at_cluster(&look, &seen->clusters[i]);
    }
    for (size_t i = 0; i < seen->n_closed; i++) {
        look_at_closed(&look, &seen->closed[i]);
    }
    for (size_t i = 0; i < seen->n_devices; i++) {
        look_at_device(&look, &seen->devices[i]);
    }
    for (size_t i = 0; i < seen->n_ions; i++) {
        look_at_ion(&look, &seen->ions[i]);
    }
    for (size_t i = 0; i < seen->n_deployments; i++) {
        look_at_deployment(&look, &seen->deployments[i]);
    }
    for (size_t i = 0; i < seen->n_jobs; i++) {
        look_at_job(&look, &seen->jobs[i]);
    }
    for (size_t i = 0; i < seen->n_kept; i++) {
        look_at_kept(&look, &seen->kept[i]);
    }
    for (size_t i = 0; i < seen->n_failures; i++) {
        look_at_failures(&look, &seen->failures[i]);
    }
}

/* ---- health --------------------------------------------------------------------------------- */

/** 0: no effect, 1: degraded, 2: down. */
static int effect_of(const struct weir_alert *alert)
{
    const struct weir_alert_kind *kind = weir_alert_kind_find(alert->kind);
    if (kind == NULL || kind->effect == WEIR_ALERT_NO_EFFECT) {
        return 0;
    }
    return kind->effect == WEIR_ALERT_BREAKS && strcmp(alert->severity, "critical") == 0 ? 2 : 1;
}

/** The worst of the alerts about the subject (NULL: about anything), the oldest of equals. */
static struct weir_health worst(const char *subject, const struct weir_alert *alerts, size_t n)
{
    struct weir_health health = {.status = "ok"};
    int most = 0;
    for (size_t i = 0; i < n; i++) {
        int effect = effect_of(&alerts[i]);
        if (strcmp(alerts[i].state, "resolved") == 0 || effect < most || effect == 0 ||
            (subject != NULL &&
             (alerts[i].subject == NULL || strcmp(alerts[i].subject, subject) != 0))) {
            continue;
        }
        if (effect > most || alerts[i].raised_ms < health.since_ms) {
            most = effect;
            health = (struct weir_health){.status = effect == 2 ? "down" : "degraded",
                                          .reason = alerts[i].message,
                                          .since_ms = alerts[i].raised_ms};
        }
    }
    return health;
}

struct weir_health weir_watch_ion_health(const struct weir_ion_state *ion,
                                         const struct weir_alert *alerts, size_t n_alerts)
{
    char subject[128];
    (void)snprintf(subject, sizeof subject, "ion/%s", ion->ion.name);
    struct weir_health health = worst(subject, alerts, n_alerts);
    for (size_t i = 0; i < ion->n_pipelines && strcmp(health.status, "ok") == 0; i++) {
        const struct weir_ion_pipeline *pipeline = &ion->pipelines[i];
        bool is_waiting =
            strcmp(pipeline->state, "WAITING") == 0 || strcmp(pipeline->state, "DEPLOYING") == 0;
        const struct weir_ion_service *service = weir_ion_service_of(pipeline);
        if (service != NULL && is_waiting) {
            health = (struct weir_health){
                .status = "waiting",
                .reason = pipeline->paused_by != NULL  ? "It is paused: it decides nothing until "
                                                         "somebody lets it go on."
                          : service->candidate == NULL ? "No model has come through its link yet."
                                                       : "A model is being deployed.",
                .since_ms = pipeline->state_ms};
        }
    }
    return health;
}

struct weir_health weir_watch_health(const struct weir_alert *alerts, size_t n_alerts)
{
    return worst(NULL, alerts, n_alerts);
}
