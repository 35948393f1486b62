/** Routes of machines, queues, and what is used of them. */
#include "api/functions.h"
#include "api/rows.h"

#include "job/device.h"
#include "job/job.h"
#include "job/past_use.h"
#include "job/queue.h"
#include "job/queue_history.h"
#include "job/reservation.h"
#include "job/usage.h"
#include "store/identity.h"

// clang-format off
static const struct weir_route rows[] = {
    {GET(API "/nodes"), .summary = "List nodes, each with its state: ready, silent or lost", .right = R(NODES_READ),
     .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_node_resource, .query = QUERY(Q_LIMIT, Q_CURSOR),
     .fn = api_node_list},
    {GET(API "/nodes/{name}"), .summary = "Look at a node, with its devices", .right = R(NODES_READ),
     .access = ROUTE_READ, .out = &weir_node_resource, .fn = api_node_get},
    {PATCH(API "/nodes/{name}"),
     .summary = "Drain a node (evict: what runs there moves on), now or by a maintenance window, let it take "
                "tasks again, label or taint it",
     .right = R(NODES_OPERATE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .out = &weir_node_resource,
     .fn = api_node_update},
    {DELETE(API "/nodes/{name}"), .summary = "Let a node leave the cluster: its tokens end, what it did stays known",
     .right = R(NODES_LEAVE), .access = ROUTE_WRITE, .owns = ROUTE_OWNS_NODE, .flags = ROUTE_NOTIFY,
     .fn = api_node_leave},
    {GET(API "/reservations"), .summary = "List reservations of nodes, for a month those that are over too",
     .right = R(JOBS_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_reservation_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR, Q_FIELD("project")), .fn = api_list},
    {GET(API "/reservations/{name}"), .summary = "Look at a reservation", .right = R(JOBS_READ), .access = ROUTE_READ,
     .out = &weir_reservation_resource, .fn = api_get},
    {POST(API "/reservations"), .summary = "Keep nodes for the jobs of a project or a queue for a span of time",
     .right = R(NODES_OPERATE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .in = &weir_reservation_resource,
     .out = &weir_reservation_resource, .fn = api_reservation_create},
    {DELETE(API "/reservations/{name}"), .summary = "End a reservation: its nodes are everybody's again",
     .right = R(NODES_OPERATE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .fn = api_reservation_delete},
    {GET(API "/devices"), .summary = "List the devices of all nodes", .right = R(NODES_READ), .access = ROUTE_READ,
     .flags = ROUTE_LIST, .out = &weir_device_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR, Q_FIELD("node"), Q_FIELD("kind"), Q_FIELD("model"), Q_FIELD("state")),
     .fn = api_device_list},
    {GET(API "/node-joins"), .summary = "List the one-time tokens that machines join with", .right = R(NODES_CHANGE),
     .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_node_join_resource, .query = QUERY(Q_LIMIT, Q_CURSOR),
     .fn = api_list},
    {POST(API "/node-joins"), .summary = "Make such a token; its secret is shown once", .right = R(NODES_CHANGE),
     .access = ROUTE_WRITE, .in = &weir_node_join_resource, .out = &weir_node_join_resource,
     .fn = api_node_join_create},
    {POST(API "/join"), .summary = "Join with a one-time token; answers the node's own token", .right = R(SELF),
     .access = ROUTE_WRITE, .flags = ROUTE_OPEN, .fn = api_node_join},
    {PUT(API "/nodes/{name}"), .summary = "Register a node; its heartbeat", .right = R(NODES_SPEAK),
     .access = ROUTE_ALONE, .owns = ROUTE_OWNS_NODE, .flags = ROUTE_NOTIFY, .fn = api_node_put},
    {POST(API "/nodes/{name}/use"), .summary = "Tell what the tasks of a node use, for the charts of their runs",
     .right = R(NODES_SPEAK), .access = ROUTE_WRITE, .owns = ROUTE_OWNS_NODE, .fn = api_node_use},
    {GET(API "/nodes/{name}/desired"), .summary = "What should run on a node; waits for a change",
     .right = R(NODES_SPEAK), .access = ROUTE_READ, .owns = ROUTE_OWNS_NODE,
     .query = QUERY(Q_REVISION, Q_WAIT_S(60),
                    Q_INT("visits", -2, INT64_MAX, -2, "The serial number of the visits that are known")),
     .fn = api_node_desired},
    {GET(API "/top/jobs"), .summary = "What the jobs that run keep and use, now; or of those on a node",
     .right = R(JOBS_READ), .access = ROUTE_READ, .query = QUERY(Q_NAME("node", "Of this node only")),
     .fn = api_top_jobs},
    {GET(API "/queues"), .summary = "List queues: what is theirs, used, borrowed and waited for",
     .right = R(QUEUES_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_queue_resource,
     .fn = api_queue_list},
    {GET(API "/queues/{name}"), .summary = "Look at a queue", .right = R(QUEUES_READ), .access = ROUTE_READ,
     .out = &weir_queue_resource, .fn = api_queue_get},
    {PUT(API "/queues/{name}"),
     .summary = "Make a queue, or set all of it anew; force=1: also with guarantees above what the nodes have",
     .right = R(QUEUES_CHANGE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .in = &weir_queue_resource,
     .out = &weir_queue_resource, .query = QUERY(Q_FORCE), .fn = api_queue_put},
    {DELETE(API "/queues/{name}"), .summary = "Delete a queue; its project's jobs go on without it",
     .right = R(QUEUES_CHANGE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .fn = api_queue_delete},
    {GET(API "/past-use"), .summary = "How much past use counts when what is left over is divided",
     .right = R(QUEUES_READ), .access = ROUTE_READ, .out = &weir_past_rule_resource, .fn = api_past_rule_get},
    {PUT(API "/past-use"), .summary = "Say how much past use counts, and after how long it counts half",
     .right = R(QUEUES_CHANGE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .in = &weir_past_rule_resource,
     .out = &weir_past_rule_resource, .fn = api_past_rule_put},
    {GET(API "/usage"),
     .summary = "What was asked for, given and used, by project, user, job, model, day or hour; format=csv (or "
                "Accept: text/csv): as a table", .right = R(USAGE_READ), .access = ROUTE_READ,
     .query = QUERY(Q_WORD("by", "project user job model day hour", "What is added up; without: project"), Q_PROJECT,
                    Q_NAME("user", "Of this user only"), Q_NAME("job", "Of this job only"),
                    Q_NAME("model", "Of this model of device only"),
                    Q_TIME("from", "From this hour on; without: 30 days before the end"),
                    Q_TIME("to", "Up to this hour; without: now"),
                    Q_WORD("format", "json csv", "How it is answered; without: as Accept says, else json")),
     .fn = api_usage},
    {GET(API "/usage/queues"), .summary = "What queues were guaranteed, had, borrowed and waited for, over time",
     .right = R(USAGE_READ), .access = ROUTE_READ,
     .query = QUERY(Q_NAME("queue", "Of this queue only"), Q_PROJECT,
                    Q_TIME("from", "From this hour on; without: 30 days before the end"),
                    Q_TIME("to", "Up to this hour; without: now"),
                    Q_INT("step_s", WEIR_QUEUE_BUCKET_MS / 1000, WEIR_USAGE_DAY_MS / 1000, WEIR_USAGE_HOUR_MS / 1000, "Seconds from point to point, a multiple of 300")),
     .fn = api_usage_queues},
    {POST(API "/what-if"),
     .summary = "What one more node, a queue that is new or set otherwise, or a job that goes first would change",
     .right = R(QUEUES_READ), .access = ROUTE_READ, .flags = ROUTE_ASKS, .fn = api_what_if},
};
// clang-format on

const struct weir_route_table api_routes_cluster = {rows, WEIR_ARRAY_LEN(rows)};
