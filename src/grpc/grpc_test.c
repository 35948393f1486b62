#include "grpc/grpc.h"

#include "base/clock.h"
#include "base/test_seed.h"
#include "server_private.h"
#include "test_client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>

static struct weir_grpc_server *server;
static atomic_int n_calls;
static _Atomic(struct weir_grpc_call *) kept;

static _Atomic(struct weir_grpc_call *) asked; /* of "/ask" */
static atomic_int n_asked;

/* "/ask" leaves it to the test; "/stranger" is refused. */
static enum weir_grpc_admission admit(void *context, struct weir_grpc_call *call)
{
    const char *path = weir_grpc_call_request(call)->path;
    (void)context;
    atomic_fetch_add(&n_asked, 1);
    if (strcmp(path, "/ask") == 0) {
        asked = call;
    } else if (strcmp(path, "/stranger") == 0) {
        weir_grpc_answer(call, WEIR_GRPC_UNAUTHENTICATED, "who are you?", NULL);
    }
    return strcmp(path, "/ask") == 0 || strcmp(path, "/stranger") == 0 ? WEIR_GRPC_ASKS
           : strcmp(path, "/open") == 0                                ? WEIR_GRPC_IS_OPEN
                                                                       : WEIR_GRPC_ADMITS;
}

/* "/echo" gives the message back; "/later" does on a thread; "/keep" leaves it to the test. */
static void echo(struct weir_grpc_call *call)
{
    const struct weir_grpc_request *request = weir_grpc_call_request(call);
    struct weir_buf reply;
    weir_buf_init(&reply, (size_t)128 << 20);
    (void)weir_buf_append(&reply, request->message, request->len);
    weir_grpc_answer(call, WEIR_GRPC_OK, "", &reply);
}

static void *echo_later(void *call)
{
    echo(call);
    return NULL;
}

static void handle(void *context, struct weir_grpc_call *call)
{
    const struct weir_grpc_request *request = weir_grpc_call_request(call);
    (void)context;
    atomic_fetch_add(&n_calls, 1);
    if (strcmp(request->path, "/echo") == 0 || strcmp(request->path, "/ask") == 0 ||
        strcmp(request->path, "/open") == 0) {
        echo(call);
    } else if (strcmp(request->path, "/later") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, echo_later, call);
        pthread_detach(thread);
    } else if (strcmp(request->path, "/keep") == 0) {
        kept = call;
    } else if (strcmp(request->path, "/who") == 0) {
        const char *name = weir_grpc_call_metadata(call, "x-name");
        weir_grpc_answer(call, WEIR_GRPC_PERMISSION_DENIED, name != NULL ? name : "none", NULL);
    } else {
        weir_grpc_answer(call, WEIR_GRPC_UNIMPLEMENTED, "no such method", NULL);
    }
}

static void set_up(void)
{
    struct weir_error err = {0};
    const struct weir_grpc_config config = {.listen = "127.0.0.1:0",
                                            .max_message_bytes = 8 << 20,
                                            .max_held_bytes = 18 << 20,
                                            .max_connections = 8,
                                            .max_streams = 4,
                                            .admit = admit};
    n_calls = n_asked = 0;
    kept = asked = NULL;
    ck_assert_msg(weir_grpc_server_start(&config, handle, NULL, &server, &err) == WEIR_OK, "%s",
                  err.message);
}

static void tear_down(void)
{
    weir_grpc_server_stop(server);
}

static struct weir_grpc_call *wait_for(_Atomic(struct weir_grpc_call *) *of)
{
    struct weir_grpc_call *call;
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while ((call = atomic_exchange(of, NULL)) == NULL) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        (void)usleep(1000); /* only to leave the processor to the server */
    }
    return call;
}

static struct weir_grpc_call *wait_kept(void)
{
    return wait_for(&kept);
}

START_TEST(messages_of_every_size_come_back)
{
    static const size_t sizes[] = {0, 1, 5, 16384, 16385, 1 << 20, (1 << 20) + 1, 8 << 20};
    struct test_client client;
    client_open(&client, weir_grpc_server_port(server));
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i / 2];
        char *message = malloc(n + 1);
        for (size_t k = 0; k < n; k++) {
            message[k] = (char)(k * 31 + n);
        }
        ck_assert_int_eq(client_call(&client, i % 2 == 0 ? "/echo" : "/later", NULL, message, n),
                         0);
        ck_assert_uint_eq(client.body.len, n + 5);
        ck_assert_int_eq(memcmp(client.body.data + 5, message, n), 0);
        free(message);
    }
    client_close(&client);
}

END_TEST

