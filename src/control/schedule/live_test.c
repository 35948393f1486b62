/* What people ask of the live state, and that it is not touched. */
#include "control/live.h"
#include "control/schedule/queue_fixture.h"

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

struct question {
    const char *queue, *job;
    const struct control_change *change;
    const struct weir_row_scope *names;
    json_t *answer, *others;
    weir_status status;
};

static weir_status ask_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct question *question = context;
    const struct control_live live = {fixture.now_ms, fixture.since_ms, question->names, NULL};
    question->status = question->change != NULL
                           ? control_what_if(txn, &live, question->change, &question->answer, err)
                       : question->job != NULL
                           ? control_explain_job(txn, &live, question->job, &question->answer, err)
                           : control_queues(txn, &live, question->queue, &question->answer,
                                            &question->others, err);
    return WEIR_OK;
}

static json_t *ask(struct question question)
{
    fixture_read(&fixture.store, ask_in, &question);
    ck_assert_msg(question.status == WEIR_OK, "%s", fixture.store.err.message);
    json_decref(question.others);
    return question.answer;
}

static const json_t *find(const json_t *list, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(item, key)), value) == 0) {
            return item;
        }
    }
    return NULL;
}

static json_int_t number(const json_t *item, const char *member, const char *inner)
{
    const json_t *value = json_object_get(item, member);
    return json_integer_value(inner != NULL ? json_object_get(value, inner) : value);
}

static const char *text(const json_t *item, const char *member)
{
    const char *value = json_string_value(json_object_get(item, member));
    return value != NULL ? value : "";
}

START_TEST(queues_say_what_they_use_borrow_and_wait_for)
{
    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "research", NULL, NULL, 6, "");
    set_queue(&fixture, "blue", "default", "research", 4, "");
    for (size_t i = 0; i < 9; i++) {
        (void)gang_of(&fixture, i < 7 ? "default" : "other", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 8);
    json_t *queues = ask((struct question){.queue = NULL});
    ck_assert_uint_eq(json_array_size(queues), 3);
    const json_t *blue = find(queues, "name", "blue"), *other = find(queues, "name", "other"),
                 *research = find(queues, "name", "research");
    ck_assert_int_eq(number(blue, "used", "cpus") + number(other, "used", "cpus"), 8);
    ck_assert_int_eq(number(blue, "borrowed", "cpus"), number(blue, "used", "cpus") - 4);
    ck_assert_int_eq(number(research, "used", "cpus"), number(blue, "used", "cpus"));
    ck_assert_int_eq(number(blue, "n_running", NULL) + number(blue, "n_waiting", NULL), 7);
    ck_assert_int_eq(number(blue, "waiting", "cpus") + number(other, "waiting", "cpus"), 1);
    ck_assert(json_is_true(json_object_get(blue, "is_set")));
    ck_assert(json_is_false(json_object_get(other, "is_set")));
    json_decref(queues);
    queues = ask((struct question){.queue = "blue"});
    ck_assert_uint_eq(json_array_size(queues), 1);
    json_decref(queues);
}

END_TEST

START_TEST(what_if_tells_of_one_more_node_another_quota_and_a_job_first)
{
    char *jobs[10];
    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    for (size_t i = 0; i < 10; i++) {
        jobs[i] = gang_of(&fixture, i < 5 ? "default" : "other", 1, 2);
    }
    ck_assert_int_eq(cycle(&fixture), 4);
    (void)play_agents(&fixture, jobs, 10);
    ck_assert_uint_eq(n_in_state(&fixture, jobs, 5, "RUNNING"), 2);

    struct control_change change = {.like = "a", .n_nodes = 1};
    json_t *answer = ask((struct question){.change = &change});
    ck_assert_int_eq(number(answer, "after", "starts") - number(answer, "before", "starts"), 4);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "jobs")), 4);
    json_decref(answer);

    struct weir_queue queue = {.name = "green",
                               .project = "other",
                               .shares = "{\"cpus\": {\"guarantee\": 0, \"limit\": 2}}",
                               .min_run_ms = -1};
    change = (struct control_change){.queue = &queue};
    answer = ask((struct question){.change = &change});
    ck_assert_int_eq(number(answer, "before", "evicted"), 0);
    ck_assert_int_eq(number(answer, "after", "evicted"), 1); /* Fair are 2 of its 4 CPUs then. */
    json_decref(answer);

    queue = (struct weir_queue){.name = "blue",
                                .project = "default",
                                .shares = "{\"cpus\": {\"guarantee\": 6}}",
                                .min_run_ms = -1};
    change = (struct control_change){.queue = &queue};
    set_queue(&fixture, "green", "other", NULL, 2, "");
    answer = ask((struct question){.change = &change});
    ck_assert_int_eq(number(answer, "after", "evicted"), 1);
    json_decref(answer);

    end_all(&fixture, jobs[0]);
    change = (struct control_change){.first = jobs[4]};
    set_queue(&fixture, "green", "other", NULL, 4, "");
    answer = ask((struct question){.change = &change});
    const json_t *first = find(json_object_get(answer, "jobs"), "id", jobs[4]);
    ck_assert_str_eq(text(first, "before"), "waits");
    ck_assert_str_eq(text(first, "after"), "starts");
    json_decref(answer);
    ck_assert_str_eq(job_state(&fixture, jobs[4]).job.state, "PENDING"); /* It was only asked. */
}

