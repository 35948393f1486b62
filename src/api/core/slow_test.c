/* Slow questions: who asks, how often, and how many at a time. */
#include "api/core/slow.h"

#include "base/test_main.h"

#include <pthread.h>
#include <string.h>

/* Answers when it is let to; counts how often it was asked, and at a time. */
static struct stage {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_asked, n_running, n_most, n_wakes;
    bool is_open;
} stage;

static struct slow *slow;
static struct weir_arena arena;

static weir_status act(void *context, const char *question, struct weir_arena *answers, char **out,
                       struct weir_error *err)
{
    ck_assert_ptr_eq(context, &stage);
    pthread_mutex_lock(&stage.lock);
    stage.n_asked++;
    stage.n_running++;
    stage.n_most = stage.n_running > stage.n_most ? stage.n_running : stage.n_most;
    pthread_cond_broadcast(&stage.changed);
    while (!stage.is_open) {
        pthread_cond_wait(&stage.changed, &stage.lock);
    }
    stage.n_running--;
    pthread_mutex_unlock(&stage.lock);
    if (strcmp(question, "wrong") == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is no question", question);
    }
    *out = weir_arena_printf(answers, "%s!", question);
    return WEIR_OK;
}

static void wake(void *context)
{
    (void)context;
    pthread_mutex_lock(&stage.lock);
    stage.n_wakes++;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.lock);
}

static void let(void)
{
    pthread_mutex_lock(&stage.lock);
    stage.is_open = true;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.lock);
}

static void await(const int *counter, int n)
{
    pthread_mutex_lock(&stage.lock);
    while (*counter < n) {
        pthread_cond_wait(&stage.changed, &stage.lock);
    }
    pthread_mutex_unlock(&stage.lock);
}

static enum slow_state look(const char *question, char **out, struct weir_error *err)
{
    return slow_look(slow, question, &arena, out, err);
}

static void set_up(void)
{
    const struct control_listener listener = {.wake = wake};
    memset(&stage, 0, sizeof stage);
    pthread_mutex_init(&stage.lock, NULL);
    pthread_cond_init(&stage.changed, NULL);
    weir_arena_init(&arena, 0);
    slow = slow_create(act, &stage, &listener);
}

static void tear_down(void)
{
    let();
    slow_destroy(slow);
    weir_arena_fini(&arena);
}

START_TEST(the_same_question_is_asked_once_while_it_is_asked)
{
    struct weir_error err;
    char *text;
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(look("how", &text, &err), SLOW_RUNNING);
    }
    let();
    await(&stage.n_wakes, 1);
    for (int i = 0; i < 3; i++) { /* all who wait have it */
        ck_assert_int_eq(look("how", &text, &err), SLOW_DONE);
        ck_assert_str_eq(text, "how!");
    }
    ck_assert_int_eq(stage.n_asked, 1);
}

END_TEST

START_TEST(a_refusal_says_why)
{
    struct weir_error err = {0};
    char *text;
    let();
    ck_assert_int_ne(look("wrong", &text, &err), SLOW_DONE);
    await(&stage.n_wakes, 1);
    ck_assert_int_eq(look("wrong", &text, &err), SLOW_REFUSED);
    ck_assert_int_eq(err.status, WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "wrong is no question");
}

END_TEST

START_TEST(few_are_asked_at_a_time_and_more_than_wait_are_refused)
{
    struct weir_error err = {0};
    char *text;
    for (int i = 0; i < SLOW_MAX_WAITING; i++) {
        ck_assert_int_eq(look(weir_arena_printf(&arena, "%d", i), &text, &err), SLOW_RUNNING);
    }
    ck_assert_int_eq(look("more", &text, &err), SLOW_REFUSED);
    ck_assert_int_eq(err.status, WEIR_ERR_UNAVAILABLE);
    await(&stage.n_asked, SLOW_MAX_RUNNING);
    let();
    await(&stage.n_wakes, SLOW_MAX_WAITING);
    ck_assert_int_eq(stage.n_most, SLOW_MAX_RUNNING);
    ck_assert_int_eq(look("31", &text, &err), SLOW_DONE);
    ck_assert_str_eq(text, "31!");
}

END_TEST

START_TEST(what_is_stopped_asks_no_more)
{
    struct weir_error err = {0};
    char *text;
    let();
    slow_stop(slow);
    ck_assert_int_eq(look("how", &text, &err), SLOW_REFUSED);
    ck_assert_int_eq(err.status, WEIR_ERR_UNAVAILABLE);
    ck_assert_int_eq(stage.n_asked, 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("slow", set_up, tear_down, the_same_question_is_asked_once_while_it_is_asked,
                    a_refusal_says_why, few_are_asked_at_a_time_and_more_than_wait_are_refused,
                    what_is_stopped_asks_no_more)