START_TEST(errors_come_with_their_code_and_sentence)
{
    struct test_client client;
    const char *const name[] = {"x-name", "ann", NULL};
    client_open(&client, weir_grpc_server_port(server));
    ck_assert_int_eq(client_call(&client, "/who", name, "", 0), WEIR_GRPC_PERMISSION_DENIED);
    ck_assert_str_eq(client.text, "ann");
    ck_assert_int_eq(client_call(&client, "/nothing", NULL, "", 0), WEIR_GRPC_UNIMPLEMENTED);

    static const struct {
        const char *bytes;
        size_t len;
        int code;
    } bad[] = {{"\0\0\0\0\5abc", 8, WEIR_GRPC_INVALID_ARGUMENT},
               {"\0\0\0\0\1abc", 8, WEIR_GRPC_INVALID_ARGUMENT},
               {"", 0, WEIR_GRPC_INVALID_ARGUMENT},
               {"\1\0\0\0\1a", 6, WEIR_GRPC_UNIMPLEMENTED},
               {"\0\xff\xff\xff\xff", 5, WEIR_GRPC_RESOURCE_EXHAUSTED}};

    int before = n_calls;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        client_begin(&client, "/echo", NULL, bad[i].bytes, bad[i].len);
        ck_assert_int_eq(client_finish(&client), bad[i].code);
    }
    const char *const bad_timeout[] = {"grpc-timeout", "soon", NULL};
    ck_assert_int_eq(client_call(&client, "/echo", bad_timeout, "", 0), WEIR_GRPC_INVALID_ARGUMENT);
    ck_assert_int_eq(n_calls, before);
    ck_assert_int_eq(client_call(&client, "/echo", NULL, "still here", 10), 0);
    client_close(&client);
}

END_TEST

/* The client takes what came, for as long as something comes. */
static void client_take(struct test_client *client, int patience_ms)
{
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};
    while (poll(&readable, 1, patience_ms) == 1) {
        uint8_t bytes[4096];
        ssize_t got = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got <= 0 || nghttp2_session_mem_recv(client->session, bytes, (size_t)got) < 0) {
            return;
        }
        client_flush(client);
    }
}

/* Of a message whose sender is asked for no more than the first window comes, and all of it after. */
START_TEST(a_message_waits_until_its_sender_is_known)
{
    struct test_client client, other;
    static char big[(1 << 20) + 5] = {0, 0, 0x10, 0, 0}, small[5];
    client_open(&client, weir_grpc_server_port(server));
    client_open(&other, weir_grpc_server_port(server));
    for (int round = 0; round < 3; round++) {
        client_begin(&client, "/ask", NULL, big, sizeof big);
        struct weir_grpc_call *call = wait_for(&asked);
        ck_assert_int_eq(client_call(&other, "/echo", NULL, "x", 1),
                         0); /* it read the first, too */
        client_take(&client, 20);
        ck_assert_uint_le(client.n_sent, 65535);
        if (round == 1) {
            weir_grpc_answer(call, WEIR_GRPC_UNAUTHENTICATED, "nobody", NULL);
            ck_assert_int_eq(client_finish(&client), WEIR_GRPC_UNAUTHENTICATED);
        } else {
            weir_grpc_admit(call);
            ck_assert_int_eq(client_finish(&client), WEIR_GRPC_OK);
            ck_assert_uint_eq(client.body.len, sizeof big);
        }
    }
    client_begin(&client, "/ask", NULL, small, 5); /* whole before it is let in */
    struct weir_grpc_call *call = wait_for(&asked);
    ck_assert_int_eq(client_call(&other, "/echo", NULL, "x", 1), 0);
    ck_assert_int_eq(n_calls, 6);
    weir_grpc_admit(call);
    ck_assert_int_eq(client_finish(&client), WEIR_GRPC_OK);
    client_begin(&client, "/ask", NULL, small, 5); /* and who leaves before is let in by nobody */
    call = wait_for(&asked);
    client_close(&client);
    weir_grpc_admit(call);
    ck_assert_int_eq(client_call(&other, "/echo", NULL, "x", 1), 0);
    client_close(&other);
}

END_TEST

/* The client's side stays open: it sends nothing, or goes on. */
START_TEST(what_is_refused_is_refused_by_its_headers)
{
    struct test_client client;
    const char *const compressed[] = {"grpc-encoding", "gzip", NULL};
    client_open(&client, weir_grpc_server_port(server));
    client.stays_open = true;
    client_begin(&client, "/stranger", NULL, "", 0);
    ck_assert_int_eq(client_finish(&client), WEIR_GRPC_UNAUTHENTICATED);
    ck_assert_str_eq(client.text, "who are you?");
    client.stays_open = false;
    static char large[20000];
    ck_assert_int_eq(client_call(&client, "/open", NULL, large, 16000), WEIR_GRPC_OK);
    ck_assert_int_eq(client_call(&client, "/open", NULL, large, 20000),
                     WEIR_GRPC_RESOURCE_EXHAUSTED);
    client.stays_open = true;
    client_begin(&client, "/echo", compressed, "\1\0\0\1\0", 5);
    ck_assert_int_eq(client_finish(&client), WEIR_GRPC_UNIMPLEMENTED);
    client_close(&client);
}

