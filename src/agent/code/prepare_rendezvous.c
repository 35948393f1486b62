/* The step in which the ranks of a gang meet; rendezvous.h says how. */
#include "agent/code/places.h"
#include "agent/code/prepare.h"
#include "agent/rendezvous/rendezvous.h"

#include "agent/supervise/launch.h"
#include "base/clock.h"

#include <string.h>

#define POLL_WAIT_S 20

/* What is known of the rendezvous. */
struct rendezvous {
    struct prepare *prepare;
    int64_t n_wait;
    struct rendezvous_member own;
    char interface[64];
    struct rendezvous_member *members;
    int64_t deadline_ms;
};

static weir_status read_meet(const json_t *meet, struct rendezvous *out, struct weir_error *err)
{
    out->n_wait = json_integer_value(json_object_get(meet, "wait"));
    if (out->n_wait < 1 || out->n_wait > RENDEZVOUS_MEMBERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.meet.wait: expected 1 to %d",
                              RENDEZVOUS_MEMBERS_MAX);
    }
    return WEIR_OK;
}

static weir_status look_at_self(struct rendezvous *rendezvous, struct weir_error *err)
{
    const char *server = prepare_node_fact(rendezvous->prepare, "server");
    const char *address = prepare_node_fact(rendezvous->prepare, "address");
    const char *node = prepare_node_fact(rendezvous->prepare, "node");
    struct rendezvous_member *own = &rendezvous->own;
    (void)snprintf(own->node, sizeof own->node, "%s", node != NULL ? node : "");
    address = rendezvous->prepare->task->is_offline ? "127.0.0.1" : address;
    if (address != NULL) {
        WEIR_TRY(rendezvous_address_by(address, own->address, err));
    } else {
        WEIR_TRY(rendezvous_own_address(server != NULL ? server : "", own->address, err));
    }
    rendezvous_interface(own->address, rendezvous->interface, sizeof rendezvous->interface);
    own->port = rendezvous_free_port();
    return own->port > 0 ? WEIR_OK
                         : weir_error_set(err, WEIR_ERR_IO, "no free port was found on this node");
}

static weir_status leave_word(struct rendezvous *rendezvous, struct weir_error *err)
{
    char key[RENDEZVOUS_KEY_BYTES];
    struct prepare *prepare = rendezvous->prepare;
    struct weir_client *client;
    WEIR_TRY(prepare_client(prepare, &client, err));
    const char *values[] = {prepare->task->job, rendezvous_key(key, prepare->task->rank)};
    char *path = weir_client_path(prepare->arena, "/api/v1/jobs/{}/board/{}", values, 2);
    json_t *said = rendezvous_member_write(&rendezvous->own);
    json_t *body = json_pack("{s:s}", "value", weir_json_text(said, prepare->arena));
    weir_status status = weir_client_call_retry(
        client, "PUT", path, body, rendezvous->deadline_ms - weir_mono_ms(), NULL, err);
    json_decref(said);
    json_decref(body);
    return status;
}

/* The first rank that has not come. */
static weir_status say_who_is_missing(const struct rendezvous *rendezvous, const json_t *values,
                                      struct weir_error *err)
{
    char key[RENDEZVOUS_KEY_BYTES];
    int64_t n_missing = 0, first = 0;
    for (int64_t rank = 0; rank < rendezvous->n_wait; rank++) {
        bool is_there = json_object_get(values, rendezvous_key(key, rank)) != NULL;
        first = !is_there && n_missing == 0 ? rank : first;
        n_missing += !is_there;
    }
    return weir_error_set(
        err, WEIR_ERR_TIMEOUT,
        "rank %lld%s did not come within %lld s: is it being prepared, or did its "
        "node fall silent?",
        (long long)first, n_missing > 1 ? " and others" : "",
        (long long)(RENDEZVOUS_PATIENCE_MS / 1000));
}

