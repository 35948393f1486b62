/** Routes of the server itself: its document, its kinds, its audit and events, what it keeps. */
#include "api/functions.h"
#include "api/kind.h"
#include "api/rows.h"

#include "retain/retain.h"
#include "store/event.h"

// clang-format off
static const struct weir_route rows[] = {
    {GET("/health"), .summary = "Is the server alive?", .right = R(SELF), .access = ROUTE_ALONE, .flags = ROUTE_OPEN,
     .fn = api_health},
    {GET("/version"), .summary = "The version of MLflow whose API this is, as its clients ask for it",
     .right = R(SELF), .access = ROUTE_ALONE, .flags = ROUTE_OPEN | ROUTE_BYTES_OUT, .fn = api_mlflow_version},
    {GET("/metrics"), .summary = "Figures for Prometheus", .right = R(PLATFORM_READ), .access = ROUTE_READ,
     .flags = ROUTE_BYTES_OUT, .fn = api_prometheus},
    {GET(API "/openapi.json"), .summary = "This document", .right = R(SELF_LOOK), .access = ROUTE_ALONE,
     .owns = ROUTE_OWNS_ANY, .fn = api_openapi_get},
    {GET(API "/kinds"), .summary = "List the kinds of sources, sinks, policies, jobs and drivers, with options",
     .right = R(SELF), .access = ROUTE_ALONE, .flags = ROUTE_LIST, .out = &weir_kind_resource,
     .query = QUERY(Q_TEXT("noun", "Kinds of this noun only: source, sink, policy …")), .fn = api_kind_list},
    {GET(API "/health/summary"), .summary = "Does the platform work, and if not, why?", .right = R(HEALTH_READ),
     .access = ROUTE_ALONE, .fn = api_health_summary},
    {GET(API "/events"),
     .summary = "List events, newest first, or from a number on; topic=audit needs the right to read audit",
     .right = R(EVENTS_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_event_resource,
     .query = QUERY(Q_AFTER, Q_LIMIT, Q_CURSOR, Q_FIELD("subject"), Q_FIELD("topic"), Q_FIELD("kind"),
                    Q_FIELD("severity"), Q_FIELD("actor")), .fn = api_event_list},
    {GET(API "/audit"), .summary = "The audit: every act of a person or a token, newest first, or from a number on",
     .right = R(AUDIT_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_event_resource,
     .query = QUERY(Q_AFTER, Q_LIMIT, Q_CURSOR, Q_FIELD("subject"), Q_FIELD("kind"), Q_FIELD("severity"),
                    Q_FIELD("actor"), Q_SINCE, Q_UNTIL), .fn = api_audit_list},
    {GET(API "/audit/verify"),
     .summary = "Recompute the audit's chains of hashes: the first row that was altered, taken out or put in; acts "
                "and accesses: NUMBER:HASH that was noted", .right = R(AUDIT_READ), .access = ROUTE_READ,
     .query = QUERY(Q_TEXT("acts", "NUMBER:HASH that was noted of the acts"),
                    Q_TEXT("accesses", "NUMBER:HASH that was noted of the accesses")), .fn = api_audit_verify},
    {GET(API "/store/usage"), .summary = "What the state folder takes, by kind, and what goes next",
     .right = R(PLATFORM_READ), .access = ROUTE_ALONE, .flags = ROUTE_LIST, .out = &weir_retain_usage_resource,
     .fn = api_store_usage},
    {POST(API "/store/sweep"), .summary = "Apply the limits of retention now", .right = R(PLATFORM_CHANGE),
     .access = ROUTE_WRITE, .fn = api_store_sweep},
    {GET(API "/retention"), .summary = "The limits of what is kept, with their rules", .right = R(PLATFORM_READ),
     .access = ROUTE_READ, .fn = api_retention_get},
    {PUT(API "/retention"), .summary = "Change limits: {\"decisions\": \"30d,10GB\"}", .right = R(PLATFORM_CHANGE),
     .access = ROUTE_WRITE, .fn = api_retention_put},
    {GET(API "/retention/bounds"), .summary = "What projects may set, by kind, and what they have set",
     .right = R(PLATFORM_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .fn = api_retention_bounds_get},
    {PUT(API "/retention/bounds"),
     .summary = "Change what projects may set: {\"decisions\": \"1d..90d\"}; \"default\": no longer than the "
                "platform", .right = R(PLATFORM_CHANGE), .access = ROUTE_WRITE, .fn = api_retention_bounds_put},
    {GET(API "/stream"), .summary = "Live records as server-sent events", .right = R(EVENTS_READ),
     .access = ROUTE_READ, .flags = ROUTE_EVENTS,
     .query = QUERY(Q_TEXT("topics", "Which records, commas between; without: events")), .fn = api_stream},
};
// clang-format on

const struct weir_route_table api_routes_platform = {rows, WEIR_ARRAY_LEN(rows)};
