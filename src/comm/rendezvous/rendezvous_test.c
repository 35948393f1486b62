/* The rendezvous itself, with ranks as threads: who is let in, who is not, and what is left behind. */
#include "comm/rendezvous/rendezvous.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"
#include "comm/rendezvous/address.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static char dir[64];
static char url[128];

struct rank {
    struct weir_comm_config config;
    int join_ms;
    pthread_t thread;
    weir_status status;
    struct weir_error err;
    struct rendezvous *rdv;
};

static void setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/weir-rendezvous-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "file://%s", dir);
}

static void teardown(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static struct rank make_rank(int rank, int size)
{
    return (struct rank){
        .config = {.rendezvous = url, .secret = "open sesame", .rank = rank, .size = size},
        .join_ms = 30000};
}

static uint64_t in_ms(int ms)
{
    return weir_mono_ns() + (uint64_t)ms * 1000000;
}

static void *join_main(void *argument)
{
    struct rank *rank = argument;
    rank->status = rendezvous_join(&rank->config, in_ms(rank->join_ms), &rank->rdv, &rank->err);
    return NULL;
}

static void start(struct rank *rank)
{
    ck_assert_int_eq(pthread_create(&rank->thread, NULL, join_main, rank), 0);
}

static void finish(struct rank *rank)
{
    ck_assert_int_eq(pthread_join(rank->thread, NULL), 0);
}

static void join_here(struct rank *rank)
{
    (void)join_main(rank);
}

/* ---- rendezvous and exchange ---------------------------------------------------------------- */

struct exchange {
    struct rendezvous *rdv;
    int rank, size;
    pthread_t thread;
    weir_status status;
    struct weir_error err;
    bool is_right;
};

/* Rank r gives r copies of its number: rank 0 gives nothing. */
static void *exchange_main(void *argument)
{
    struct exchange *exchange = argument;
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    uint8_t own[WEIR_COMM_MAX_RANKS];
    memset(own, exchange->rank, sizeof own);
    exchange->is_right = true;
    for (int round = 0; round < 3 && exchange->status == WEIR_OK; round++) {
        exchange->status =
            rendezvous_exchange(exchange->rdv, own, (size_t)exchange->rank, table, &exchange->err);
        for (int r = 0; r < exchange->size && exchange->status == WEIR_OK; r++) {
            uint8_t theirs[WEIR_COMM_MAX_RANKS];
            memset(theirs, r, sizeof theirs);
            exchange->is_right = exchange->is_right && table[r].len == (size_t)r &&
                                 memcmp(table[r].data, theirs, (size_t)r) == 0;
        }
    }
    return NULL;
}

static void start_exchange(struct exchange *exchange, const struct rank *rank)
{
    *exchange =
        (struct exchange){.rdv = rank->rdv, .rank = rank->config.rank, .size = rank->config.size};
    ck_assert_int_eq(pthread_create(&exchange->thread, NULL, exchange_main, exchange), 0);
}

static void meet_and_exchange(const char *where, int size)
{
    struct rank ranks[8];
    struct exchange exchanges[8];
    for (int r = size - 1; r >= 0; r--) { /* rank 0 last: the others have to wait for it */
        ranks[r] = make_rank(r, size);
        ranks[r].config.rendezvous = where;
        start(&ranks[r]);
    }
    for (int r = 0; r < size; r++) {
        finish(&ranks[r]);
        ck_assert_msg(ranks[r].status == WEIR_OK, "rank %d: %s", r, ranks[r].err.message);
    }
    for (int r = 0; r < size; r++) {
        start_exchange(&exchanges[r], &ranks[r]);
    }
    for (int r = 0; r < size; r++) {
        ck_assert_int_eq(pthread_join(exchanges[r].thread, NULL), 0);
        ck_assert_int_eq(exchanges[r].status, WEIR_OK);
        ck_assert(exchanges[r].is_right);
    }
    for (int r = 0; r < size; r++) {
        rendezvous_close(ranks[r].rdv);
    }
}

START_TEST(ranks_meet_by_a_folder_and_leave_no_file_in_it)
{
    meet_and_exchange(url, 5);
    ck_assert_int_eq(rmdir(dir), 0); /* refuses unless empty */
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
}

END_TEST

/* A port that was free a moment ago. */
static int free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

START_TEST(ranks_meet_at_an_address)
{
    char where[64];
    (void)snprintf(where, sizeof where, "tcp://127.0.0.1:%d", free_port());
    meet_and_exchange(where, 3);
}

END_TEST

/* ---- who is not let in ---------------------------------------------------------------------- */

START_TEST(a_wrong_secret_is_refused_and_the_right_rank_still_gets_in)
{
    struct rank server = make_rank(0, 2), impostor = make_rank(1, 2), client = make_rank(1, 2);
    impostor.config.secret = "open barley";
    start(&server);
    join_here(&impostor);
    ck_assert_int_eq(impostor.status, WEIR_ERR_UNAUTH);
    ck_assert_ptr_nonnull(strstr(impostor.err.message, "secret"));
    join_here(&client);
    ck_assert_int_eq(client.status, WEIR_OK);
    finish(&server);
    ck_assert_int_eq(server.status, WEIR_OK);
    rendezvous_close(client.rdv);
    rendezvous_close(server.rdv);
}

END_TEST

START_TEST(rank_0_names_who_is_missing_and_counts_the_refused)
{
    struct rank server = make_rank(0, 3), impostor = make_rank(1, 3);
    server.join_ms = 1500;
    impostor.config.secret = "open barley";
    start(&server);
    join_here(&impostor);
    finish(&server);
    ck_assert_int_eq(impostor.status, WEIR_ERR_UNAUTH);
    ck_assert_int_eq(server.status, WEIR_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(server.err.message, ": 1 2 "));
    ck_assert_ptr_nonnull(strstr(server.err.message, "refused: 1"));
    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
}

END_TEST

START_TEST(ranks_that_disagree_on_the_group_are_refused_with_the_reason)
{
    char where[64];
    (void)snprintf(where, sizeof where, "tcp://127.0.0.1:%d", free_port());
    struct rank server = make_rank(0, 2),
                wrong[4] = {make_rank(1, 3), make_rank(1, 2), make_rank(1, 2), make_rank(1, 2)};
    static const char *const reasons[] = {"3 ranks", "1 servers", "attempt 1", "job \"job\""};
    wrong[1].config.n_servers = 1;
    wrong[2].config.attempt = 1;
    wrong[3].config.job_id = "other";
    server.config.rendezvous = where;
    server.join_ms = 3000;
    start(&server);
    for (int i = 0; i < 4; i++) {
        wrong[i].config.rendezvous = where;
        join_here(&wrong[i]);
        ck_assert_int_eq(wrong[i].status, WEIR_ERR_INVALID);
        ck_assert_msg(strstr(wrong[i].err.message, reasons[i]) != NULL, "%s", wrong[i].err.message);
    }
    struct rank client = make_rank(1, 2);
    client.config.rendezvous = where;
    join_here(&client);
    finish(&server);
    ck_assert_int_eq(server.status, WEIR_OK);
    rendezvous_close(server.rdv);
    rendezvous_close(client.rdv);
}

END_TEST

START_TEST(peers_that_send_nothing_or_nonsense_do_not_keep_the_ranks_out)
{
    int port = free_port(), fds[100];
    char where[64];
    (void)snprintf(where, sizeof where, "tcp://127.0.0.1:%d", port);
    struct rank server = make_rank(0, 2), client = make_rank(1, 2);
    server.config.rendezvous = client.config.rendezvous = where;
    start(&server);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)port)};
    for (int i = 0; i < 100; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(fds[i], (struct sockaddr *)&address, sizeof address) != 0) {
            (void)close(fds[i]); /* rank 0 is not listening yet */
            fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        }
        if (i % 2 == 0) {
            (void)send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        }
    }
    join_here(&client);
    finish(&server);
    ck_assert_int_eq(client.status, WEIR_OK);
    ck_assert_int_eq(server.status, WEIR_OK);
    for (int i = 0; i < 100; i++) {
        (void)close(fds[i]);
    }
    rendezvous_close(client.rdv);
    rendezvous_close(server.rdv);
}