/* An address that only its own machine has is no way to it from another. */
static weir_status take_member(struct rendezvous *rendezvous, const char *text, int64_t rank,
                               struct weir_error *err)
{
    struct rendezvous_member *member = &rendezvous->members[rank];
    WEIR_TRY(rendezvous_member_read(text, member, err));
    if (rendezvous_is_local(member->address) && strcmp(member->node, rendezvous->own.node) != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "rank %lld is on node %s, whose tasks other nodes cannot reach: %s",
                              (long long)rank, member->node,
                              rendezvous->prepare->task->is_offline
                                  ? "the job asks for no network"
                                  : "start its agent with --address");
    }
    return WEIR_OK;
}

static weir_status take_members(struct rendezvous *rendezvous, const json_t *values,
                                struct weir_error *err)
{
    char key[RENDEZVOUS_KEY_BYTES];
    for (int64_t rank = 0; rank < rendezvous->n_wait; rank++) {
        const char *text = json_string_value(json_object_get(values, rendezvous_key(key, rank)));
        if (text == NULL) {
            return say_who_is_missing(rendezvous, values, err);
        }
        WEIR_TRY(take_member(rendezvous, text, rank, err));
    }
    return WEIR_OK;
}

/* Ask until all have come. A server that is away is asked again. */
static weir_status await_members(struct rendezvous *rendezvous, struct weir_error *err)
{
    struct prepare *prepare = rendezvous->prepare;
    struct weir_client *client;
    char key[RENDEZVOUS_KEY_BYTES];
    const char *prefix = rendezvous->n_wait == 1 ? rendezvous_key(key, 0) : "at.";
    WEIR_TRY(prepare_client(prepare, &client, err));
    char *board = weir_client_path(prepare->arena, "/api/v1/jobs/{}/board", &prepare->task->job, 1);
    for (;;) {
        WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
        int64_t left_ms = WEIR_MAX(rendezvous->deadline_ms - weir_mono_ms(), (int64_t)0);
        char *path = weir_arena_printf(
            prepare->arena, "%s?prefix=%s&count=%lld&wait_s=%lld", board, prefix,
            (long long)rendezvous->n_wait,
            (long long)WEIR_MAX(WEIR_MIN(left_ms / 1000, (int64_t)POLL_WAIT_S), (int64_t)1));
        WEIR_TRY(weir_client_call_retry(client, "GET", path, NULL, left_ms + 1000, &answer, err));
        const json_t *values = json_object_get(answer, "values");
        bool is_enough = (int64_t)json_object_size(values) >= rendezvous->n_wait;
        if (is_enough || left_ms == 0) {
            return take_members(rendezvous, values, err);
        }
    }
}

static weir_status fill(const struct rendezvous *rendezvous, const char *text, char **out,
                        struct weir_error *err)
{
    const struct rendezvous_known known = {
        .members = rendezvous->members,
        .n_members = (size_t)rendezvous->n_wait,
        .interface = rendezvous->interface,
        .address = rendezvous->own.address,
        .n_restarts = WEIR_MAX(rendezvous->prepare->task->attempt - 1, (int64_t)0)};
    return rendezvous_fill(text != NULL ? text : "", &known, rendezvous->prepare->arena, out, err);
}

static weir_status set_variables(const struct rendezvous *rendezvous, const json_t *meet,
                                 struct weir_error *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(meet, "env"), name, text)
    {
        char *value;
        WEIR_TRY(fill(rendezvous, json_string_value(text), &value, err));
        if (value[0] != '\0' && prepare_get_env(rendezvous->prepare, name) == NULL) {
            prepare_env(rendezvous->prepare, name, value);
        }
    }
    return WEIR_OK;
}

static weir_status write_files(const struct rendezvous *rendezvous, const json_t *meet,
                               struct weir_error *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(meet, "files"), name, text)
    {
        char *value;
        WEIR_TRY(fill(rendezvous, json_string_value(text), &value, err));
        const struct task_pair file = {name, value};
        WEIR_TRY(
            launch_write_file(rendezvous->prepare->dir, &file, rendezvous->prepare->arena, err));
    }
    return WEIR_OK;
}

