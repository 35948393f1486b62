/* What is wrong is found when it is, under the clock that the test drives, and ends with its cause.
 */
#include "watch/watch.h"

#include "base/json.h"
#include "base/test_main.h"
#include "deploy/step.h"
#include "store/alert_kind.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define START ((int64_t)1000000000)

static struct weir_arena arena;
static struct weir_watch_findings findings;
static struct weir_watch_seen seen;
static struct weir_ion_state ion;
static struct weir_ion_pipeline pipeline;
static struct weir_ion_doc_pipeline doc;
static struct weir_ion_replica replicas[2];
static struct weir_node node;

/** A door with two replicas that serves, and one node: all is well at START. */
static void set_up(void)
{
    weir_arena_init(&arena, 0);
    doc = (struct weir_ion_doc_pipeline){.name = "see",
                                         .type = WEIR_PIPELINE_PREDICTION,
                                         .is_critical = true,
                                         .replicas = 2,
                                         .no_frames_after_s = 100};
    pipeline = (struct weir_ion_pipeline){.id = "door:see",
                                          .name = "see",
                                          .type = "prediction",
                                          .state = "SERVING",
                                          .state_ms = START - 500000,
                                          .job = "j",
                                          .service.candidate = "c",
                                          .service.deployment_revision = 3,
                                          .service.served_revision = 3,
                                          .service.last_frame_ms = START};
    for (int i = 0; i < 2; i++) {
        replicas[i] = (struct weir_ion_replica){.pipeline = "see",
                                                .replica = i == 0 ? "j-0" : "j-1",
                                                .state = "APPLIED",
                                                .time_ms = START};
    }
    ion = (struct weir_ion_state){.ion = {.name = "door", .state = "ACTIVE"},
                                  .doc = {.name = "door", .pipelines = &doc, .n_pipelines = 1},
                                  .pipelines = &pipeline,
                                  .n_pipelines = 1,
                                  .replicas = replicas,
                                  .n_replicas = 2};
    node = (struct weir_node){.name = "n1", .last_seen_ms = START};
    seen = (struct weir_watch_seen){.now_ms = START + 1000,
                                    .since_ms = START - 1000000,
                                    .nodes = &node,
                                    .n_nodes = 1,
                                    .ions = &ion,
                                    .n_ions = 1,
                                    .disk_bytes = (int64_t)100 << 30,
                                    .disk_free_bytes = (int64_t)50 << 30};
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/** The kinds that are found now, with severities: "node_lost/critical …". */
static const char *found(void)
{
    static char text[512];
    size_t len = 0;
    text[0] = '\0';
    weir_watch_find(&seen, &arena, &findings);
    for (size_t i = 0; i < findings.n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s/%s", i > 0 ? " " : "",
                                findings.items[i].kind, findings.items[i].severity);
        const struct weir_alert_kind *kind = weir_alert_kind_find(findings.items[i].kind);
        ck_assert(kind != NULL && kind->is_watched);
        char noun[16] = {0};
        (void)snprintf(noun, sizeof noun, "%.*s", (int)strcspn(findings.items[i].subject, "/"),
                       findings.items[i].subject);
        ck_assert_ptr_nonnull(strstr(kind->noun, noun));
    }
    return text;
}

/** So long after START; the replicas and the node have reported, and a frame came, this long ago.
 */
static const char *after(int64_t ms, int64_t heard_ms, int64_t frame_ms)
{
    seen.now_ms = START + ms;
    node.last_seen_ms = replicas[0].time_ms = replicas[1].time_ms = seen.now_ms - heard_ms;
    pipeline.service.last_frame_ms = seen.now_ms - frame_ms;
    return found();
}

