/* Jobs as an older version left them: their definitions lack what agents want. */
#include "control/remake.h"

#include "control/job/control_fixture.h"

#include "base/test_main.h"

#include <check.h>

static struct control_fixture fixture;

static weir_status make_old(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(
        txn,
        "UPDATE tasks SET definition = json_remove(definition, '$.paths', '$.state', '$.folders')",
        WEIR_NO_BINDS, NULL, err);
}

static weir_status forget_remade(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "DELETE FROM settings WHERE key = 'definitions'", WEIR_NO_BINDS, NULL,
                         err);
}

static weir_status forget_training(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, "DELETE FROM tasks WHERE job = :job",
                         WEIR_BINDS(WEIR_BIND_TEXT("job", context)), NULL, err);
}

static weir_status remake(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    (void)context;
    return control_remake(control, txn, err);
}

static weir_status heartbeat(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    return control_remake_replica(control, txn, context, err);
}

static weir_status definitions(struct weir_txn *txn, void *context, struct weir_error *err)
{
    size_t n;
    return weir_txn_query_texts(txn, "SELECT definition FROM tasks ORDER BY job, rank",
                                WEIR_NO_BINDS, &fixture.store.arena, context, &n, err);
}

static weir_status task_states(struct weir_txn *txn, void *context, struct weir_error *err)
{
    size_t n;
    return weir_txn_query_texts(
        txn,
        "SELECT state || ' ' || attempt || ' ' || old_attempt FROM tasks ORDER BY"
        " job, rank",
        WEIR_NO_BINDS, &fixture.store.arena, context, &n, err);
}

static char *job_of_kind(const char *kind)
{
    void *items;
    size_t n = list_records(&fixture, &weir_job_resource, &items);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(((struct weir_job *)items)[i].kind, kind) == 0) {
            return ((struct weir_job *)items)[i].id;
        }
    }
    ck_abort_msg("no job of kind %s", kind);
    return NULL;
}

static size_t count_text(char *const *texts, size_t n, const char *text)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found += strcmp(texts[i], text) == 0;
    }
    return found;
}

/* A door of two replicas and a command run, as of before. */
START_TEST(what_an_older_version_made_is_made_to_fit_and_its_replicas_begin_anew)
{
    char **before, **after, **states;
    apply(&fixture, "always-update", 2);
    trigger(&fixture);
    carry_out(&fixture, 0);
    char *training = job_of_kind("train");
    (void)register_model(&fixture, "m1", job_record(&fixture, training).run);
    play(&fixture, training, 0);
    carry_out(&fixture, 0);
    fixture_write(&fixture.store, forget_training, training);
    (void)make_job(&fixture, "c", "command", "{\"argv\":[\"true\"]}");
    char *door = job_of_kind("predict"), *command = job_of_kind("command");
    for (int64_t i = 0; i < 3; i++) {
        place(&fixture, i < 2 ? door : command);
        runs(&fixture, i < 2 ? door : command, i % 2);
    }
    fixture_read(&fixture.store, definitions, &before);
    turn(&fixture, remake, NULL); /* of a new database nothing is made again */
    fixture_write(&fixture.store, forget_remade, NULL);
    fixture_write(&fixture.store, make_old, NULL);
    turn(&fixture, remake, NULL);
    fixture_read(&fixture.store, definitions, &after);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(after[i], before[i]);
    }
    fixture_read(&fixture.store, task_states, &states);
    ck_assert_uint_eq(count_text(states, 3, "RUNNING 1 1"), 3);
    turn(&fixture, heartbeat, "elsewhere");
    fixture_read(&fixture.store, task_states, &states);
    ck_assert_uint_eq(count_text(states, 3, "RUNNING 1 1"), 3);
    turn(&fixture, heartbeat, "n"); /* one at a time, and never the command */
    fixture_read(&fixture.store, task_states, &states);
    ck_assert_uint_eq(count_text(states, 3, "STOPPING 1 1"), 1);
    turn(&fixture, heartbeat, "n");
    turn(&fixture, heartbeat, "n");
    fixture_read(&fixture.store, task_states, &states);
    ck_assert_uint_eq(count_text(states, 3, "STOPPING 1 1"), 2);
    exits(&fixture, door, 0, 0);
    exits(&fixture, door, 1, 0);
    place(&fixture, door);
    runs(&fixture, door, 0);
    turn(&fixture, heartbeat, "n"); /* what was begun again is of this version */
    fixture_read(&fixture.store, task_states, &states);
    ck_assert_uint_eq(count_text(states, 3, "RUNNING 2 1"), 1);
    ck_assert_uint_eq(count_text(states, 3, "RUNNING 1 1"), 1);
}

END_TEST

static void set_up(void)
{
    control_fixture_make(&fixture);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

WEIR_TEST_MAIN_WITH("remake", set_up, tear_down,
                    what_an_older_version_made_is_made_to_fit_and_its_replicas_begin_anew)
