#include "http/test_support.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#define N_MANY 1000

enum { TOPIC_A = 1, TOPIC_B = 2 };

/* "/wait/N?topics=T&ms=M" answers when value >= N; "/events" streams 1, 2, … value. */
struct fixture {
    struct weir_http_server *server;
    atomic_int value, n_calls, n_pulls, n_freed, n_open_streams;
    atomic_int batch; /* events of one pull */
    atomic_int padding;
    pthread_mutex_t lock;
    struct weir_http_later *laters[N_MANY]; /* under lock */
    size_t n_laters;
};

static struct fixture f;

static int number(const char *text, int fallback)
{
    return text != NULL ? (int)strtol(text, NULL, 10) : fallback;
}

static void handle_wait(struct weir_http_request *request, struct weir_http_response *response)
{
    int wanted = number(request->segments[1], 0);
    f.n_calls++;
    if (f.value >= wanted) {
        weir_http_response_text(response, 200, "text/plain", "reached");
    } else if (request->is_expired) {
        weir_http_response_text(response, 200, "text/plain", "expired");
    } else {
        if (weir_http_request_query(request, "race") != NULL && request->state == NULL) {
            request->state = request->arena;
            f.value = wanted; /* what was looked at changes before "wait" is answered */
            weir_http_wake(f.server, TOPIC_A);
        }
        weir_http_response_wait(response,
                                (uint64_t)number(weir_http_request_query(request, "topics"), 1),
                                number(weir_http_request_query(request, "ms"), 60000));
    }
}

struct stream {
    int cursor;
};

static weir_status next_events(void *state, struct weir_buf *out)
{
    struct stream *stream = state;
    f.n_pulls++;
    for (int i = 0; i < f.batch && stream->cursor < f.value; i++) {
        char id[16];
        char data[4096];
        (void)snprintf(id, sizeof id, "%d", stream->cursor + 1);
        (void)snprintf(data, sizeof data, "value %d\nline two%0*d", stream->cursor + 1, f.padding,
                       0);
        weir_status status = weir_http_event_append(out, "count", id, data);
        if (status == WEIR_ERR_LIMIT) {
            break;
        }
        ck_assert_int_eq(status, WEIR_OK);
        stream->cursor++;
    }
    return WEIR_OK;
}

static void free_stream(void *state)
{
    f.n_freed++;
    free(state);
}

/* "/later/N" hands itself out N times; "/later/1?at_once=1" comes back before it has returned. */
static void handle_later(struct weir_http_request *request, struct weir_http_response *response)
{
    int *n_calls = request->state;
    if (n_calls == NULL) {
        n_calls = request->state = weir_arena_alloc(request->arena, sizeof *n_calls);
    }
    if ((*n_calls)++ < number(request->segments[1], 0)) {
        struct weir_http_later *later = weir_http_response_later(response);
        if (weir_http_request_query(request, "at_once") != NULL) {
            weir_http_later_resume(later);
        } else {
            pthread_mutex_lock(&f.lock);
            f.laters[f.n_laters++] = later;
            pthread_mutex_unlock(&f.lock);
        }
        return;
    }
    char text[32];
    (void)snprintf(text, sizeof text, "called %d", *n_calls);
    weir_http_response_text(response, 200, "text/plain", text);
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    if (strcmp(request->segments[0], "later") == 0) {
        handle_later(request, response);
    } else if (strcmp(request->segments[0], "wait") == 0) {
        handle_wait(request, response);
    } else if (strcmp(request->segments[0], "events") == 0) {
        struct stream *stream = calloc(1, sizeof *stream);
        stream->cursor = number(weir_http_request_header(request, "Last-Event-ID"), 0);
        f.n_open_streams++;
        weir_http_response_events(response, TOPIC_A, next_events, free_stream, stream);
    } else {
        weir_http_response_text(response, 200, "text/plain", "other");
    }
}

static void serve_waits(int idle_timeout_s)
{
    f.server = serve(&(struct weir_http_config){.n_handlers = 4,
                                                .max_queued = 2 * N_MANY,
                                                .max_connections = 3000,
                                                .max_connections_per_address = 3000,
                                                .idle_timeout_s = idle_timeout_s,
                                                .keep_alive_ms = 200},
                     handle, NULL);
}

