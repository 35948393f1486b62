/* The step in which the ranks of a gang meet; meeting.h says how. */
#include "agent/meeting.h"
#include "agent/prepare.h"

#include "agent/launch.h"
#include "base/clock.h"

#include <string.h>

#define POLL_WAIT_S 20

/* What is known of the meeting. */
struct meeting {
    struct prepare *prepare;
    int64_t n_wait;
    struct meeting_member own;
    char interface[64];
    struct meeting_member *members;
    int64_t deadline_ms;
};

static weir_status read_meet(const json_t *meet, struct meeting *out, struct weir_error *err)
{
    out->n_wait = json_integer_value(json_object_get(meet, "wait"));
    if (out->n_wait < 1 || out->n_wait > MEETING_MEMBERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.meet.wait: expected 1 to %d",
                              MEETING_MEMBERS_MAX);
    }
    return WEIR_OK;
}

static weir_status look_at_self(struct meeting *meeting, struct weir_error *err)
{
    const char *server = prepare_node_fact(meeting->prepare, "server");
    const char *address = prepare_node_fact(meeting->prepare, "address");
    const char *node = prepare_node_fact(meeting->prepare, "node");
    struct meeting_member *own = &meeting->own;
    (void)snprintf(own->node, sizeof own->node, "%s", node != NULL ? node : "");
    address = meeting->prepare->task->is_offline ? "127.0.0.1" : address;
    if (address != NULL) {
        (void)snprintf(own->address, sizeof own->address, "%s", address);
    } else {
        WEIR_TRY(meeting_own_address(server != NULL ? server : "", own->address, err));
    }
    meeting_interface(own->address, meeting->interface, sizeof meeting->interface);
    own->port = meeting_free_port();
    return own->port > 0 ? WEIR_OK
                         : weir_error_set(err, WEIR_ERR_IO, "no free port was found on this node");
}

static weir_status leave_word(struct meeting *meeting, struct weir_error *err)
{
    char key[MEETING_KEY_BYTES];
    struct prepare *prepare = meeting->prepare;
    struct weir_client *client;
    WEIR_TRY(prepare_client(prepare, &client, err));
    const char *values[] = {prepare->task->job, meeting_key(key, prepare->task->rank)};
    char *path = weir_client_path(prepare->arena, "/api/v1/jobs/{}/board/{}", values, 2);
    WEIR_AUTO(weir_json_auto_free) json_t *said = meeting_member_write(&meeting->own);
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s}", "value", weir_json_text(said, prepare->arena));
    return weir_client_call_retry(client, "PUT", path, body, meeting->deadline_ms - weir_mono_ms(),
                                  NULL, err);
}

/* The first who has not come. */
static weir_status say_who_is_missing(const struct meeting *meeting, const json_t *values,
                                      struct weir_error *err)
{
    char key[MEETING_KEY_BYTES];
    int64_t n_missing = 0, first = 0;
    for (int64_t rank = 0; rank < meeting->n_wait; rank++) {
        bool is_there = json_object_get(values, meeting_key(key, rank)) != NULL;
        first = !is_there && n_missing == 0 ? rank : first;
        n_missing += !is_there;
    }
    return weir_error_set(
        err, WEIR_ERR_TIMEOUT,
        "rank %lld%s did not come within %lld s: is it being prepared, or did its "
        "node fall silent?",
        (long long)first, n_missing > 1 ? " and others" : "",
        (long long)(MEETING_PATIENCE_MS / 1000));
}

/* An address that only its own machine has is no way to it from another. */
static weir_status take_member(struct meeting *meeting, const char *text, int64_t rank,
                               struct weir_error *err)
{
    struct meeting_member *member = &meeting->members[rank];
    WEIR_TRY(meeting_member_read(text, member, err));
    if (meeting_is_local(member->address) && strcmp(member->node, meeting->own.node) != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "rank %lld is on node %s, whose tasks other nodes cannot reach: %s",
                              (long long)rank, member->node,
                              meeting->prepare->task->is_offline
                                  ? "the job asks for no network"
                                  : "start its agent with --address");
    }
    return WEIR_OK;
}

static weir_status take_members(struct meeting *meeting, const json_t *values,
                                struct weir_error *err)
{
    char key[MEETING_KEY_BYTES];
    for (int64_t rank = 0; rank < meeting->n_wait; rank++) {
        const char *text = json_string_value(json_object_get(values, meeting_key(key, rank)));
        if (text == NULL) {
            return say_who_is_missing(meeting, values, err);
        }
        WEIR_TRY(take_member(meeting, text, rank, err));
    }
    return WEIR_OK;
}

