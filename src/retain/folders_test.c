#include "retain/retain_fixture.h"

#include "retain/retain_private.h"

#include "base/uuid.h"

#include <string.h>
#include <unistd.h>

#define JOB "01890000-0000-7000-8000-00000000000"

static bool has(const char *path)
{
    return weir_path_exists(in_state("%s", path));
}

START_TEST(checkpoints_stay_until_the_training_is_over)
{
    add_job("runs", "train", "RUNNING", 0);
    add_job("restarts", "train", "RESTARTING", 0);
    add_job("made", "train", "SUCCEEDED", NOON_MS);
    add_job("failed", "train", "FAILED", NOON_MS);
    for (size_t i = 0; i < 4; i++) {
        const char *const jobs[] = {"runs", "restarts", "made", "failed"};
        add_file(in_state("checkpoints/%s/1/weights", jobs[i]), 5000, NOON_MS - 90 * DAY_MS);
    }
    sweep_round();
    ck_assert(has("checkpoints/made/1/weights"));
    now_ms = NOON_MS + HOUR_MS;
    sweep_round();
    ck_assert(!has("checkpoints/made"));
    ck_assert(has("checkpoints/failed/1/weights"));
    now_ms = NOON_MS + 7 * DAY_MS - 1;
    sweep_round();
    ck_assert(has("checkpoints/failed/1/weights"));
    now_ms++;
    sweep_round();
    ck_assert(!has("checkpoints/failed"));
    ck_assert(has("checkpoints/runs/1/weights"));
    ck_assert(has("checkpoints/restarts/1/weights"));
}

END_TEST

START_TEST(beyond_their_size_the_checkpoints_that_ended_first_go)
{
    add_job("a", "train", "FAILED", NOON_MS - 2000);
    add_job("b", "train", "CANCELLED", NOON_MS - 1000);
    add_job("c", "train", "RUNNING", 0);
    add_file(in_state("checkpoints/a/w"), 400000, NOON_MS);
    add_file(in_state("checkpoints/b/w"), 400000, NOON_MS);
    add_file(in_state("checkpoints/c/w"), 400000, NOON_MS);
    retain("checkpoints", "1MB");
    sweep_round();
    ck_assert(!has("checkpoints/a"));
    ck_assert(has("checkpoints/b/w"));
    retain("checkpoints", "0B");
    sweep_round();
    ck_assert(has("checkpoints/b/w")); /* the last that ended: it may be tried again */
    ck_assert(has("checkpoints/c/w")); /* needed, whatever the bound */
    now_ms = NOON_MS + 8 * DAY_MS;
    sweep_round();
    ck_assert(!has("checkpoints/b"));
    ck_assert(has("checkpoints/c/w"));
}

END_TEST

/* What an earlier server was deleting goes with the first round, and what this one is deleting stays its own. */
START_TEST(a_dataset_that_was_being_deleted_goes)
{
    add_file(in_state("datasets/" WEIR_RETAIN_GONE "1-d/cat/1.jpg"), 10, NOON_MS);
    add_file(in_state("datasets/d/cat/1.jpg"), 10, NOON_MS);
    retainer->since_ms = INT64_MIN;
    sweep_round();
    ck_assert(has("datasets/" WEIR_RETAIN_GONE "1-d/cat/1.jpg"));
    retainer->since_ms = weir_time_ms();
    sweep_round();
    ck_assert(!has("datasets/" WEIR_RETAIN_GONE "1-d"));
    ck_assert(has("datasets/d/cat/1.jpg"));
}

END_TEST

START_TEST(kept_for_ever_means_for_ever)
{
    add_job("made", "train", "SUCCEEDED", NOON_MS);
    add_file(in_state("checkpoints/made/w"), 10, NOON_MS);
    retain("checkpoints", "forever,unbounded");
    now_ms = NOON_MS + 9999 * DAY_MS;
    sweep_round();
    ck_assert(has("checkpoints/made/w"));
}

END_TEST

START_TEST(a_folder_of_no_known_job_is_left_for_an_hour)
{
    add_file(in_state("rendezvous/nobody/address"), 10, NOON_MS);
    now_ms = NOON_MS + HOUR_MS - 1000;
    sweep_round();
    ck_assert(has("rendezvous/nobody/address"));
    now_ms = NOON_MS + HOUR_MS;
    sweep_round();
    ck_assert(!has("rendezvous/nobody"));
}

END_TEST

/* What a kill between the renaming and the last unlink leaves. */
START_TEST(a_removal_that_was_cut_short_is_ended)
{
    add_file(in_state("checkpoints/x.removed/half"), 10, NOON_MS);
    retain("checkpoints", "forever,unbounded");
    sweep_round();
    ck_assert(!has("checkpoints/x.removed"));
}