START_TEST(a_node_or_a_device_that_is_unwell_is_told_in_a_sentence_until_it_has_left)
{
    static struct weir_device devices[] = {
        {.name = "n1/0",
         .node = "n1",
         .kind = "gpu",
         .model = "H100",
         .state = "bad",
         .reason = "it is too hot"},
        {.name = "n1/1", .node = "n1", .kind = "mig", .id = "MIG-1", .state = "gone"},
        {.name = "n1/2", .node = "n1", .kind = "nic", .id = "eth0", .state = "gone"}};
    seen.n_ions = 0;
    seen.devices = devices;
    seen.n_devices = 3;
    node.unhealthy = "its disk is full";
    ck_assert_str_eq(after(1000, 0, 0),
                     "node_unhealthy/warning device_bad/warning device_gone/warning");
    ck_assert_str_eq(findings.items[0].message, "Node n1 takes no new tasks: its disk is full.");
    ck_assert_str_eq(findings.items[1].message, "Device n1/0 (H100) is bad: it is too hot.");
    ck_assert_str_eq(findings.items[1].subject, "node/n1");
    ck_assert_str_eq(findings.items[2].message,
                     "Device n1/1 (MIG-1) is gone: its agent gives no reason.");
    seen.n_devices = 0; /* forgotten when it left */
    node.left_ms = START;
    ck_assert_str_eq(after(100000, 90000, 0), "");
}

END_TEST

START_TEST(a_node_is_silent_and_then_lost_until_it_is_heard_of)
{
    ck_assert_str_eq(weir_node_state(&node, START + 9999, 0), "ready");
    ck_assert_str_eq(weir_node_state(&node, START + 10000, 0), "silent");
    ck_assert_str_eq(weir_node_state(&node, START + 14999, 0), "silent");
    ck_assert_str_eq(weir_node_state(&node, START + 15000, 0), "lost");
    ck_assert_str_eq(weir_node_state(&node, START + 60000, START + 50001),
                     "ready"); /* just started */
    seen.n_ions = 0;
    ck_assert_str_eq(after(100000, 14999, 0), "");
    ck_assert_str_eq(after(100000, 15000, 0), "node_lost/critical");
    ck_assert_str_eq(findings.items[0].subject, "node/n1");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "n1"));
    ck_assert_str_eq(after(200000, 0, 0), "");
}

END_TEST

START_TEST(a_node_that_was_lent_is_lost_before_its_end_and_has_left_after_it)
{
    static char tag[] = "slurm-1", why[] = "preempted";
    seen.n_ions = 0;
    node.allocation = tag;
    node.ends_ms = START + 15001;
    ck_assert_str_eq(weir_node_state(&node, START + 15000, 0), "lost");
    ck_assert_str_eq(weir_node_state(&node, START + 15001, 0), "left");
    node.ends_ms = START + 200000;
    node.leaving = why;
    ck_assert_str_eq(weir_node_state(&node, START + 9999, 0), "ready");
    ck_assert_str_eq(weir_node_state(&node, START + 15000, 0), "left");
    ck_assert_str_eq(after(100000, 15000, 0), "");
    node.leaving = NULL;
    ck_assert_str_eq(after(100000, 15000, 0), "node_lost/critical");
}

END_TEST

START_TEST(replicas_that_do_not_report_are_told_apart_from_those_that_do)
{
    seen.n_nodes = 0;
    ck_assert_str_eq(after(100000, 14999, 0), "");
    ck_assert_str_eq(after(100000, 15000, 0), "replica_silent/critical");
    replicas[1].time_ms = seen.now_ms;
    ck_assert_str_eq(found(), "replica_silent/warning");
    seen.since_ms = seen.now_ms - 1000; /* the server has just started */
    replicas[1].time_ms = START;
    ck_assert_str_eq(found(), "");
    pipeline.service.served_revision = 0; /* not served: that is told by other means */
    seen.since_ms = 0;
    ck_assert_str_eq(found(), "");
}

END_TEST

