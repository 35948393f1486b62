/* Services as control makes, starts and stops them, and what becomes of idle ones. */
#include "control/service.h"

#include "base/macros.h"
#include "control/job/control_fixture.h"
#include "control/schedule/idle.h"
#include "framework/framework.h"
#include "job/queue.h"

#define HOUR ((int64_t)3600 * 1000)

static struct control_fixture fixture;

static void set_up(void)
{
    control_fixture_make(&fixture);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

struct put {
    struct control_service wanted;
    bool has_domain;
    struct weir_service_look look;
};

static weir_status put_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    struct put *put = context;
    return control_service_put(control, txn, &put->wanted, put->has_domain, &put->look, err);
}

static weir_status put(const char *name, const char *kind, const char *spec, struct put *out)
{
    json_t *json = json_loads(spec, 0, NULL);
    ck_assert_ptr_nonnull(json);
    out->wanted.name = name;
    out->wanted.kind = kind;
    out->wanted.project = "default";
    out->wanted.spec = json;
    weir_status status = try_turn(&fixture, put_in, out, false);
    out->wanted.spec = NULL;
    json_decref(json);
    return status;
}

static struct weir_service_look started(const char *name, const char *kind, const char *spec)
{
    struct put made = {0};
    weir_status status = put(name, kind, spec, &made);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return made.look;
}

struct stop {
    const char *id;
    struct weir_service_look look;
};

static weir_status stop_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct stop *stop = context;
    return control_service_stop(control, txn, stop->id, "stopped by ann", &stop->look, err);
}

static weir_status look_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct stop *stop = context;
    return weir_service_look(txn, stop->id, control->arena, &stop->look, err);
}

static struct weir_service_look look(const char *id)
{
    struct stop at = {.id = id};
    turn(&fixture, look_in, &at);
    return at.look;
}

/* What the agent would get. */
static json_t *definition_of(const char *job, struct weir_job *out_job)
{
    *out_job = job_record(&fixture, job);
    void *items;
    size_t n = list_records(&fixture, &weir_task_resource, &items);
    for (size_t i = 0; i < n; i++) {
        const struct weir_task *task = (const struct weir_task *)items + i;
        if (strcmp(task->job, job) == 0) {
            return json_loads(task->definition, 0, NULL);
        }
    }
    return NULL;
}

START_TEST(a_service_is_a_job_with_a_port_a_path_and_a_folder)
{
    struct weir_job job;
    struct weir_service_look made =
        started("web", "service", "{\"argv\":[\"/bin/server\"],\"env\":{\"A\":\"b\"}}");
    const char *id = made.service.id;
    ck_assert_str_eq(made.state, WEIR_SERVICE_STARTING);
    ck_assert(weir_service_id_is_valid(id));
    json_t *definition = definition_of(made.service.job, &job);
    ck_assert_str_eq(job.kind, "command");
    const json_t *service = json_object_get(definition, "service");
    const json_t *env = json_object_get(definition, "env");
    struct weir_arena *arena = &fixture.store.arena;
    ck_assert_str_eq(json_string_value(json_object_get(service, "id")), id);
    ck_assert_str_eq(json_string_value(json_object_get(service, "secret")), made.service.secret);
    ck_assert_str_eq(json_string_value(json_object_get(env, "WEIR_SERVICE_PATH")),
                     weir_arena_printf(arena, "/services/%s/", id));
    ck_assert_str_eq(json_string_value(json_object_get(env, "WEIR_FOLDER")),
                     weir_arena_printf(arena, "/s/services/%s", id));
    ck_assert_str_eq(json_string_value(json_object_get(env, "A")), "b");
    ck_assert_ptr_nonnull(strstr(weir_json_text(json_object_get(definition, "paths"), arena), id));
    json_decref(definition);
    /* Its secret is shown to nobody who looks at the job. */
    json_t *shown = weir_record_to_json(&weir_job_resource, &job);
    ck_assert_ptr_null(strstr(weir_json_text(shown, arena), made.service.secret));
    json_decref(shown);
    shown = weir_record_to_json(&weir_service_resource, &made.service);
    ck_assert_ptr_null(strstr(weir_json_text(shown, arena), made.service.secret));
    json_decref(shown);
}

END_TEST

START_TEST(nobody_takes_anothers_port_or_folder)
{
    struct make_job make = {"x", "command",
                            "{\"argv\":[\"/bin/x\"],\"service\":{\"id\":\"abc\",\"path\":\"/\"}}",
                            NULL};
    ck_assert_int_eq(try_turn(&fixture, make_job_in, &make, false), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "$.spec.service"));
    /* What a service's owner says of it is overwritten. */
    struct weir_job job;
    struct weir_service_look made =
        started("web", "service", "{\"argv\":[\"/bin/x\"],\"service\":{\"id\":\"abc\"}}");
    json_t *definition = definition_of(made.service.job, &job);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(definition, "service"), "id")),
        made.service.id);
    json_decref(definition);
}

END_TEST