/* Ask until all have come. A server that is away is asked again. */
static weir_status await_members(struct meeting *meeting, struct weir_error *err)
{
    struct prepare *prepare = meeting->prepare;
    struct weir_client *client;
    char key[MEETING_KEY_BYTES];
    const char *prefix = meeting->n_wait == 1 ? meeting_key(key, 0) : "at.";
    WEIR_TRY(prepare_client(prepare, &client, err));
    char *board = weir_client_path(prepare->arena, "/api/v1/jobs/{}/board", &prepare->task->job, 1);
    weir_status status = WEIR_OK;
    while (status == WEIR_OK) {
        json_t *answer = NULL;
        int64_t left_ms = WEIR_MAX(meeting->deadline_ms - weir_mono_ms(), (int64_t)0);
        char *path = weir_arena_printf(
            prepare->arena, "%s?prefix=%s&count=%lld&wait_s=%lld", board, prefix,
            (long long)meeting->n_wait,
            (long long)WEIR_MAX(WEIR_MIN(left_ms / 1000, (int64_t)POLL_WAIT_S), (int64_t)1));
        status = weir_client_call_retry(client, "GET", path, NULL, left_ms + 1000, &answer, err);
        const json_t *values = json_object_get(answer, "values");
        bool is_enough = (int64_t)json_object_size(values) >= meeting->n_wait;
        if (status == WEIR_OK && (is_enough || left_ms == 0)) {
            status = take_members(meeting, values, err);
            json_decref(answer);
            return status;
        }
        json_decref(answer);
    }
    return status;
}

static weir_status fill(const struct meeting *meeting, const char *text, char **out,
                        struct weir_error *err)
{
    const struct meeting_known known = {
        .members = meeting->members,
        .n_members = (size_t)meeting->n_wait,
        .interface = meeting->interface,
        .address = meeting->own.address,
        .n_restarts = WEIR_MAX(meeting->prepare->task->attempt - 1, (int64_t)0)};
    return meeting_fill(text != NULL ? text : "", &known, meeting->prepare->arena, out, err);
}

static weir_status set_variables(const struct meeting *meeting, const json_t *meet,
                                 struct weir_error *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(meet, "env"), name, text)
    {
        char *value;
        WEIR_TRY(fill(meeting, json_string_value(text), &value, err));
        if (value[0] != '\0' && prepare_get_env(meeting->prepare, name) == NULL) {
            prepare_env(meeting->prepare, name, value);
        }
    }
    return WEIR_OK;
}

static weir_status write_files(const struct meeting *meeting, const json_t *meet,
                               struct weir_error *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(meet, "files"), name, text)
    {
        char *value;
        WEIR_TRY(fill(meeting, json_string_value(text), &value, err));
        const struct task_pair file = {name, value};
        WEIR_TRY(launch_write_file(meeting->prepare->dir, &file, meeting->prepare->arena, err));
    }
    return WEIR_OK;
}

/* A launcher's words, then the program's own, in which nothing is filled in. */
static weir_status set_launcher(const struct meeting *meeting, const json_t *meet,
                                struct weir_error *err)
{
    struct task *task = meeting->prepare->task;
    const json_t *list = json_object_get(meet, "launcher");
    size_t n = json_array_size(list), n_own = 0;
    while (task->argv[n_own] != NULL) {
        n_own++;
    }
    if (n == 0) {
        return WEIR_OK;
    }
    char **argv = WEIR_ARENA_ARRAY(meeting->prepare->arena, n + n_own + 1, char *);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(fill(meeting, json_string_value(json_array_get(list, i)), &argv[i], err));
    }
    memcpy(argv + n, task->argv, n_own * sizeof *argv);
    task->argv = argv;
    return WEIR_OK;
}

weir_status prepare_meeting(struct prepare *prepare, struct weir_error *err)
{
    const json_t *meet = json_object_get(prepare->document, "meet");
    struct meeting meeting = {.prepare = prepare};
    if (meet == NULL) {
        return WEIR_OK;
    }
    meeting.deadline_ms = WEIR_MIN(prepare->deadline_ms, weir_mono_ms() + MEETING_PATIENCE_MS);
    WEIR_TRY(read_meet(meet, &meeting, err));
    WEIR_TRY(look_at_self(&meeting, err));
    meeting.members =
        WEIR_ARENA_ARRAY(prepare->arena, (size_t)meeting.n_wait, struct meeting_member);
    if (json_integer_value(json_object_get(meet, "size")) == 1) {
        meeting.members[0] = meeting.own; /* there is nobody else */
    } else {
        if (prepare->task->rank < meeting.n_wait) {
            WEIR_TRY(leave_word(&meeting, err));
        }
        WEIR_TRY(await_members(&meeting, err));
    }
    WEIR_TRY(set_variables(&meeting, meet, err));
    WEIR_TRY(write_files(&meeting, meet, err));
    return set_launcher(&meeting, meet, err);
}