END_TEST

/* ---- files of earlier attempts -------------------------------------------------------------- */

/* Leave a file as a killed rank 0 would; its port is `port` now. */
static void write_stale_file(int port)
{
    struct weir_buf text;
    char path[128];
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    struct address_notice notice = {.n_addresses = 1};
    memset(notice.instance, 0x11, sizeof notice.instance);
    address_boot_id(notice.boot_id);
    (void)snprintf(notice.addresses[0], ADDRESS_TEXT_BYTES, "127.0.0.1:%d", port);
    address_notice_write(&notice, &text);
    (void)snprintf(path, sizeof path, "%s/rendezvous-job-0", dir);
    ck_assert_int_eq(weir_file_write_atomic(path, text.data, text.len, 0600, NULL), WEIR_OK);
    weir_buf_fini(&text);
}

START_TEST(a_file_whose_writer_is_gone_is_not_believed)
{
    /* Its port is closed, or (worse) belongs to another job's rank 0 now. */
    char where[64];
    int port = free_port();
    (void)snprintf(where, sizeof where, "tcp://127.0.0.1:%d", port);
    struct rank other_job = make_rank(0, 2), early = make_rank(1, 2);
    other_job.config.rendezvous = where;
    other_job.config.secret = "another secret";
    other_job.join_ms = 3000;
    early.join_ms = 300;
    write_stale_file(port);
    join_here(&early);
    ck_assert_int_eq(early.status, WEIR_ERR_TIMEOUT);
    start(&other_job);
    early.join_ms = 600;
    join_here(&early);
    ck_assert_int_eq(early.status, WEIR_ERR_TIMEOUT);
    struct rank server = make_rank(0, 2), client = make_rank(1, 2);
    start(&client); /* finds the stale file first */
    start(&server);
    finish(&client);
    finish(&server);
    ck_assert_msg(client.status == WEIR_OK, "%s", client.err.message);
    ck_assert_int_eq(server.status, WEIR_OK);
    finish(&other_job);
    ck_assert_int_eq(other_job.status, WEIR_ERR_TIMEOUT);
    rendezvous_close(client.rdv);
    rendezvous_close(server.rdv);
}