START_TEST(a_source_that_had_frames_and_has_none_is_told_after_its_bound)
{
    ck_assert_str_eq(after(1000000, 0, 99999), "");
    ck_assert_str_eq(after(1000000, 0, 100000), "no_frames/warning");
    ck_assert_str_eq(findings.items[0].subject, "ion/door");
    ck_assert_ptr_null(strstr(findings.items[0].message, "frames wait"));
    replicas[0].frames_waiting = 661;
    ck_assert_str_eq(found(), "no_frames/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "though frames wait"));
    doc.no_frames_after_s = 0; /* never */
    ck_assert_str_eq(found(), "");
    doc.no_frames_after_s = 100;
    ck_assert_str_eq(after(1000000, 0, 0), "");
    pipeline.service.last_frame_ms = 0; /* it never had any */
    ck_assert_str_eq(found(), "");
}

END_TEST

START_TEST(a_pipeline_that_decides_nothing_is_told)
{
    pipeline.state = "DEPLOYING";
    pipeline.service.served_revision = 0;
    pipeline.state_ms = START;
    ck_assert_str_eq(after(59999, 0, 0), "");
    ck_assert_str_eq(after(60000, 0, 0), "not_serving/critical");
    pipeline.state = "WAITING"; /* with a candidate: somebody ended its replicas */
    ck_assert_str_eq(after(1000, 0, 0), "not_serving/critical");
    pipeline.service.candidate = NULL; /* without: no model has come yet */
    ck_assert_str_eq(found(), "");
    struct weir_health health = weir_watch_ion_health(&ion, NULL, 0);
    ck_assert_str_eq(health.status, "waiting");
    ck_assert_int_eq(health.since_ms, START);
}

END_TEST

START_TEST(decisions_that_do_not_get_out_and_a_dear_threshold_are_told)
{
    replicas[1].backlog_ms = 59999;
    replicas[1].backlog_reader = "sink-0";
    ck_assert_str_eq(found(), "");
    replicas[1].backlog_ms = 60000;
    ck_assert_str_eq(found(), "outbox_stuck/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "sink-0"));
    replicas[1].backlog_ms = 0;
    struct weir_threshold threshold = {.refused_share = 0.1};
    pipeline.service.threshold = &threshold;
    ck_assert_str_eq(found(), "");
    threshold.refused_share = 0.296;
    ck_assert_str_eq(found(), "threshold_price/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "30 %"));
    threshold.refused_share = NAN;
    ck_assert_str_eq(found(), "");
    pipeline.service.threshold = NULL;
}

END_TEST

static const struct {
    int64_t total_gib, free_mib;
    const char *expected;
} disks[] = {
    {100, 11 * 1024, ""},
    {100, 9 * 1024, "disk_filling/warning"},
    {100, 2 * 1024, "disk_filling/critical"},
    {10, 2049, ""},
    {10, 2047, "disk_filling/warning"},
    {0, 0, ""}, /* not known */
};

START_TEST(a_link_whose_deployment_is_gone_and_a_trial_that_nobody_can_judge_are_told)
{
    struct weir_ion_doc_link link = {.id = "t:deployment/d", .from = "t", .deployment = "d"};
    struct weir_ion_candidate candidates[] = {
        {.link = "t:deployment/d",
         .model = "m",
         .version = 1,
         .state = WEIR_CANDIDATE_SERVING,
         .served_ms = START},
        {.id = "c2", .link = "t:deployment/d", .model = "m", .version = 2, .waits_for = "canary"}};
    struct weir_deploy_state deployment = {
        .deployment = {.name = "d", .model = "m", .state = "IDLE"}};
    candidates[1].state = WEIR_CANDIDATE_WAITING;
    ion.ion.mode = WEIR_ION_PRODUCTION;
    ion.doc.links = &link;
    ion.doc.n_links = 1;
    ion.candidates = candidates;
    ion.n_candidates = 2;
    seen.now_ms = START + WEIR_WATCH_TARGET_MS - 1;
    ck_assert_str_eq(found(), ""); /* it is being made */
    seen.now_ms++;
    ck_assert_str_eq(found(), "deployment_gone/critical");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "`weir deploy m@v1 --as d` makes it"));
    seen.deployments = &deployment;
    seen.n_deployments = 1;
    ck_assert_str_eq(found(), "");
    deployment.deployment.model = "other";
    ck_assert_str_eq(found(), "deployment_gone/critical");
    ion.ion.mode = WEIR_ION_SANDBOX; /* gives no deployment anything */
    ck_assert_str_eq(found(), "");
    candidates[1].blocked = "no replica has it loaded yet";
    ck_assert_str_eq(found(), "rollout_blocked/warning");
}

END_TEST

START_TEST(a_disk_that_fills_up_is_told_and_told_again)
{
    seen.disk_bytes = disks[_i].total_gib << 30;
    seen.disk_free_bytes = disks[_i].free_mib << 20;
    ck_assert_str_eq(found(), disks[_i].expected);
}

END_TEST

START_TEST(the_disk_of_another_node_is_told_by_its_name)
{
    seen.disk_id = "here:1";
    node.disk_id = "there:1";
    node.disk_bytes = disks[_i].total_gib << 30;
    node.disk_free_bytes = disks[_i].free_mib << 20;
    const char *kind = disks[_i].expected;
    char expected[64] = "";
    if (*kind != '\0') {
        (void)snprintf(expected, sizeof expected, "node_%s", kind);
    }
    ck_assert_str_eq(found(), expected);
    if (*kind != '\0') {
        ck_assert_str_eq(findings.items[0].subject, "node/n1");
        ck_assert_ptr_nonnull(strstr(findings.items[0].message, "n1"));
    }
    node.disk_id = "here:1"; /* the same disk is told once, as the server's */
    ck_assert_str_eq(found(), "");
    seen.disk_id = ""; /* not known */
    node.disk_id = "";
    ck_assert_str_eq(found(), expected);
}

END_TEST

/** What the replica of rank 1 says of door "gate". */
static char *said_of_gate(bool is_connected, const char *state, int64_t since_ms)
{
    json_t *list = json_pack("[{s:s},{s:s,s:b,s:s,s:s,s:o}]", "name", "server", "door", "gate",
                             "connected", is_connected, "state", state, "error", "port 1883",
                             "since", weir_json_time(since_ms));
    char *text = weir_json_text(list, &arena);
    json_decref(list);
    return text;
}

START_TEST(a_door_that_is_silent_or_jammed_is_told_by_its_name)
{
    doc.doors = "[{\"name\": \"gate\", \"by\": {\"kind\": \"mqtt\"}}]";
    ck_assert_str_eq(found(), ""); /* nobody has said anything */
    replicas[1].consumers = said_of_gate(true, "locked", START);
    ck_assert_str_eq(found(), "");
    replicas[1].consumers = said_of_gate(false, "locked", seen.now_ms - WEIR_WATCH_DOOR_MS + 1);
    ck_assert_str_eq(found(), "");
    replicas[1].consumers = said_of_gate(false, "locked", seen.now_ms - WEIR_WATCH_DOOR_MS);
    ck_assert_str_eq(found(), "door_silent/critical");
    ck_assert_str_eq(findings.items[0].key, "door_silent:door:gate");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "gate"));
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "port 1883"));
    replicas[1].consumers = said_of_gate(true, "jammed", START);
    ck_assert_str_eq(found(), "door_jammed/critical");
    pipeline.job = "other"; /* what replicas before it said is no news */
    replicas[0].replica = "other-0";
    ck_assert_ptr_null(strstr(found(), "door_jammed"));
}

