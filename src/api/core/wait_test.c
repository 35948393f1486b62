/* A long poll is handled anew with every wake, however many there are before its answer. */
#include "api/request_fixture.h"

#include "api/attempt_token.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "http/http_client.h"
#include "job/job.h"
#include "store/stmt.h"

#include <pthread.h>
#include <stdatomic.h>

static struct request_fixture fixture;

static struct http_exchange *ask(const char *text)
{
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    request_fixture_handle(&fixture, x);
    return x;
}

static weir_status add_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_project project = {.name = "late", .description = "", .created_ms = 1};
    return weir_txn_insert(txn, &weir_project_resource, &project, err);
}

START_TEST(a_wait_that_is_woken_often_keeps_no_memory)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    struct http_exchange *put = ask("PUT /api/v1/nodes/n\n\n{\"cpu_slots\":2}");
    ck_assert_int_eq(put->response.kind, ANSWER_READY);
    ck_assert_int_eq(put->response.http_status, 204);
    request_fixture_free(put);
    struct http_exchange *wait = ask("GET /api/v1/nodes/n/desired?after=99&wait_s=60");
    ck_assert_int_eq(wait->response.kind, ANSWER_WAIT);
    size_t before = wait->arena.used_bytes;
    for (int i = 0; i < 3000; i++) {
        request_fixture_handle(&fixture, wait);
        ck_assert_int_eq(wait->response.kind, ANSWER_WAIT);
    }
    ck_assert_uint_eq(wait->arena.used_bytes, before);
    wait->request.is_expired = true;
    request_fixture_handle(&fixture, wait);
    ck_assert_int_eq(wait->response.kind, ANSWER_READY);
    ck_assert_int_eq(wait->response.http_status, 200);
    request_fixture_free(wait);
    request_fixture_close(&fixture);
}

END_TEST

/* The store outlives the HTTP server, and what else uses it goes on committing. */
START_TEST(a_commit_wakes_no_server_that_is_gone)
{
    struct weir_error err;
    struct weir_http_server *http;
    const struct weir_http_config config = {
        .listen = "127.0.0.1:0", .n_handlers = 1, .n_io_threads = 1, .max_connections = 16};
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    must(weir_http_server_start(&config, weir_api_handle, fixture.api, &http, &err), &err);
    weir_api_attach(fixture.api, http, "http://127.0.0.1:1");
    request_fixture_free(ask("PUT /api/v1/nodes/n\n\n{\"cpu_slots\":2}"));
    weir_api_stop(fixture.api);
    weir_http_server_stop(http, 1000);
    uint64_t before = weir_store_change(fixture.store);
    must(weir_store_write(fixture.store, add_project, NULL, &err), &err);
    ck_assert_uint_gt(weir_store_change(fixture.store), before);
    request_fixture_close(&fixture);
}

END_TEST

/* Agents and tasks have handlers of their own (http/class_test.c). */
START_TEST(each_request_is_of_the_class_of_who_makes_it)
{
    static const char task[] = "\nAuthorization: Bearer ";

    const struct {
        const char *request;
        bool is_task;
        enum weir_api_class is;
    } cases[] = {{"GET /api/v1/jobs", false, WEIR_API_PEOPLE},
                 {"GET /", false, WEIR_API_PEOPLE},
                 {"POST /api/2.0/mlflow/runs/create", false, WEIR_API_PEOPLE},
                 {"POST /api/2.0/mlflow/runs/create", true, WEIR_API_TASKS},
                 {"PUT /api/v1/runs/r/metrics", true, WEIR_API_TASKS},
                 {"PUT /api/v1/nodes/n", false, WEIR_API_AGENTS},
                 {"GET /api/v1/nodes/n", false, WEIR_API_PEOPLE},
                 {"GET /api/v1/nodes/n/desired", false, WEIR_API_AGENTS},
                 {"POST /api/v1/nodes/n/use", false, WEIR_API_AGENTS},
                 {"PUT /api/v1/tasks/t/status", false, WEIR_API_AGENTS}};

    request_fixture_open(&fixture);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        const char *text =
            cases[i].is_task
                ? weir_arena_printf(&arena, "%s%s%s\n\n", cases[i].request, task,
                                    attempt_token_make(fixture_task_key,
                                                       "00000000-0000-4000-8000-0000000000a1", 1,
                                                       &arena))
                : weir_arena_printf(&arena, "%s\n\n", cases[i].request);
        struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
        struct weir_http_body_rule rule = {0};
        weir_api_body_rule(fixture.api, &x->request, &rule);
        ck_assert_msg(rule.of_class == (int)cases[i].is, "%s: %d", cases[i].request, rule.of_class);
        request_fixture_free(x);
        weir_arena_fini(&arena);
    }
    request_fixture_close(&fixture);
}

END_TEST

/* ---- agents that wait ------------------------------------------------------------------------ */

#define N_DEEDS 150

struct agent {
    char url[64];
    int64_t last; /* Revision at which it ends. */
    atomic_llong revision;
    pthread_mutex_t lock;
    pthread_cond_t caught_up;
};