/* On a busy machine a server may not come to look at a connection for seconds: those who are silent
 * are cut in the tests that are about it only. */
static void start(void)
{
    memset(&f, 0, sizeof f);
    f.batch = 10;
    f.padding = 1;
    pthread_mutex_init(&f.lock, NULL);
    serve_waits(600);
}

static void cut_silent_ones(int idle_timeout_s)
{
    weir_http_server_stop(f.server, 0);
    serve_waits(idle_timeout_s);
}

static void stop(void)
{
    weir_http_server_stop(f.server, 1000);
    ck_assert_int_eq(f.n_freed, f.n_open_streams);
}

static int ask(const char *target, const char *headers)
{
    char request[512];
    int fd = connect_to(f.server);
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", target, headers);
    send_text(fd, request);
    return fd;
}

static void await_waiting(int64_t n)
{
    struct weir_http_counts counts = {.n_waiting = -1};
    int64_t give_up_ms = weir_mono_ms() + 60000;
    while (counts.n_waiting != n) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        weir_http_server_counts(f.server, &counts);
        (void)usleep(1000); /* only to leave the processor to the server */
    }
}

static void expect_answer(int fd, const char *text)
{
    char answer[4096];
    read_until(fd, NULL, answer, sizeof answer);
    ck_assert_msg(strstr(answer, text) != NULL, "expected %s: %s", text, answer);
    close(fd);
}

START_TEST(a_thousand_waiting_requests_hold_no_thread_and_wake_together)
{
    static int fds[N_MANY];
    for (int i = 0; i < N_MANY; i++) {
        fds[i] = ask("/wait/1", "");
    }
    await_waiting(N_MANY);
    ck_assert_int_eq(f.n_calls, N_MANY);
    int64_t begin_ms = weir_mono_ms();
    expect_answer(ask("/other", ""), "other"); /* four handlers, a thousand waits: not blocked */
    int64_t other_ms = weir_mono_ms() - begin_ms;
    begin_ms = weir_mono_ms();
    f.value = 1;
    weir_http_wake(f.server, TOPIC_A);
    for (int i = 0; i < N_MANY; i++) {
        expect_answer(fds[i], "reached");
    }
    printf("%d waits woken and answered in %d ms; another request meanwhile: %d ms\n", N_MANY,
           (int)(weir_mono_ms() - begin_ms), (int)other_ms);
    ck_assert_int_eq(f.n_calls, 2 * N_MANY);
}

END_TEST

START_TEST(a_wait_ends_when_its_time_is_over)
{
    int64_t begin_ms = weir_mono_ms();
    expect_answer(ask("/wait/1?ms=150", ""), "expired");
    ck_assert_int_ge(weir_mono_ms() - begin_ms, 150);
    expect_answer(ask("/wait/1?ms=0", ""), "expired");
    expect_answer(ask("/wait/1?ms=-5", ""), "expired");
}

END_TEST

/* A wait is not silence. */
START_TEST(a_wait_outlives_the_idle_timeout)
{
    cut_silent_ones(2);
    expect_answer(ask("/wait/1?ms=3500", ""), "expired");
}

END_TEST

START_TEST(a_wake_between_look_and_wait_is_not_lost)
{
    expect_answer(ask("/wait/5?race=1", ""), "reached"); /* before the client's patience ends */
    ck_assert_int_eq(f.n_calls, 2);
}

END_TEST

START_TEST(a_wake_of_another_topic_calls_nobody)
{
    int fd = ask("/wait/1?topics=2", "");
    await_waiting(1);
    weir_http_wake(f.server, TOPIC_A);
    ck_assert_int_eq(f.n_calls, 1);
    await_waiting(1);
    f.value = 1;
    weir_http_wake(f.server, TOPIC_B);
    expect_answer(fd, "reached");
    ck_assert_int_eq(f.n_calls, 2);
}

END_TEST