END_TEST

START_TEST(what_cannot_be_asked_is_refused)
{
    static const struct weir_queue no_project = {.name = "no", .project = "none"},
                                   no_parent = {.name = "no", .parent = "none"},
                                   no_shares = {.name = "blue", .shares = "[]"},
                                   second = {.name = "red", .project = "default"},
                                   below = {
                                       .name = "blue", .project = "default", .parent = "young"};

    static const struct {
        struct control_change change;
        weir_status status;
    } bad[] = {
        {{0}, WEIR_ERR_INVALID},
        {{.like = "no", .n_nodes = 1}, WEIR_ERR_NOT_FOUND},
        {{.like = "a", .n_nodes = CONTROL_NODES_ADDED_MAX + 1}, WEIR_ERR_LIMIT},
        {{.queue = &no_project}, WEIR_ERR_NOT_FOUND},
        {{.queue = &no_parent}, WEIR_ERR_NOT_FOUND},
        {{.queue = &no_shares}, WEIR_ERR_INVALID},
        {{.queue = &second}, WEIR_ERR_CONFLICT},
        {{.queue = &below}, WEIR_ERR_UNSUPPORTED},
        {{.first = "no"}, WEIR_ERR_NOT_FOUND},
    };

    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "young", NULL, NULL, 0, "");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        struct question question = {.change = &bad[i].change};
        fixture_read(&fixture.store, ask_in, &question);
        ck_assert_int_eq(question.status, bad[i].status);
    }
    struct question question = {.job = "no"};
    fixture_read(&fixture.store, ask_in, &question);
    ck_assert_int_eq(question.status, WEIR_ERR_NOT_FOUND);
    question = (struct question){.queue = "no"};
    fixture_read(&fixture.store, ask_in, &question);
    ck_assert_int_eq(question.status, WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(a_waiting_job_is_explained_with_what_would_help)
{
    char *jobs[3];
    heartbeat(&fixture, "a", 4);
    set_queue(&fixture, "blue", "default", NULL, 2, "");
    set_queue(&fixture, "green", "other", NULL, 2, "");
    for (size_t i = 0; i < 3; i++) {
        jobs[i] = gang_of(&fixture, "default", 1, 2);
    }
    char *other = gang_of(&fixture, "other", 1, 2);
    ck_assert_int_eq(cycle(&fixture), 2);
    (void)play_agents(&fixture, jobs, 3);
    (void)play_agents(&fixture, &other, 1);
    json_t *answer = ask((struct question){.job = jobs[2]});
    ck_assert_str_eq(text(answer, "state"), "PENDING");
    ck_assert_str_eq(text(answer, "queue"), "blue");
    ck_assert_str_ne(text(answer, "why"), "");
    ck_assert_str_ne(text(answer, "since"), "");
    ck_assert_str_ne(text(answer, "code"), "");
    ck_assert_int_eq(number(answer, "n_ahead", NULL), 1);
    const json_t *helps = json_object_get(answer, "helps");
    const json_t *node = find(helps, "change", "one more node like a");
    ck_assert_ptr_nonnull(node);
    ck_assert_str_eq(text(node, "outcome"), "starts");
    ck_assert_ptr_null(find(helps, "change", "go before the others of its queue"));
    json_decref(answer);

    set_queue(&fixture, "blue", "default", NULL, 0, ", \"limit\": 2");
    end_all(&fixture, other);
    answer = ask((struct question){.job = jobs[1]});
    ck_assert_str_eq(text(answer, "code"), "queue_limit");
    ck_assert_str_eq(text(answer, "resource"), "cpus");
    ck_assert_int_eq(number(answer, "need", NULL), 4);
    ck_assert_int_eq(number(answer, "have", NULL), 2);
    ck_assert_ptr_nonnull(find(json_object_get(answer, "helps"), "change",
                               "no limit of its queue and those above it"));
    json_decref(answer);
}

END_TEST

START_TEST(what_if_tells_of_new_queues_times_and_shares_before_and_after)
{
    char *jobs[8];
    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    for (size_t i = 0; i < 8; i++) {
        jobs[i] = gang_of(&fixture, i < 4 ? "default" : "other", 1, 2);
    }
    ck_assert_int_eq(cycle(&fixture), 4);
    (void)play_agents(&fixture, jobs, 8);
    const json_t *of;

    /* A queue for the project that has none: what it is guaranteed it gets back at once. */
    struct weir_queue queue = {.name = "green",
                               .project = "other",
                               .priority = 100,
                               .shares = "{\"cpus\": {\"guarantee\": 4}}",
                               .min_run_ms = -1};
    const struct control_change change = {.queue = &queue};
    json_t *answer = ask((struct question){.change = &change});
    of = find(json_object_get(answer, "queues"), "name", "green");
    ck_assert_ptr_nonnull(of);
    ck_assert_int_eq(number(json_object_get(of, "before"), "guarantee", "cpus"), 0);
    ck_assert_int_eq(number(json_object_get(of, "after"), "guarantee", "cpus"), 4);
    ck_assert(json_is_true(json_object_get(json_object_get(answer, "guarantees"), "can_be_kept")));
    json_decref(answer);

    /* A department that is not there yet. */
    queue = (struct weir_queue){.name = "sales",
                                .priority = 100,
                                .shares = "{\"cpus\": {\"guarantee\": 6}}",
                                .min_run_ms = -1};
    answer = ask((struct question){.change = &change});
    of = find(json_object_get(answer, "queues"), "name", "sales");
    ck_assert(json_is_null(json_object_get(of, "before")));
    const json_t *guarantees = json_object_get(answer, "guarantees");
    ck_assert(json_is_false(json_object_get(guarantees, "can_be_kept")));
    ck_assert_int_eq(number(guarantees, "sum", "cpus"), 10);
    ck_assert_int_eq(number(guarantees, "capacity", "cpus"), 8);
    ck_assert_ptr_nonnull(strstr(text(guarantees, "why"),
                                 "guarantees of 10 CPUs in all are more than "
                                 "the 8 CPUs that the nodes have"));
    json_decref(answer);

    /* Quotas of the whole week stand in for the queue's own. */
    queue = (struct weir_queue){.name = "blue",
                                .project = "default",
                                .priority = 100,
                                .shares = "{\"cpus\": {\"guarantee\": 4}}",
                                .times = "[{\"from\": \"00:00\", \"until\": \"24:00\", \"shares\": "
                                         "{\"cpus\": {\"guarantee\": 0, \"limit\": 2}}}]",
                                .min_run_ms = -1};
    answer = ask((struct question){.change = &change});
    of = find(json_object_get(answer, "queues"), "name", "blue");
    ck_assert_int_eq(number(json_object_get(of, "after"), "guarantee", "cpus"), 0);
    json_decref(answer);
}

END_TEST

START_TEST(what_another_project_has_is_counted_and_not_named)
{
    static const char *const own[] = {"default"};
    const struct weir_row_scope names = {.projects = own, .n_projects = 1};
    char *jobs[10];
    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "research", NULL, NULL, 6, "");
    set_queue(&fixture, "sales", NULL, NULL, 2, "");
    set_queue(&fixture, "blue", "default", "research", 4, "");
    set_queue(&fixture, "green", "other", "sales", 4, "");
    for (size_t i = 0; i < 10; i++) {
        jobs[i] = gang_of(&fixture, i < 5 ? "default" : "other", 1, 2);
    }
    ck_assert_int_eq(cycle(&fixture), 4);
    (void)play_agents(&fixture, jobs, 10);
    struct question question = {.names = &names};
    fixture_read(&fixture.store, ask_in, &question);
    ck_assert_int_eq(question.status, WEIR_OK);
    ck_assert_uint_eq(json_array_size(question.answer), 2);
    ck_assert_ptr_nonnull(find(question.answer, "name", "blue"));
    ck_assert_ptr_nonnull(find(question.answer, "name", "research"));
    ck_assert_int_eq(number(question.others, "n_queues", NULL), 2);
    ck_assert_int_eq(
        number(question.others, "n_running", NULL) + number(question.others, "n_waiting", NULL), 5);
    json_decref(question.answer);
    json_decref(question.others);

    const struct control_change more = {.like = "a", .n_nodes = 3};
    json_t *answer = ask((struct question){.change = &more, .names = &names});
    char *said = json_dumps(answer, 0);
    json_int_t n_others = number(answer, "n_others", NULL);
    ck_assert_int_eq((json_int_t)json_array_size(json_object_get(answer, "jobs")) + n_others, 6);
    ck_assert_int_gt(n_others, 0);
    ck_assert_int_eq(number(answer, "others", "starts"), n_others);
    for (size_t i = 5; i < 10; i++) {
        ck_assert_ptr_null(strstr(said, jobs[i]));
    }
    ck_assert_ptr_null(strstr(said, "green"));
    free(said);
    json_decref(answer);

    /* Another's job and queue are as if they were not there. */
    const struct weir_queue green = {.name = "green", .project = "other"},
                            part = {.name = "part", .parent = "sales"};
    const struct control_change foreign[] = {
        {.first = jobs[9]}, {.queue = &green}, {.queue = &part}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(foreign); i++) {
        question = (struct question){.change = &foreign[i], .names = &names};
        fixture_read(&fixture.store, ask_in, &question);
        ck_assert_int_eq(question.status, WEIR_ERR_NOT_FOUND);
    }
}