END_TEST

START_TEST(a_place_is_told_while_its_conditions_hold)
{
    replicas[1].places = "[{\"camera\":\"yard\",\"place\":\"dock\",\"n\":7,\"conditions\":"
                         "[\"more than 5\",\"longer than 60 s\"]},{\"camera\":\"yard\"}]";
    ck_assert_str_eq(found(), "place_condition/warning place_condition/warning");
    ck_assert_str_eq(findings.items[0].key, "place_condition:door:see:yard:dock:more than 5");
    ck_assert_str_eq(findings.items[0].message,
                     "Camera yard, place \"dock\": there are more than 5.");
    ck_assert_str_eq(findings.items[1].message,
                     "Camera yard, place \"dock\": something is there for longer than 60 s.");
    replicas[1].places = "[{\"camera\":\"yard\",\"place\":\"dock\",\"n\":5,\"conditions\":[]}]";
    ck_assert_str_eq(found(), "");
}

END_TEST

START_TEST(a_cluster_that_is_wrong_silent_or_has_a_closed_node_is_told)
{
    struct weir_cluster cluster = {.name = "slurm-a",
                                   .state = (char *)WEIR_CLUSTER_READY,
                                   .heard_ms = START,
                                   .created_ms = START};
    struct weir_allocation allocation = {.id = "slurm-a-1",
                                         .cluster = "slurm-a",
                                         .their_id = "4711",
                                         .closed = "n2: Drain: disk swap"};
    seen.clusters = &cluster;
    seen.n_clusters = 1;
    ck_assert_str_eq(found(), "");
    cluster.state = (char *)WEIR_CLUSTER_WRONG;
    cluster.said = "account: there is none \"vis\"";
    ck_assert_str_eq(found(), "cluster_wrong/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "there is none \"vis\""));
    cluster.state = (char *)WEIR_CLUSTER_SILENT;
    seen.now_ms = START + WEIR_WATCH_CLUSTER_MS - 1;
    ck_assert_ptr_null(strstr(found(), "cluster_silent"));
    seen.now_ms = START + WEIR_WATCH_CLUSTER_MS;
    ck_assert_ptr_nonnull(strstr(found(), "cluster_silent/warning"));
    cluster.state = (char *)WEIR_CLUSTER_READY;
    seen.now_ms = START;
    seen.closed = &allocation;
    seen.n_closed = 1;
    ck_assert_str_eq(found(), "cluster_node_closed/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "n2: Drain: disk swap"));
    seen.n_clusters = seen.n_closed = 0;
}