START_TEST(a_waiting_client_may_go_away)
{
    int fds[20];
    for (int i = 0; i < 20; i++) {
        fds[i] = ask("/wait/1", "");
    }
    await_waiting(20);
    for (int i = 0; i < 20; i += 2) {
        close(fds[i]);
    }
    f.value = 1;
    weir_http_wake(f.server, WEIR_HTTP_ALL_TOPICS);
    for (int i = 1; i < 20; i += 2) {
        expect_answer(fds[i], "reached");
    }
}

END_TEST

START_TEST(stop_answers_those_who_wait_and_ends_streams)
{
    int waiting = ask("/wait/1", "");
    int stream = ask("/events", "");
    await_waiting(2);
    weir_http_server_stop(f.server, 600000); /* waited for, it would outlast the test */
    f.server = NULL;
    expect_answer(waiting, "expired");
    expect_answer(stream, "\r\n0\r\n"); /* the stream's last chunk: ended in good order */
}

END_TEST

START_TEST(events_stream_as_they_come_and_resume_after_the_last_id)
{
    char text[8192];
    f.value = 2;
    int fd = ask("/events", "");
    read_until(fd, "id: 2\ndata: value 2\ndata: line two0\n\n", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: text/event-stream\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "event: count\nid: 1\ndata: value 1\ndata: line two0\n\n"));
    await_waiting(1);
    f.value = 3;
    weir_http_wake(f.server, TOPIC_A);
    read_until(fd, "id: 3\n", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "id: 3\n"));
    close(fd);
    f.value = 30; /* more than one batch */
    fd = ask("/events", "Last-Event-ID: 3\r\n");
    read_until(fd, "id: 30\n", text, sizeof text);
    ck_assert_ptr_null(strstr(text, "id: 3\n"));
    int n = 0;
    for (const char *at = strstr(text, "id: "); at != NULL; at = strstr(at + 4, "id: ")) {
        ck_assert_int_eq(strtol(at + 4, NULL, 10), 4 + n++);
    }
    ck_assert_int_eq(n, 27);
    close(fd);
}

END_TEST

START_TEST(a_quiet_stream_gets_comments_and_notices_that_its_reader_left)
{
    char text[4096];
    int fd = ask("/events", "");
    read_until(fd, ": keep-alive\n\n", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, ": keep-alive\n\n"));
    read_until(fd, ": keep-alive\n\n", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, ": keep-alive\n\n"));
    close(fd);
    int64_t give_up_ms = weir_mono_ms() + 10000;
    while (f.n_freed == 0) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        (void)usleep(1000);
    }
}

END_TEST

START_TEST(a_slow_reader_is_not_pulled_ahead_and_is_cut)
{
    cut_silent_ones(2);
    f.batch = 100;
    f.padding = 2000;
    f.value = 1000000; /* 2 GB of events, if it were read */
    int fd = ask("/events", "");
    int64_t give_up_ms = weir_mono_ms() + 15000;
    while (f.n_freed == 0) { /* idle_timeout_s without reading */
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        (void)usleep(1000);
    }
    /* What went ahead is what the two sockets' buffers hold: at most a few tens of MB. */
    printf("%d pulls of about 200 KB before the slow reader was cut\n", (int)f.n_pulls);
    ck_assert_int_lt(f.n_pulls, 200);
    close(fd);
}

END_TEST

static void *waker(void *context)
{
    atomic_bool *is_over = context;
    while (!*is_over) {
        f.value++;
        weir_http_wake(f.server, TOPIC_A);
    }
    return NULL;
}

/* The next event of the stream has this id. */
static void expect_id(FILE *stream, int id)
{
    char line[4096] = "";
    while (strncmp(line, "id: ", 4) != 0) {
        ck_assert_msg(fgets(line, sizeof line, stream) != NULL, "the stream ends before %d", id);
    }
    ck_assert_int_eq(strtol(line + 4, NULL, 10), id);
}

