/**
 * Classes of requests. Law: however many requests of one class wait, and however long its handlers take, requests of each
 * other class are answered, up to as many at once as its own queue holds; and none is lost.
 */
#include "http/test_support.h"

#include "base/rng.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define N_ROUNDS   WEIR_TEST_TIMES(12, 4)
#define N_CLASSES  3
#define N_HANDLERS 6
#define N_QUEUED   5
#define N_FLOOD    24
#define N_OTHERS   (N_QUEUED * (N_CLASSES - 1))

struct hold {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int held_class; /* Its handlers wait; -1: none do. Under lock, as is the next. */
    int n_held;
};

static struct hold hold = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, -1, 0};

static int class_named(const struct weir_http_request *request)
{
    return request->n_segments > 0 ? request->segments[0][0] - '0' : 0;
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *out)
{
    (void)context;
    out->of_class = class_named(request);
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    pthread_mutex_lock(&hold.lock);
    hold.n_held++;
    pthread_cond_broadcast(&hold.changed);
    while (hold.held_class == class_named(request)) {
        pthread_cond_wait(&hold.changed, &hold.lock);
    }
    hold.n_held--;
    pthread_mutex_unlock(&hold.lock);
    weir_http_response_text(response, 200, "text/plain", "done");
}

static int ask_of_class(const struct weir_http_server *server, int of_class)
{
    char text[96];
    int fd = connect_to(server);
    (void)snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   of_class);
    send_text(fd, text);
    return fd;
}

/* @return Whether it was done; else it must have been refused because the queue was full. */
static bool take_answer(int fd)
{
    char answer[1024];
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    bool is_done = strncmp(answer, "HTTP/1.1 200", 12) == 0;
    ck_assert_msg(is_done || strstr(answer, "requests are waiting; try again") != NULL, "%s",
                  answer);
    return is_done;
}

/* All handlers that the class may have are taken, and its queue is full or holds all that is left. */
static void await_flood(struct weir_http_server *server, int n_asked)
{
    struct weir_http_counts counts;
    pthread_mutex_lock(&hold.lock);
    while (hold.n_held < WEIR_MIN(n_asked, N_HANDLERS - N_CLASSES + 1)) {
        pthread_cond_wait(&hold.changed, &hold.lock);
    }
    pthread_mutex_unlock(&hold.lock);
    int64_t n_seen;
    do {
        sched_yield();
        weir_http_server_counts(server, &counts);
        n_seen = counts.n_requests + counts.n_refused_queue_full;
    } while (n_seen < n_asked);
}

static void play_round(struct weir_rng *rng, int round)
{
    int flood[N_FLOOD], others[N_OTHERS], n_refused = 0, n_others = 0;
    const struct weir_http_config config = {.n_handlers = N_HANDLERS,
                                            .n_classes = N_CLASSES,
                                            .max_queued = N_QUEUED,
                                            .body_rule = rule};
    struct weir_http_server *server = serve(&config, handle, NULL);
    int held = (int)weir_rng_below(rng, N_CLASSES);
    int n_flood = 1 + (int)weir_rng_below(rng, N_FLOOD);
    hold.held_class = held;
    for (int i = 0; i < n_flood; i++) {
        flood[i] = ask_of_class(server, held);
    }
    await_flood(server, n_flood);
    for (int i = 0; i < N_QUEUED; i++) { /* at once, as many of each as its queue holds */
        for (int of_class = 0; of_class < N_CLASSES; of_class++) {
            if (of_class != held) {
                others[n_others++] = ask_of_class(server, of_class);
            }
        }
    }
    for (int i = 0; i < n_others; i++) {
        ck_assert_msg(take_answer(others[i]), "seed %d, round %d: another class was refused", 1,
                      round);
    }
    pthread_mutex_lock(&hold.lock);
    hold.held_class = -1;
    pthread_cond_broadcast(&hold.changed);
    pthread_mutex_unlock(&hold.lock);
    for (int i = 0; i < n_flood; i++) {
        n_refused += !take_answer(flood[i]);
    }
    ck_assert_msg(n_refused <= WEIR_MAX(n_flood - N_QUEUED, 0), "seed %d, round %d: %d of %d", 1,
                  round, n_refused, n_flood);
    weir_http_server_stop(server, 1000);
}

START_TEST(a_wave_of_one_class_neither_refuses_nor_holds_up_the_others)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    for (int round = 0; round < N_ROUNDS; round++) {
        play_round(&rng, round);
    }
}

END_TEST

WEIR_TEST_MAIN("class", a_wave_of_one_class_neither_refuses_nor_holds_up_the_others)