END_TEST

/* ---- losses in a rendezvous ----------------------------------------------------------------- */

START_TEST(a_rank_lost_after_joining_is_named_to_all)
{
    struct rank ranks[3];
    struct exchange exchanges[3];
    for (int r = 0; r < 3; r++) {
        ranks[r] = make_rank(r, 3);
        start(&ranks[r]);
    }
    for (int r = 0; r < 3; r++) {
        finish(&ranks[r]);
        ck_assert_int_eq(ranks[r].status, WEIR_OK);
    }
    rendezvous_close(ranks[1].rdv);
    start_exchange(&exchanges[0], &ranks[0]);
    start_exchange(&exchanges[2], &ranks[2]);
    for (int r = 0; r < 3; r += 2) {
        ck_assert_int_eq(pthread_join(exchanges[r].thread, NULL), 0);
        ck_assert_int_eq(exchanges[r].status, WEIR_ERR_PEER);
        ck_assert_ptr_nonnull(strstr(exchanges[r].err.message, "rank 1"));
        rendezvous_close(ranks[r].rdv);
    }
}

END_TEST

START_TEST(a_bad_rendezvous_is_refused_before_anything_happens)
{
    static const char *const bad[] = {"",           "/tmp",        "file://relative",
                                      "tcp://host", "tcp://host:", "http://host:1"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        struct rank rank = make_rank(0, 2);
        rank.config.rendezvous = bad[i];
        join_here(&rank);
        ck_assert_int_eq(rank.status, WEIR_ERR_INVALID);
    }
    struct rank rank = make_rank(0, 2);
    rank.config.job_id = "../escape";
    join_here(&rank);
    ck_assert_int_eq(rank.status, WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN_WITH("rendezvous", setup, teardown, ranks_meet_by_a_folder_and_leave_no_file_in_it,
                    ranks_meet_at_an_address,
                    a_wrong_secret_is_refused_and_the_right_rank_still_gets_in,
                    rank_0_names_who_is_missing_and_counts_the_refused,
                    ranks_that_disagree_on_the_group_are_refused_with_the_reason,
                    peers_that_send_nothing_or_nonsense_do_not_keep_the_ranks_out,
                    a_file_whose_writer_is_gone_is_not_believed,
                    a_rank_lost_after_joining_is_named_to_all,
                    a_bad_rendezvous_is_refused_before_anything_happens)