/* A launcher's words, then the program's own, in which nothing is filled in. */
static weir_status set_launcher(const struct rendezvous *rendezvous, const json_t *meet,
                                struct weir_error *err)
{
    struct task *task = rendezvous->prepare->task;
    const json_t *list = json_object_get(meet, "launcher");
    size_t n = json_array_size(list), n_own = 0;
    while (task->argv[n_own] != NULL) {
        n_own++;
    }
    if (n == 0) {
        return WEIR_OK;
    }
    char **argv = WEIR_ARENA_ARRAY(rendezvous->prepare->arena, n + n_own + 1, char *);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(fill(rendezvous, json_string_value(json_array_get(list, i)), &argv[i], err));
    }
    memcpy(argv + n, task->argv, n_own * sizeof *argv);
    task->argv = argv;
    return WEIR_OK;
}

/* For what its programs say when they do not find each other. */
static void name_places(const struct rendezvous *rendezvous)
{
    struct prepare *prepare = rendezvous->prepare;
    const struct rendezvous_member *own = &rendezvous->own, *first = &rendezvous->members[0];
    prepare_env(prepare, "WEIR_RANK_PLACE",
                weir_arena_printf(prepare->arena, "node %s, %s", own->node, own->address));
    prepare_env(prepare, "WEIR_RANK_0_PLACE",
                weir_arena_printf(prepare->arena, "node %s, %s port %d", first->node,
                                  first->address, first->port));
}

/* Parts of one checkpoint are written by ranks that must see each other's. */
static weir_status check_folder(const struct rendezvous *rendezvous, const json_t *meet,
                                struct weir_error *err)
{
    const struct places *places = rendezvous->prepare->places;
    bool needs_folder = json_is_true(json_object_get(meet, "needs_folder"));
    for (int64_t rank = 0; rank < rendezvous->n_wait && needs_folder; rank++) {
        const char *node = rendezvous->members[rank].node;
        if (places->own_dir != NULL && strcmp(node, rendezvous->own.node) != 0) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "rank %lld is on node %s, and this one, %s, does not see the server's "
                "state folder: parameter servers write parts of one checkpoint, and need "
                "a disk that all their nodes see, or one node; workers alone do not",
                (long long)rank, node, rendezvous->own.node);
        }
    }
    return WEIR_OK;
}

weir_status prepare_rendezvous(struct prepare *prepare, struct weir_error *err)
{
    const json_t *meet = json_object_get(prepare->document, "meet");
    struct rendezvous rendezvous = {.prepare = prepare};
    if (meet == NULL) {
        return WEIR_OK;
    }
    rendezvous.deadline_ms =
        WEIR_MIN(prepare->deadline_ms, weir_mono_ms() + RENDEZVOUS_PATIENCE_MS);
    WEIR_TRY(read_meet(meet, &rendezvous, err));
    WEIR_TRY(look_at_self(&rendezvous, err));
    rendezvous.members =
        WEIR_ARENA_ARRAY(prepare->arena, (size_t)rendezvous.n_wait, struct rendezvous_member);
    if (json_integer_value(json_object_get(meet, "size")) == 1) {
        rendezvous.members[0] = rendezvous.own; /* there is nobody else */
    } else {
        if (prepare->task->rank < rendezvous.n_wait) {
            WEIR_TRY(leave_word(&rendezvous, err));
        }
        WEIR_TRY(await_members(&rendezvous, err));
    }
    WEIR_TRY(check_folder(&rendezvous, meet, err));
    name_places(&rendezvous);
    WEIR_TRY(set_variables(&rendezvous, meet, err));
    WEIR_TRY(write_files(&rendezvous, meet, err));
    return set_launcher(&rendezvous, meet, err);
}