END_TEST

/* Strangers hold every place; who comes then gets one, and those who are known keep theirs. */
START_TEST(strangers_give_way)
{
    struct test_client known, strangers[7], late;
    client_open(&known, weir_grpc_server_port(server));
    ck_assert_int_eq(client_call(&known, "/echo", NULL, "x", 1), 0);
    for (int i = 0; i < 7; i++) {
        client_open(&strangers[i], weir_grpc_server_port(server));
        strangers[i].stays_open = true;
        if (i % 2 == 0) {
            client_begin(&strangers[i], "/stranger", NULL, "", 0);
            ck_assert_int_eq(client_finish(&strangers[i]), WEIR_GRPC_UNAUTHENTICATED);
        }
    }
    client_open(&late, weir_grpc_server_port(server));
    ck_assert_int_eq(client_call(&late, "/echo", NULL, "x", 1), 0);
    ck_assert_int_eq(client_call(&known, "/echo", NULL, "x", 1), 0);
    client_close(&known);
    client_close(&late);
    for (int i = 0; i < 7; i++) {
        client_close(&strangers[i]);
    }
}

END_TEST

/* Random senders of the same server, whose time the test drives: who sends 4 KiB a second is served, who is
 * slower is ended between one window and two, and nothing stays held. */
START_TEST(a_slow_message_ends)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < 12; round++) {
        struct weir_grpc_server own;
        struct test_client client;
        int fds[2];
        bool is_slow = round % 2 == 0;
        size_t rate = is_slow ? weir_rng_below(&rng, 4000) : 4200 + weir_rng_below(&rng, 4000);
        static char message[(1 << 20) + 5] = {0, 0, 0x10, 0, 0};
        grpc_server_init(&own, &(struct weir_grpc_config){0}, handle, NULL);
        ck_assert_int_eq(grpc_session_make_callbacks(&own), WEIR_OK);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
                         0);
        own.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        own.now_ms = 1000;
        struct connection *connection = grpc_connection_open(&own, fds[0], NULL);
        client_of(&client, fds[1]);
        client.paced = true;
        client_begin(&client, "/keep", NULL, message, sizeof message);
        int64_t ended_ms = 0;
        for (int second = 0; second < 70 && ended_ms == 0; second++) {
            client.may_send = rate;
            (void)nghttp2_session_resume_data(client.session, 1);
            client_flush(&client);
            uint8_t bytes[65536];
            ssize_t got = recv(fds[0], bytes, sizeof bytes, 0);
            ck_assert(got <= 0 || grpc_session_take(connection, bytes, (size_t)got));
            own.now_ms += 1000;
            grpc_server_look_after(&own);
            client_take(&client, 0);
            ended_ms = client.is_closed ? own.now_ms : 0;
        }
        ck_assert_msg((ended_ms != 0) == is_slow, "%zu bytes/s: ended after %lld ms", rate,
                      (long long)ended_ms);
        ck_assert_int_eq(client.code, is_slow ? WEIR_GRPC_DEADLINE_EXCEEDED : -1);
        grpc_connection_close(connection);
        grpc_connections_free_closed(&own);
        ck_assert_uint_eq(own.peers.held.n_bytes, 0);
        grpc_server_fini(&own);
        client_close(&client);
    }
}

END_TEST