END_TEST

START_TEST(refused_decisions_are_told_until_they_are_taken_away)
{
    replicas[1].decisions_refused = 1;
    ck_assert_str_eq(found(), "decisions_refused/warning");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "j-1"));
    replicas[1].decisions_refused = 0;
    ck_assert_str_eq(found(), "");
}

END_TEST

START_TEST(health_is_the_worst_that_the_alerts_say)
{
    struct weir_alert alerts[] = {
        {.kind = "job_failed", .severity = "critical", .subject = "job/1", .state = "open"},
        {.kind = "drift",
         .severity = "warning",
         .subject = "ion/door",
         .state = "acknowledged",
         .message = "drifts",
         .raised_ms = 5},
        {.kind = "no_frames",
         .severity = "warning",
         .subject = "ion/door",
         .state = "open",
         .message = "no frame",
         .raised_ms = 4},
        {.kind = "node_lost",
         .severity = "critical",
         .subject = "node/n1",
         .state = "open",
         .message = "n1 is lost",
         .raised_ms = 3},
        {.kind = "not_serving",
         .severity = "critical",
         .subject = "ion/gate",
         .state = "open",
         .message = "gate is down",
         .raised_ms = 9},
        {.kind = "not_serving",
         .severity = "critical",
         .subject = "ion/door",
         .state = "resolved",
         .message = "was down",
         .raised_ms = 1},
    };
    struct weir_health door = weir_watch_ion_health(&ion, alerts, 6);
    ck_assert_str_eq(door.status, "degraded");
    ck_assert_str_eq(door.reason, "no frame"); /* the older of two */
    ck_assert_int_eq(door.since_ms, 4);
    struct weir_health all = weir_watch_health(alerts, 6);
    ck_assert_str_eq(all.status, "down");
    ck_assert_str_eq(all.reason, "gate is down");
    ck_assert_str_eq(weir_watch_health(alerts, 4).reason, "n1 is lost");
    ck_assert_str_eq(weir_watch_health(alerts, 1).status, "ok"); /* somebody's script */
    ck_assert_str_eq(weir_watch_ion_health(&ion, alerts, 1).status, "ok");
}

END_TEST

/* ---- jobs that fail again and again ---------------------------------------------------------- */

/** The store tells one thing after the other, and what is found each time is compared. */
struct told {
    const char *key, *kind, *subject; /**< A failure; kind NULL: the end of `key`. */
    const char *expected;             /**< Found after it. */
};

static const struct told told[] = {
    {"job_failed:p/nightly", "job_failed", "job/1", ""},
    {"job_failed:p/nightly", "job_failed", "job/2", ""},
    {"training_failed:door:see", "training_failed", "ion/door", ""},
    {"job_failed:p/nightly", "job_failed", "job/3", "job_failing:p/nightly=job/3"},
    {"job_failed:p/nightly", "job_failed", "job/4", "job_failing:p/nightly=job/4"},
    {"training_failed:door:see", "training_failed", "ion/door", "job_failing:p/nightly=job/4"},
    {"job_failed:p/nightly", NULL, NULL, ""},
    {"training_failed:door:see", "training_failed", "ion/door", "job_failing:door:see=ion/door"},
    {"job_failed:p/nightly", "job_failed", "job/5", "job_failing:door:see=ion/door"},
    {"training_failed:door:see", NULL, NULL, ""},
};

