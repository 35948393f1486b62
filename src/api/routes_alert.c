/** Routes of alerts: their rules, silences, receivers and messages. */
#include "api/functions.h"
#include "api/rows.h"

#include "notify/notify.h"
#include "store/event.h"

// clang-format off
static const struct weir_route rows[] = {
    {GET(API "/alerts"), .summary = "List alerts", .right = R(ALERTS_READ), .access = ROUTE_READ, .flags = ROUTE_LIST,
     .out = &weir_alert_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR, Q_NEWEST, Q_FIELD("state"), Q_FIELD("kind"), Q_FIELD("severity"),
                    Q_FIELD("subject")), .fn = api_alert_list},
    {GET(API "/alerts/{id}"), .summary = "Look at an alert: who was told, what was done", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .out = &weir_alert_resource, .fn = api_alert_get},
    {POST(API "/alerts/{id}/acknowledge"),
     .summary = "Say that somebody looks after an alert, with a note; it is not escalated any more",
     .right = R(ALERTS_ACKNOWLEDGE), .access = ROUTE_WRITE, .out = &weir_alert_resource, .fn = api_alert_acknowledge},
    {POST(API "/alerts/{id}/resolve"),
     .summary = "Say that an alert is over; one whose cause the server sees ends by itself",
     .right = R(ALERTS_ACKNOWLEDGE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .out = &weir_alert_resource,
     .fn = api_alert_resolve},
    {GET(API "/alert-rules"), .summary = "List rules of alerts", .right = R(ALERTS_READ), .access = ROUTE_READ,
     .flags = ROUTE_LIST, .out = &weir_alert_rule_resource, .query = QUERY(Q_CURSOR, Q_FIELD("project")),
     .fn = api_rule_list},
    {GET(API "/alert-rules/{name}"), .summary = "Look at a rule of alerts", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .out = &weir_alert_rule_resource, .fn = api_rule_get},
    {PUT(API "/alert-rules/{name}"),
     .summary = "Make a rule of alerts, or set all of it anew; one without a project is the platform's",
     .right = R(ALERTS_RULE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY | ROUTE_MAKES,
     .in = &weir_alert_rule_resource, .out = &weir_alert_rule_resource, .fn = api_rule_put},
    {DELETE(API "/alert-rules/{name}"), .summary = "Delete a rule of alerts", .right = R(ALERTS_RULE),
     .access = ROUTE_WRITE, .fn = api_rule_delete},
    {GET(API "/alert-silences"), .summary = "List silences of alerts, ended ones too", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_alert_silence_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR, Q_NEWEST, Q_FIELD("project")), .fn = api_list},
    {POST(API "/alert-silences"), .summary = "Silence alerts until a time: one by its id, or all that match",
     .right = R(ALERTS_ACKNOWLEDGE), .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .in = &weir_alert_silence_resource,
     .out = &weir_alert_silence_resource, .fn = api_silence_create},
    {DELETE(API "/alert-silences/{id}"), .summary = "End a silence before its time", .right = R(ALERTS_ACKNOWLEDGE),
     .access = ROUTE_WRITE, .flags = ROUTE_NOTIFY, .fn = api_silence_end},
    {GET(API "/alert-receivers"),
     .summary = "List receivers of alerts that one's rules may use; how they are reached is for admins",
     .right = R(ALERTS_READ), .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_alert_receiver_resource,
     .fn = api_receiver_list},
    {GET(API "/alert-receivers/{name}"), .summary = "Look at a receiver of alerts", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .out = &weir_alert_receiver_resource, .fn = api_receiver_get},
    {PUT(API "/alert-receivers/{name}"), .summary = "Make a receiver of alerts, or set all of it anew",
     .right = R(RECEIVERS_CHANGE), .access = ROUTE_WRITE, .flags = ROUTE_TELLS, .in = &weir_alert_receiver_resource,
     .out = &weir_alert_receiver_resource, .fn = api_receiver_put},
    {DELETE(API "/alert-receivers/{name}"), .summary = "Delete a receiver of alerts that no rule names",
     .right = R(RECEIVERS_CHANGE), .access = ROUTE_WRITE, .fn = api_receiver_delete},
    {POST(API "/alert-receivers/{name}/test"),
     .summary = "Send a test to a receiver; the delivery says what became of it", .right = R(RECEIVERS_CHANGE),
     .access = ROUTE_WRITE, .flags = ROUTE_TELLS, .out = &weir_alert_delivery_resource, .fn = api_receiver_test},
    {GET(API "/alert-deliveries"), .summary = "List messages to receivers", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_alert_delivery_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR, Q_NEWEST, Q_FIELD("receiver"), Q_FIELD("rule"), Q_FIELD("alert"),
                    Q_FIELD("event"), Q_FIELD("state")), .fn = api_list},
    {GET(API "/alert-deliveries/{id}"), .summary = "Look at a message to a receiver", .right = R(ALERTS_READ),
     .access = ROUTE_READ, .out = &weir_alert_delivery_resource, .fn = api_get},
};
// clang-format on

const struct weir_route_table api_routes_alert = {rows, WEIR_ARRAY_LEN(rows)};