END_TEST

/* The planner's figures and those of the copy: two ways to the same. */
START_TEST(a_sample_of_queues_is_what_a_plan_says_they_have)
{
    char *jobs[9];
    struct weir_queue_sample *samples;
    size_t n;
    heartbeat(&fixture, "a", 8);
    set_queue(&fixture, "research", NULL, NULL, 6, "");
    set_queue(&fixture, "blue", "default", "research", 2, "");
    for (size_t i = 0; i < 9; i++) {
        jobs[i] = gang_of(&fixture, i < 5 ? "default" : "other", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 8);
    (void)play_agents(&fixture, jobs, 9);
    (void)cycle(&fixture);
    scheduler_sample_queues(fixture.scheduler, fixture.now_ms, &fixture.store.arena, &samples, &n);
    json_t *queues = ask((struct question){.queue = NULL});
    ck_assert_uint_eq(json_array_size(queues), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *queue = find(queues, "name", samples[i].queue);
        const struct weir_queue_amounts *cpus = &samples[i].cpus;
        ck_assert_int_eq(cpus->used, 1000 * number(queue, "used", "cpus"));
        ck_assert_int_eq(cpus->waiting, 1000 * number(queue, "waiting", "cpus"));
        ck_assert_int_eq(cpus->guarantee, 1000 * number(queue, "guarantee", "cpus"));
        ck_assert_int_eq(cpus->borrowed, 1000 * number(queue, "borrowed", "cpus"));
        ck_assert_str_eq(samples[i].project != NULL ? samples[i].project : "",
                         text(queue, "project"));
    }
    json_decref(queues);
}

END_TEST

START_TEST(a_held_job_says_by_whom_and_how_it_goes_on)
{
    char *job = gang_of(&fixture, "default", 1, 2);
    job_event(&fixture, job,
              (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held by ann"});
    heartbeat(&fixture, "a", 4);
    ck_assert_int_eq(cycle(&fixture), 0);
    json_t *answer = ask((struct question){.job = job});
    ck_assert_ptr_nonnull(strstr(text(answer, "why"), "held by ann: `weir job resume"));
    ck_assert(json_is_null(json_object_get(answer, "code")));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "helps")), 0);
    json_decref(answer);
    job_event(&fixture, job, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE});
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

WEIR_TEST_MAIN_WITH("live", set_up, tear_down, queues_say_what_they_use_borrow_and_wait_for,
                    what_if_tells_of_one_more_node_another_quota_and_a_job_first,
                    what_cannot_be_asked_is_refused,
                    a_sample_of_queues_is_what_a_plan_says_they_have,
                    what_another_project_has_is_counted_and_not_named,
                    what_if_tells_of_new_queues_times_and_shares_before_and_after,
                    a_waiting_job_is_explained_with_what_would_help,
                    a_held_job_says_by_whom_and_how_it_goes_on)