static weir_status tell_failures(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        char id[8], text[256] = "";
        (void)snprintf(id, sizeof id, "%zu", i);
        const struct weir_alert alert = {.id = id,
                                         .key = (char *)told[i].key,
                                         .kind = (char *)told[i].kind,
                                         .subject = (char *)told[i].subject,
                                         .message = "Job nightly failed: no such file"};
        WEIR_TRY(told[i].kind != NULL ? weir_alert_raise(txn, &alert, START, NULL, err)
                                      : weir_alert_resolve(txn, told[i].key, START, err));
        struct weir_watch_seen failing = {.now_ms = START};
        WEIR_TRY(weir_watch_load(txn, &failing, &arena, err));
        weir_watch_find(&failing, &arena, &findings);
        for (size_t k = 0; k < findings.n; k++) {
            size_t len = strlen(text);
            (void)snprintf(text + len, sizeof text - len, "%s=%s", findings.items[k].key,
                           findings.items[k].subject);
            ck_assert_str_eq(findings.items[k].severity, "critical");
            ck_assert_ptr_nonnull(strstr(findings.items[k].message, "no such file"));
        }
        ck_assert_msg(strcmp(text, told[i].expected) == 0, "%zu: %s", i, text);
    }
    return WEIR_OK;
}

START_TEST(a_task_whose_place_is_kept_is_told)
{
    const struct weir_task kept = {.id = "t",
                                   .job = "j",
                                   .role = "worker",
                                   .rank = 2,
                                   .message = "held until noon for a look: its program failed"};
    seen.kept = &kept;
    seen.n_kept = 1;
    ck_assert_str_eq(found(), "task_kept/warning");
    ck_assert_str_eq(findings.items[0].subject, "job/j");
    ck_assert_ptr_nonnull(strstr(findings.items[0].message, "Task worker-2 is held until noon"));
}

END_TEST

START_TEST(what_fails_three_times_in_a_row_is_told_until_it_succeeds)
{
    struct store_fixture fixture;
    fixture_make(&fixture, tell_failures);
    fixture_fini(&fixture);
}

END_TEST

static weir_status make_replicas(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_project project = {.name = "default"};
    const struct weir_task tasks[] = {{.id = "t0", .role = "replica"},
                                      {.id = "t1", .rank = 1, .role = "replica"}};
    const struct weir_job job = {.id = "j",
                                 .name = "door",
                                 .project = "default",
                                 .kind = "predict",
                                 .is_service = true,
                                 .spec = "{}"};
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &project, err));
    return weir_job_create(txn, &job, tasks, 2, START, err);
}

static const struct {
    const char *set;
    bool is_told;
} restarts[] = {
    {"n_restarts = 2, state = 'WAITING'", false},
    {"n_restarts = 3, state = 'WAITING'", true},
    {"n_restarts = 3, state = 'RUNNING', started_ms = 1000000000 - 4999", true},
    {"n_restarts = 3, state = 'RUNNING', started_ms = 1000000000 - 5000", false},
    {"n_restarts = 3, state = 'STOPPING', started_ms = 1000000000 - 5000", true},
};

static weir_status look_at_restarts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < sizeof restarts / sizeof *restarts; i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "UPDATE tasks SET %s WHERE id = 't1'", restarts[i].set);
        WEIR_TRY(weir_txn_exec(txn, sql, WEIR_NO_BINDS, NULL, err));
        struct weir_watch_seen looked = {.now_ms = START};
        WEIR_TRY(weir_watch_load(txn, &looked, &arena, err));
        ck_assert_msg(looked.n_jobs == restarts[i].is_told, "%s", restarts[i].set);
    }
    return WEIR_OK;
}

START_TEST(a_replica_that_starts_again_and_again_is_told_until_it_runs)
{
    struct store_fixture fixture;
    fixture_make(&fixture, make_replicas);
    fixture_write(&fixture, look_at_restarts, NULL);
    fixture_fini(&fixture);
}

END_TEST

/* ---- alerts ---------------------------------------------------------------------------------- */

struct synced {
    struct weir_watch_findings findings;
    int64_t now_ms;
    size_t n_differs;
    struct weir_alert *alerts;
    size_t n_alerts;
};