START_TEST(what_is_wrong_is_said_with_its_place)
{
    static const struct {
        const char *name, *kind, *spec, *message;
    } cases[] = {
        {"A", "service", "{\"argv\":[\"/bin/x\"]}", "$.name"},
        {"a", "lamp", "{}", "$.kind"},
        {"a", "service", "{}", "$.spec.argv"},
        {"a", "service", "{\"argv\":[\"/bin/x\"],\"nonsense\":1}", "nonsense"},
        {"a", "tensorboard", "{}", "$.runs"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct put wrong = {0};
        ck_assert_int_eq(put(cases[i].name, cases[i].kind, cases[i].spec, &wrong),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(fixture.err.message, cases[i].message) != NULL, "%s",
                      fixture.err.message);
    }
    struct put wrong = {.wanted = {.port = 70000}};
    ck_assert_int_eq(put("a", "service", "{\"argv\":[\"/bin/x\"]}", &wrong), WEIR_ERR_INVALID);
    ck_assert_uint_eq(count_records(&fixture, &weir_service_resource), 0);
}

END_TEST

START_TEST(a_notebook_comes_back_to_its_folder_with_another_secret)
{
    struct weir_job job;
    struct weir_service_look first = started("paper", "notebook", "{}");
    ck_assert(first.service.keeps_path);
    ck_assert_ptr_nonnull(first.service.credential);
    json_t *definition = definition_of(first.service.job, &job);
    const char *token =
        json_string_value(json_object_get(json_object_get(definition, "env"), "JUPYTER_TOKEN"));
    ck_assert_str_eq(first.service.credential + strlen("token "), token);
    json_decref(definition);
    /* It runs: it is not started twice. */
    struct put twice = {0};
    ck_assert_int_eq(put("paper", "notebook", "{}", &twice), WEIR_ERR_CONFLICT);
    place(&fixture, first.service.job);
    runs(&fixture, first.service.job, 0);
    ck_assert_str_eq(look(first.service.id).state, WEIR_SERVICE_RUNNING);
    struct stop stop = {.id = first.service.id};
    turn(&fixture, stop_in, &stop);
    ck_assert_str_eq(stop.look.state, WEIR_SERVICE_STOPPING);
    exits(&fixture, first.service.job, 0, 143);
    ck_assert_str_eq(look(first.service.id).state, WEIR_SERVICE_STOPPED);
    ck_assert_str_eq(look(first.service.id).why, "stopped by ann");
    turn(&fixture, stop_in, &stop); /* again: nothing happens */
    struct weir_service_look second = started("paper", "notebook", "{}");
    ck_assert_str_eq(second.service.id, first.service.id);
    ck_assert_str_ne(second.service.job, first.service.job);
    ck_assert_str_ne(second.service.secret, first.service.secret);
    ck_assert_str_ne(second.service.credential, first.service.credential);
    /* Another kind does not take its name. */
    turn(&fixture, stop_in, &stop);
    ck_assert_int_eq(put("paper", "service", "{\"argv\":[\"/bin/x\"]}", &twice), WEIR_ERR_CONFLICT);
}

END_TEST

START_TEST(with_a_domain_a_program_that_knows_no_path_is_at_the_root)
{
    struct weir_job job;
    struct put made = {.has_domain = true};
    ck_assert_int_eq(put("web", "service", "{\"argv\":[\"/bin/x\"]}", &made), WEIR_OK);
    json_t *definition = definition_of(made.look.service.job, &job);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(definition, "service"), "path")), "/");
    json_decref(definition);
}

END_TEST

/* ---- idle ones ---------------------------------------------------------------------------------------- */

static weir_status idle_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct control_idle_job *found;
    const char **out = context;
    size_t n;
    WEIR_TRY(control_idle_services(control, txn, &found, &n, err));
    ck_assert_uint_le(n, 1);
    *out = n > 0 ? found[0].id : NULL;
    return WEIR_OK;
}

static const char *idle(void)
{
    const char *id = NULL;
    turn(&fixture, idle_in, &id);
    return id;
}

static weir_status queue_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    return weir_queue_set(txn, context, control->now_ms, err);
}

static weir_status use_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    return weir_service_note_use(txn, context, control->now_ms, err);
}

START_TEST(what_nobody_uses_is_found_after_its_own_time_or_its_queues)
{
    struct put made = {.wanted = {.idle_after_ms = HOUR}};
    ck_assert_int_eq(put("web", "service", "{\"argv\":[\"/bin/x\"]}", &made), WEIR_OK);
    char *id = made.look.service.id;
    fixture.now_ms += 2 * HOUR;
    ck_assert_ptr_null(idle()); /* it does not run yet */
    place(&fixture, made.look.service.job);
    runs(&fixture, made.look.service.job, 0);
    fixture.now_ms += HOUR - 1;
    ck_assert_ptr_null(idle());
    fixture.now_ms += 1;
    ck_assert_str_eq(idle(), id);
    turn(&fixture, use_in, id);
    ck_assert_ptr_null(idle());
    fixture.now_ms += HOUR;
    ck_assert_str_eq(idle(), id);
    struct stop stop = {.id = id};
    turn(&fixture, stop_in, &stop);
    ck_assert_ptr_null(idle());
    exits(&fixture, made.look.service.job, 0, 143);

    /* Without a time of its own its queue's counts; without that, none. */
    struct weir_service_look second = started("other", "service", "{\"argv\":[\"/bin/x\"]}");
    place(&fixture, second.service.job);
    runs(&fixture, second.service.job, 0);
    fixture.now_ms += 100 * HOUR;
    ck_assert_ptr_null(idle());
    struct weir_queue queue = {.name = "q",
                               .project = "default",
                               .priority = 100,
                               .min_run_ms = -1,
                               .idle_after_ms = HOUR};
    turn(&fixture, queue_in, &queue);
    ck_assert_str_eq(idle(), second.service.id);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {a_service_is_a_job_with_a_port_a_path_and_a_folder,
                            nobody_takes_anothers_port_or_folder,
                            what_is_wrong_is_said_with_its_place,
                            a_notebook_comes_back_to_its_folder_with_another_secret,
                            with_a_domain_a_program_that_knows_no_path_is_at_the_root,
                            what_nobody_uses_is_found_after_its_own_time_or_its_queues};
    return weir_test_run(
        weir_test_suite_with("services", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