START_TEST(more_than_may_be_held_is_refused_and_given_back)
{
    struct test_client clients[2];
    static char big[(7 << 20)];
    client_open(&clients[0], weir_grpc_server_port(server));
    client_open(&clients[1], weir_grpc_server_port(server));
    for (int round = 0; round < 2; round++) {
        const unsigned char prefix[] = {0, 0, 0x6f, 0xff, 0xfb}; /* 7 MiB - 5 */
        memcpy(big, prefix, 5);
        client_begin(&clients[0], "/keep", NULL, big, sizeof big);
        struct weir_grpc_call *call = NULL;
        int64_t give_up_ms = weir_mono_ms() + 20000;
        while ((call = atomic_exchange(&kept, NULL)) == NULL) { /* windows open as it reads */
            uint8_t bytes[4096];
            ck_assert_int_lt(weir_mono_ms(), give_up_ms);
            ssize_t got = recv(clients[0].fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (got > 0) {
                (void)nghttp2_session_mem_recv(clients[0].session, bytes, (size_t)got);
            }
            client_flush(&clients[0]);
        }
        client_begin(&clients[1], "/echo", NULL, big, sizeof big);
        ck_assert_int_eq(client_finish(&clients[1]), WEIR_GRPC_RESOURCE_EXHAUSTED);
        weir_grpc_answer(call, WEIR_GRPC_OK, "", NULL);
        ck_assert_int_eq(client_finish(&clients[0]), WEIR_GRPC_OK);
    }
    client_close(&clients[0]);
    client_close(&clients[1]);
}

END_TEST

START_TEST(a_deadline_that_passes_ends_the_call_for_both)
{
    struct test_client client;
    const char *const timeout[] = {"grpc-timeout", "50m", NULL};
    client_open(&client, weir_grpc_server_port(server));
    ck_assert_int_eq(client_call(&client, "/keep", timeout, "", 0), WEIR_GRPC_DEADLINE_EXCEEDED);
    struct weir_grpc_call *call = wait_kept();
    ck_assert(weir_grpc_call_is_gone(call));
    echo(call); /* dropped */
    ck_assert_int_eq(client_call(&client, "/echo", timeout, "x", 1), 0);
    client_close(&client);
}

END_TEST

START_TEST(who_has_the_call_sees_that_the_client_left)
{
    struct test_client client;
    client_open(&client, weir_grpc_server_port(server));
    client_begin(&client, "/keep", NULL, "\0\0\0\0\0", 5);
    struct weir_grpc_call *call = wait_kept();
    ck_assert(!weir_grpc_call_is_gone(call));
    client_close(&client);
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (!weir_grpc_call_is_gone(call)) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
    }
    echo(call);
}

END_TEST

START_TEST(it_stops_with_calls_that_are_out)
{
    struct test_client client;
    client_open(&client, weir_grpc_server_port(server));
    client_begin(&client, "/keep", NULL, "\0\0\0\0\0", 5);
    struct weir_grpc_call *call = wait_kept();
    pthread_t thread;
    pthread_create(&thread, NULL, echo_later, call);
    weir_grpc_server_stop(server);
    pthread_join(thread, NULL);
    server = NULL;
    client_close(&client);
}

END_TEST

/* What the server sends until it closes; false: it does not within 20 s. */
static bool is_closed_by_server(int fd)
{
    char bytes[4096];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
}

START_TEST(floods_close_the_connection)
{
    struct test_client client;
    client_open(&client, weir_grpc_server_port(server));
    const uint8_t priority[] = {0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 3, 16};
    for (int i = 0; i < 20000; i++) { /* frames that bring nothing on */
        if (send(client.fd, priority, sizeof priority, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    ck_assert(is_closed_by_server(client.fd));
    client_close(&client);
    client_open(&client, weir_grpc_server_port(server));
    for (int i = 0; i < 5000; i++) { /* rapid resets */
        client_begin(&client, "/echo", NULL, "\0\0\0\0\0", 5);
        (void)nghttp2_submit_rst_stream(client.session, 0, 2 * i + 1, NGHTTP2_CANCEL);
        client_flush(&client);
    }
    ck_assert(is_closed_by_server(client.fd));
    client_close(&client);
    client_open(&client, weir_grpc_server_port(server));
    ck_assert_int_eq(client_call(&client, "/echo", NULL, "x", 1), 0);
    client_close(&client);
}

END_TEST

START_TEST(what_is_no_http2_and_one_too_many_are_closed)
{
    struct test_client clients[8], other;
    client_open(&other, weir_grpc_server_port(server));
    ck_assert_int_gt(send(other.fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
    ck_assert(is_closed_by_server(other.fd));
    client_close(&other);
    for (int i = 0; i < 8; i++) {
        client_open(&clients[i], weir_grpc_server_port(server));
        ck_assert_int_eq(client_call(&clients[i], "/echo", NULL, "x", 1), 0);
    }
    client_open(&other, weir_grpc_server_port(server));
    ck_assert(is_closed_by_server(other.fd));
    client_close(&other);
    for (int i = 0; i < 8; i++) {
        client_close(&clients[i]);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("grpc", set_up, tear_down, a_message_waits_until_its_sender_is_known,
                    what_is_refused_is_refused_by_its_headers, strangers_give_way,
                    a_slow_message_ends, messages_of_every_size_come_back,
                    errors_come_with_their_code_and_sentence,
                    more_than_may_be_held_is_refused_and_given_back,
                    a_deadline_that_passes_ends_the_call_for_both,
                    who_has_the_call_sees_that_the_client_left, it_stops_with_calls_that_are_out,
                    floods_close_the_connection, what_is_no_http2_and_one_too_many_are_closed)