static weir_status sync_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct synced *synced = context;
    WEIR_TRY(weir_watch_differs(txn, &synced->findings, NULL, synced->now_ms, &arena,
                                &synced->n_differs, err));
    WEIR_TRY(weir_watch_sync(txn, &synced->findings, NULL, synced->now_ms, &arena, err));
    size_t n_left;
    WEIR_TRY(
        weir_watch_differs(txn, &synced->findings, NULL, synced->now_ms, &arena, &n_left, err));
    ck_assert_uint_eq(n_left, 0);
    return weir_watch_alerts(txn, &arena, &synced->alerts, &synced->n_alerts, err);
}

static struct synced sync_with(struct store_fixture *fixture, const char *severity, int64_t now_ms)
{
    struct synced synced = {.now_ms = now_ms};
    struct weir_error err;
    if (severity != NULL) {
        weir_watch_add(&synced.findings, &arena,
                       (struct weir_watch_finding){"replica_silent:door:see", "replica_silent",
                                                   severity, "ion/door", "it is silent"});
    }
    weir_status status = weir_store_write(fixture->store, sync_in, &synced, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return synced;
}

static weir_status raise_others(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_alert failed = {.id = "a",
                                      .key = "job_failed:x",
                                      .severity = "critical",
                                      .kind = "job_failed",
                                      .subject = "job/1",
                                      .message = "failed"};
    const struct weir_alert drift = {.id = "b",
                                     .key = "drift:x",
                                     .severity = "warning",
                                     .kind = "drift",
                                     .subject = "ion/door",
                                     .message = "drifts"};
    (void)context;
    WEIR_TRY(weir_alert_raise(txn, &failed, START, NULL, err));
    return weir_alert_raise(txn, &drift, START, NULL, err);
}

START_TEST(alerts_come_and_go_with_their_findings)
{
    struct store_fixture fixture;
    struct weir_error err;
    fixture_make(&fixture, raise_others);
    struct synced now = sync_with(&fixture, "warning", START + 1);
    ck_assert_uint_eq(now.n_differs, 1);
    ck_assert_uint_eq(now.n_alerts, 3);
    ck_assert_uint_eq(sync_with(&fixture, "warning", START + 2).n_differs, 0);
    now = sync_with(&fixture, "critical", START + 3); /* worse: another alert in its place */
    ck_assert_uint_eq(now.n_differs, 2);
    ck_assert_uint_eq(now.n_alerts, 3);
    now = sync_with(&fixture, NULL, START + 4);
    ck_assert_uint_eq(now.n_differs, 1);
    ck_assert_uint_eq(now.n_alerts, 2); /* what others raised stays … */
    now = sync_with(&fixture, NULL, START + WEIR_WATCH_JOB_FAILED_MS + 1);
    ck_assert_uint_eq(now.n_alerts, 1); /* … but for failures of long ago */
    ck_assert_str_eq(now.alerts[0].kind, "drift");
    (void)err;
    fixture_fini(&fixture);
}

END_TEST

static weir_status put_ions(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const modes[] = {WEIR_ION_PRODUCTION, WEIR_ION_SANDBOX};
    struct weir_project project = {.name = "default"};
    (void)context;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &project, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(modes); i++) {
        struct weir_ion made = {.name = i == 0 ? "real" : "tried",
                                .project = "default",
                                .document = "{}",
                                .state = "ACTIVE",
                                .mode = (char *)modes[i]};
        WEIR_TRY(weir_txn_insert(txn, &weir_ion_resource, &made, err));
    }
    return WEIR_OK;
}

static weir_status leave_sandboxes(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_alert alerts[] = {{.subject = "ion/tried"},   {.subject = "ion/real"},
                                  {.subject = "ion/tried/p"}, {.subject = "ion/tried2"},
                                  {.subject = "node/a"},      {.subject = NULL}};
    size_t n = WEIR_ARRAY_LEN(alerts);
    struct weir_arena own;
    weir_arena_init(&own, 0);
    weir_status status = weir_watch_leave_sandboxes(txn, alerts, &n, err);
    weir_arena_fini(&own);
    *(bool *)context = n == 4 && strcmp(alerts[0].subject, "ion/real") == 0 &&
                       strcmp(alerts[1].subject, "ion/tried2") == 0;
    return status;
}