/* Whatever the order of wake, pull and send: every event arrives once, in order. */
START_TEST(no_event_is_lost_or_doubled_under_a_storm_of_wakes)
{
    atomic_bool is_over = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, waker, &is_over), 0);
    int fds[8];
    FILE *files[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = ask("/events", "");
        files[i] = fdopen(fds[i], "r");
        ck_assert_ptr_nonnull(files[i]);
    }
    for (int n = 1; n <= 2000; n++) { /* in turns: none of them is a slow reader */
        for (int i = 0; i < 8; i++) {
            expect_id(files[i], n);
        }
    }
    is_over = true;
    pthread_join(thread, NULL);
    for (int i = 0; i < 8; i++) {
        (void)fclose(files[i]);
    }
}

END_TEST

/* The handles that are out, when there are n. */
static void take_laters(size_t n, struct weir_http_later **out)
{
    int64_t give_up_ms = weir_mono_ms() + 20000;
    for (bool are_there = false; !are_there;) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        pthread_mutex_lock(&f.lock);
        are_there = f.n_laters >= n;
        if (are_there) {
            for (size_t i = 0; i < n; i++) {
                out[i] = f.laters[i];
            }
            f.n_laters = 0;
        }
        pthread_mutex_unlock(&f.lock);
        (void)usleep(1000); /* only to leave the processor to the server */
    }
}

START_TEST(what_is_answered_later_holds_no_thread)
{
    static int fds[200];
    static struct weir_http_later *laters[200];
    for (int i = 0; i < 200; i++) {
        fds[i] = ask("/later/1", "");
    }
    take_laters(200, laters);
    expect_answer(ask("/other", ""), "other");
    for (int i = 199; i >= 0; i--) {
        weir_http_later_resume(laters[i]);
    }
    for (int i = 0; i < 200; i++) {
        expect_answer(fds[i], "called 2");
    }
}

END_TEST

START_TEST(a_later_may_come_back_before_the_handler_has_returned)
{
    for (int i = 0; i < 200; i++) {
        expect_answer(ask("/later/3?at_once=1", ""), "called 4");
    }
}

END_TEST

START_TEST(who_has_the_handle_sees_that_the_client_left)
{
    struct weir_http_later *later;
    int fd = ask("/later/1", "");
    take_laters(1, &later);
    ck_assert(!weir_http_later_is_gone(later));
    close(fd);
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (!weir_http_later_is_gone(later)) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
    }
    weir_http_later_resume(later);
}

END_TEST

static void *resume_twice(void *context)
{
    struct weir_http_later *later;
    (void)context;
    for (int i = 0; i < 2; i++) {
        take_laters(1, &later);
        (void)usleep(20000); /* so that stop waits already */
        weir_http_later_resume(later);
    }
    return NULL;
}

START_TEST(stop_waits_for_those_who_are_answered_later)
{
    pthread_t thread;
    int fd = ask("/later/2", "");
    struct weir_http_later *later;
    take_laters(1, &later);
    ck_assert_int_eq(pthread_create(&thread, NULL, resume_twice, NULL), 0);
    pthread_mutex_lock(&f.lock);
    f.laters[f.n_laters++] = later;
    pthread_mutex_unlock(&f.lock);
    weir_http_server_stop(f.server, 600000);
    pthread_join(thread, NULL);
    expect_answer(fd, "called 3");
    f.server = NULL;
}

END_TEST

WEIR_TEST_MAIN_WITH("http waits and events", start, stop,
                    a_thousand_waiting_requests_hold_no_thread_and_wake_together,
                    a_wait_ends_when_its_time_is_over, a_wait_outlives_the_idle_timeout,
                    a_wake_between_look_and_wait_is_not_lost, a_wake_of_another_topic_calls_nobody,
                    a_waiting_client_may_go_away, stop_answers_those_who_wait_and_ends_streams,
                    events_stream_as_they_come_and_resume_after_the_last_id,
                    a_quiet_stream_gets_comments_and_notices_that_its_reader_left,
                    a_slow_reader_is_not_pulled_ahead_and_is_cut,
                    no_event_is_lost_or_doubled_under_a_storm_of_wakes,
                    what_is_answered_later_holds_no_thread,
                    a_later_may_come_back_before_the_handler_has_returned,
                    who_has_the_handle_sees_that_the_client_left,
                    stop_waits_for_those_who_are_answered_later)