/* Ask again and again, as an agent does; one answer that does not come is waited for in vain. */
static void *follow(void *context)
{
    struct agent *agent = context;
    struct weir_error err;
    struct weir_http_client *client;
    must(weir_http_client_open(&(struct weir_http_client_config){0}, &client, &err), &err);
    for (int64_t revision = 1; revision < agent->last;) {
        char url[160];
        struct weir_http_reply reply;
        (void)snprintf(url, sizeof url, "%s/api/v1/nodes/n/desired?after=%lld&wait_s=60",
                       agent->url, (long long)revision);
        const struct weir_http_call call = {.method = "GET",
                                            .url = url,
                                            .bearer = fixture.bearer + strlen("Bearer "),
                                            .timeout_ms = 30000};
        must(weir_http_client_call(client, &call, &reply, &err), &err);
        ck_assert_int_eq(reply.http_status, 200);
        json_t *body = json_loadb(reply.body.data, reply.body.len, 0, NULL);
        revision = json_integer_value(json_object_get(body, "revision"));
        json_decref(body);
        weir_http_reply_fini(&reply);
        pthread_mutex_lock(&agent->lock);
        agent->revision = revision;
        pthread_cond_signal(&agent->caught_up);
        pthread_mutex_unlock(&agent->lock);
    }
    weir_http_client_close(client);
    return NULL;
}

static weir_status give_up_a_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql_place[] = "UPDATE tasks SET node = 'n' WHERE id = :id";
    char *id = context;
    const struct weir_job job = {.id = id,
                                 .name = "j",
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{}",
                                 .created_by = "ann"};
    const struct weir_task task = {.id = id, .role = "command", .cpu_millis = 1000};
    WEIR_TRY(weir_job_create(txn, &job, &task, 1, 1, err));
    WEIR_TRY(weir_txn_exec(txn, sql_place, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), NULL, err));
    return weir_job_abandon(txn, id, "so", "ann", 1, err);
}

static weir_status give_up_in_vain(struct weir_txn *txn, void *context, struct weir_error *err)
{
    WEIR_TRY(give_up_a_job(txn, context, err));
    return weir_error_set(err, WEIR_ERR_PEER, "gone");
}

/* Now and then all is quiet before the next deed, so that the agent waits. */
static void change_what_runs(struct agent *agent, struct weir_rng *rng)
{
    struct weir_error err;
    for (int64_t revision = 1; revision < agent->last;) {
        char id[32];
        (void)snprintf(id, sizeof id, "%lld", (long long)revision);
        uint64_t deed = weir_rng_below(rng, 4);
        weir_status status = deed == 0 ? weir_store_write(fixture.store, give_up_in_vain, id, &err)
                             : deed == 1 ? weir_store_try(fixture.store, give_up_a_job, id, &err)
                                         : weir_store_write(fixture.store, give_up_a_job, id, &err);
        ck_assert_int_eq(status, deed == 0 ? WEIR_ERR_PEER : WEIR_OK);
        revision += deed > 1;
        pthread_mutex_lock(&agent->lock);
        while (weir_rng_below(rng, 3) > 0 && agent->revision < revision) {
            pthread_cond_wait(&agent->caught_up, &agent->lock);
        }
        pthread_mutex_unlock(&agent->lock);
    }
}

START_TEST(an_agent_that_waits_for_its_node_alone_misses_nothing)
{
    struct weir_error err;
    struct weir_http_server *http;
    struct weir_rng rng;
    struct agent agent = {.last = 1 + N_DEEDS, .revision = 1};
    pthread_t thread;
    const struct weir_http_config config = {.listen = "127.0.0.1:0", .n_handlers = 2};
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_rng_init(&rng, 1, 0);
    pthread_mutex_init(&agent.lock, NULL);
    pthread_cond_init(&agent.caught_up, NULL);
    request_fixture_open(&fixture);
    must(weir_http_server_start(&config, weir_api_handle, fixture.api, &http, &err), &err);
    (void)snprintf(agent.url, sizeof agent.url, "http://127.0.0.1:%d", weir_http_server_port(http));
    weir_api_attach(fixture.api, http, agent.url);
    request_fixture_free(ask("PUT /api/v1/nodes/n\n\n{\"cpu_slots\":2}"));
    struct http_exchange *wait = ask("GET /api/v1/nodes/n/desired?after=99&wait_s=60");
    ck_assert_uint_eq(wait->response.topics, weir_node_topic("n")); /* and for nothing else */
    request_fixture_free(wait);
    ck_assert_int_eq(pthread_create(&thread, NULL, follow, &agent), 0);
    change_what_runs(&agent, &rng);
    pthread_join(thread, NULL);
    ck_assert_int_eq(agent.revision, agent.last);
    weir_api_stop(fixture.api);
    weir_http_server_stop(http, 1000);
    request_fixture_close(&fixture);
}

END_TEST

WEIR_TEST_MAIN("wait", a_wait_that_is_woken_often_keeps_no_memory,
               a_commit_wakes_no_server_that_is_gone,
               an_agent_that_waits_for_its_node_alone_misses_nothing,
               each_request_is_of_the_class_of_who_makes_it)