START_TEST(alerts_of_sandboxes_say_nothing_of_what_is_real)
{
    struct store_fixture fixture;
    bool is_right;
    fixture_make(&fixture, put_ions);
    fixture_read(&fixture, leave_sandboxes, &is_right);
    ck_assert(is_right);
    fixture_fini(&fixture);
}

END_TEST

START_TEST(a_deployment_that_does_not_answer_is_told_until_it_does)
{
    struct weir_deploy_version version = {.row = {.version = 4}};
    struct weir_deploy_replica replica = {.row = {.id = "digits-1", .state = WEIR_DEPLOYED_READY}};
    struct weir_deploy_state deployment = {
        .deployment = {.name = "digits", .state = WEIR_DEPLOYMENT_DEPLOYING, .state_ms = START},
        .versions = &version,
        .n_versions = 1,
        .replicas = &replica,
        .n_replicas = 1};
    seen.deployments = &deployment;
    seen.n_deployments = 1;
    ck_assert_str_eq(found(), "");
    node.last_seen_ms = replicas[0].time_ms = replicas[1].time_ms = pipeline.service.last_frame_ms =
        seen.now_ms = START + WEIR_WATCH_DEPLOYING_MS;
    ck_assert_str_eq(found(), "deployment_not_serving/critical");
    ck_assert_str_eq(findings.items[0].subject, "deployment/digits");
    deployment.deployment.state = WEIR_DEPLOYMENT_SERVING;
    ck_assert_str_eq(found(), "");
    version.row.failure = "v4 could not be loaded by replica digits-1: no operator Foo";
    replica.row.state = WEIR_DEPLOYED_SILENT;
    ck_assert_str_eq(found(), "version_failed/warning deployed_replica_silent/warning");
    version.row.failure = NULL;
    deployment.deployment.state = WEIR_DEPLOYMENT_IDLE; /* nobody asks: that is no fault */
    deployment.n_replicas = 0;
    ck_assert_str_eq(found(), "");
    deployment.deployment.state = WEIR_DEPLOYMENT_FAILED;
    ck_assert_str_eq(found(), "deployment_not_serving/critical");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("watch");
    TCase *tcase = tcase_create("watch");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_node_is_silent_and_then_lost_until_it_is_heard_of);
    tcase_add_test(tcase, a_node_that_was_lent_is_lost_before_its_end_and_has_left_after_it);
    tcase_add_test(tcase, replicas_that_do_not_report_are_told_apart_from_those_that_do);
    tcase_add_test(tcase, a_source_that_had_frames_and_has_none_is_told_after_its_bound);
    tcase_add_test(tcase,
                   a_node_or_a_device_that_is_unwell_is_told_in_a_sentence_until_it_has_left);
    tcase_add_test(tcase, a_pipeline_that_decides_nothing_is_told);
    tcase_add_test(tcase, decisions_that_do_not_get_out_and_a_dear_threshold_are_told);
    tcase_add_loop_test(tcase, a_disk_that_fills_up_is_told_and_told_again, 0,
                        sizeof disks / sizeof *disks);
    tcase_add_test(tcase,
                   a_link_whose_deployment_is_gone_and_a_trial_that_nobody_can_judge_are_told);
    tcase_add_loop_test(tcase, the_disk_of_another_node_is_told_by_its_name, 0,
                        sizeof disks / sizeof *disks);
    tcase_add_test(tcase, a_task_whose_place_is_kept_is_told);
    tcase_add_test(tcase, a_door_that_is_silent_or_jammed_is_told_by_its_name);
    tcase_add_test(tcase, a_place_is_told_while_its_conditions_hold);
    tcase_add_test(tcase, a_cluster_that_is_wrong_silent_or_has_a_closed_node_is_told);
    tcase_add_test(tcase, refused_decisions_are_told_until_they_are_taken_away);
    tcase_add_test(tcase, a_deployment_that_does_not_answer_is_told_until_it_does);
    tcase_add_test(tcase, a_replica_that_starts_again_and_again_is_told_until_it_runs);
    tcase_add_test(tcase, health_is_the_worst_that_the_alerts_say);
    tcase_add_test(tcase, alerts_come_and_go_with_their_findings);
    tcase_add_test(tcase, alerts_of_sandboxes_say_nothing_of_what_is_real);
    tcase_add_test(tcase, what_fails_three_times_in_a_row_is_told_until_it_succeeds);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