END_TEST

START_TEST(a_link_is_removed_and_not_what_it_points_to)
{
    add_job("over", "train", "FAILED", NOON_MS);
    add_file(in_state("precious/data"), 10, NOON_MS);
    add_file(in_state("checkpoints/over/w"), 10, NOON_MS);
    ck_assert_int_eq(symlink(in_state("precious"), in_state("checkpoints/over/link")), 0);
    retain("checkpoints", "0s");
    sweep_round();
    ck_assert(!has("checkpoints/over"));
    ck_assert(has("precious/data"));
}

END_TEST

static void add_outbox(const char *folder, const char *server, const char *sink)
{
    add_file(in_state("replicas/%s/cache/model-x", folder), 10, NOON_MS);
    add_file(in_state("replicas/%s/outbox/0000000000001000.log", folder), 0x234, NOON_MS);
    if (server != NULL) {
        ck_assert_int_eq(weir_file_write(in_state("replicas/%s/outbox/server.position", folder),
                                         server, strlen(server), 0600, NULL),
                         WEIR_OK);
    }
    if (sink != NULL) {
        ck_assert_int_eq(weir_file_write(in_state("replicas/%s/outbox/jsonl-1.position", folder),
                                         sink, strlen(sink), 0600, NULL),
                         WEIR_OK);
    }
}

/* 0x1000 + 0x234 = 4660: the end of the log. */
START_TEST(a_replica_s_folder_stays_until_every_decision_was_shipped)
{
    for (int i = 0; i < 6; i++) {
        char id[64];
        (void)snprintf(id, sizeof id, JOB "%d", i);
        add_job(id, "predict", i == 5 ? "RUNNING" : "CANCELLED", i == 5 ? 0 : NOON_MS);
    }
    add_outbox(JOB "0-0", "4660 0\n", NULL);
    add_outbox(JOB "1-0", "4659 0\n", NULL);
    add_outbox(JOB "2-0", "4660 0\n", "100 5\n");
    add_outbox(JOB "3-0", NULL, NULL);
    add_file(in_state("replicas/" JOB "4-1/cache/x"), 10, NOON_MS); /* never had an outbox */
    add_outbox(JOB "5-0", "4660 0\n", NULL);
    now_ms = NOON_MS + 29 * DAY_MS;
    retain("replicas", "0B");
    sweep_round();
    ck_assert(!has("replicas/" JOB "0-0"));
    ck_assert(has("replicas/" JOB "1-0/outbox/0000000000001000.log"));
    ck_assert(has("replicas/" JOB "2-0/outbox/0000000000001000.log"));
    ck_assert(has("replicas/" JOB "3-0/outbox/0000000000001000.log"));
    ck_assert(!has("replicas/" JOB "4-1"));
    ck_assert(has("replicas/" JOB "5-0"));
}

END_TEST

static int64_t n_open_alerts(void)
{
    return ask("SELECT count(*) FROM alerts WHERE kind = 'decisions_left' AND state <> 'resolved'");
}

/* The outbox of a replica whose job is over: a segment, and no reader has come to its end. */
static void leave_decisions(const char *job, size_t n_bytes)
{
    add_job(job, "predict", "CANCELLED", NOON_MS);
    add_file(in_state("replicas/%s-0/outbox/0000000000000000.log", job), n_bytes, NOON_MS);
}

START_TEST(decisions_that_nobody_ships_are_kept_as_long_as_decisions_and_told)
{
    leave_decisions("left", 5000);
    retain("replicas", "1d,1kB");
    now_ms = NOON_MS + 60000; /* its replica may still be shipping */
    sweep_round();
    ck_assert_int_eq(n_open_alerts(), 0);
    now_ms = NOON_MS + HOUR_MS;
    sweep_round();
    sweep_round();
    ck_assert_int_eq(n_open_alerts(), 1);
    now_ms = NOON_MS + 30 * DAY_MS - 1;
    sweep_round();
    ck_assert(has("replicas/left-0"));
    ck_assert_int_eq(n_open_alerts(), 1);
    now_ms++;
    sweep_round();
    ck_assert(!has("replicas/left-0"));
    ck_assert_int_eq(n_open_alerts(), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE kind = 'decisions_lost'"), 1);
}

END_TEST

START_TEST(decisions_that_nobody_ships_have_the_bound_of_decisions)
{
    leave_decisions("a", 300000);
    leave_decisions("b", 300000);
    retain("decisions", "forever,500kB");
    now_ms = NOON_MS + HOUR_MS;
    sweep_round();
    ck_assert(!has("replicas/a-0"));
    ck_assert(has("replicas/b-0"));
    ck_assert_int_eq(n_open_alerts(), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE kind = 'decisions_lost'"), 1);
    ck_assert_int_eq(weir_dir_remove(in_state("replicas/b-0"), NULL), WEIR_OK);
    sweep_round();
    ck_assert_int_eq(n_open_alerts(), 0);
}

END_TEST

START_TEST(logs_of_attempts_that_are_over_go_by_age_and_size)
{
    add_job("j", "command", "RUNNING", 0);
    add_task("t", "j", 3);
    add_file(in_state("logs/t.2.log"), 4000, NOON_MS - 31 * DAY_MS);
    add_file(in_state("logs/t.3.log"), 4000, NOON_MS - 31 * DAY_MS); /* says little, runs on */
    add_file(in_state("logs/gone.1.log"), 4000, NOON_MS - 29 * DAY_MS);
    sweep_round();
    ck_assert(!has("logs/t.2.log"));
    ck_assert(has("logs/t.3.log"));
    ck_assert(has("logs/gone.1.log"));
    add_file(in_state("logs/new.1.log"), 4000, NOON_MS - 1000);
    retain("logs", "0B");
    sweep_round();
    ck_assert(!has("logs/gone.1.log"));
    ck_assert(has("logs/new.1.log")); /* the agent may still be sending */
    sql("UPDATE jobs SET state = 'SUCCEEDED', finished_ms = 1");
    now_ms = NOON_MS + HOUR_MS;
    sweep_round();
    ck_assert(!has("logs/new.1.log"));
    ck_assert(!has("logs/t.3.log"));
}

END_TEST

/* Packs of 20 kB: as many as the limit has room for, and the current one is written on. */
START_TEST(packs_of_pictures_go_oldest_first_and_the_next_picture_is_put)
{
    static const char bytes[2000];
    struct weir_pack_place places[100];
    char ids[100][WEIR_UUID_BYTES], *data;
    size_t len;
    int n_left = 0;
    for (int i = 0; i < 100; i++) {
        weir_uuid_make(ids[i]);
        ck_assert_int_eq(weir_packs_append(pictures, ids[i], bytes, sizeof bytes, &places[i], NULL),
                         WEIR_OK);
    }
    now_ms = weir_time_ms();
    retain("pictures", "100kB");
    sweep_round();
    for (int i = 0; i < 100; i++) {
        bool is_left = weir_packs_read(pictures, ids[i], &places[i], &fixture.arena, &data, &len,
                                       NULL) == WEIR_OK;
        ck_assert(is_left || n_left == 0); /* those that are left are the newest */
        n_left += is_left;
    }
    ck_assert_int_ge(n_left, 30);
    ck_assert_int_le(n_left, 50);
    retain("pictures", "0s"); /* the current pack too */
    now_ms = weir_time_ms() + 1000;
    sweep_round();
    ck_assert_int_ne(
        weir_packs_read(pictures, ids[99], &places[99], &fixture.arena, &data, &len, NULL),
        WEIR_OK);
    ck_assert_int_eq(weir_packs_append(pictures, ids[0], bytes, 10, &places[0], NULL), WEIR_OK);
    ck_assert_int_eq(
        weir_packs_read(pictures, ids[0], &places[0], &fixture.arena, &data, &len, NULL), WEIR_OK);
}

END_TEST

START_TEST(sizes_are_those_on_the_disk)
{
    add_file(in_state("tree/a/b/c"), 100000, NOON_MS);
    add_file(in_state("tree/d"), 1, NOON_MS);
    ck_assert_int_eq(symlink("/usr", in_state("tree/link")), 0);
    int64_t bytes = retain_tree_bytes(in_state("tree"));
    ck_assert_int_ge(bytes, 100000 + 1);
    ck_assert_int_lt(bytes, 200000);
    ck_assert_int_eq(retain_tree_bytes(in_state("nothing")), 0);
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "folders", retain_set_up, retain_tear_down, checkpoints_stay_until_the_training_is_over,
    beyond_their_size_the_checkpoints_that_ended_first_go, a_dataset_that_was_being_deleted_goes,
    kept_for_ever_means_for_ever, a_folder_of_no_known_job_is_left_for_an_hour,
    a_removal_that_was_cut_short_is_ended, a_link_is_removed_and_not_what_it_points_to,
    a_replica_s_folder_stays_until_every_decision_was_shipped,
    decisions_that_nobody_ships_are_kept_as_long_as_decisions_and_told,
    decisions_that_nobody_ships_have_the_bound_of_decisions,
    logs_of_attempts_that_are_over_go_by_age_and_size,
    packs_of_pictures_go_oldest_first_and_the_next_picture_is_put, sizes_are_those_on_the_disk)
