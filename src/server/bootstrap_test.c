/* What a state folder holds before the server serves: made once, and kept. */
#include "server/bootstrap.h"

#include "base/file.h"
#include "base/log.h"
#include "base/test_main.h"
#include "job/former.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct weir_arena arena;
static struct weir_error err;
static struct weir_store *store;

static const char *in(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void open_store(void)
{
    const struct weir_store_config config = {.path = in("weir.db"), .n_readers = 1};
    ck_assert_msg(weir_store_open(&config, &store, &err) == WEIR_OK, "%s", err.message);
}

static void set_up(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_arena_init(&arena, 0);
    (void)snprintf(root, sizeof root, "%s/weir-bootstrap-test-XXXXXX",
                   weir_path_is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    open_store();
}

static void tear_down(void)
{
    weir_store_close(store);
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

/** What a start leaves: the secrets in the token files, and the key. */
struct left {
    char admin[WEIR_SECRET_BYTES + 16], agent[WEIR_SECRET_BYTES + 16];
    unsigned char key[BOOTSTRAP_TASK_KEY_BYTES];
};

static char *secret_in(const char *name)
{
    char *text;
    struct stat st;
    ck_assert_int_eq(weir_file_read(in(name), 4096, &arena, &text, NULL, &err), WEIR_OK);
    ck_assert_int_eq(stat(in(name), &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 07777), 0600);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static struct left start(const char *node)
{
    struct left left;
    ck_assert_msg(bootstrap(store, root, node, &arena, left.key, &err) == WEIR_OK, "%s",
                  err.message);
    (void)snprintf(left.admin, sizeof left.admin, "%s", secret_in("admin.token"));
    (void)snprintf(left.agent, sizeof left.agent, "%s", secret_in("agent/token"));
    return left;
}

struct shown {
    const char *secret;
    struct weir_identity identity;
};

static weir_status show_in(struct weir_txn *txn, void *context, struct weir_error *error)
{
    struct shown *shown = context;
    return weir_token_identify(txn, shown->secret, 1, &arena, &shown->identity, error);
}

/** Who shows this secret; role WEIR_ROLE_WORKER if nobody does: no stored token has it. */
static struct weir_identity who(const char *secret)
{
    struct shown shown = {.secret = secret};
    weir_status status = weir_store_read(store, show_in, &shown, &err);
    return status == WEIR_OK ? shown.identity : (struct weir_identity){.role = WEIR_ROLE_WORKER};
}

static weir_status count_in(struct weir_txn *txn, void *context, struct weir_error *error)
{
    const struct weir_query all = {.limit = 1};
    return weir_txn_count(txn, &weir_token_resource, &all, context, error);
}

static int64_t n_tokens(void)
{
    int64_t n = 0;
    ck_assert_int_eq(weir_store_read(store, count_in, &n, &err), WEIR_OK);
    return n;
}

START_TEST(a_second_start_gives_the_same_tokens)
{
    struct left first = start("n");
    ck_assert_int_eq(who(first.admin).role, WEIR_ROLE_ADMIN);
    ck_assert_int_eq(who(first.agent).role, WEIR_ROLE_AGENT);
    ck_assert_str_eq(who(first.agent).node, "n");
    ck_assert_int_eq(n_tokens(), 2);
    weir_store_close(store);
    open_store();
    struct left second = start("n");
    ck_assert_str_eq(second.admin, first.admin);
    ck_assert_str_eq(second.agent, first.agent);
    ck_assert_mem_eq(second.key, first.key, sizeof first.key);
    ck_assert_int_eq(n_tokens(), 2);
}

END_TEST

START_TEST(two_folders_have_nothing_in_common)
{
    struct left first = start("n");
    tear_down();
    set_up();
    struct left second = start("n");
    ck_assert_str_ne(second.admin, first.admin);
    ck_assert_mem_ne(second.key, first.key, sizeof first.key);
}

END_TEST

START_TEST(a_token_file_that_is_gone_or_strange_is_made_anew)
{
    struct left first = start("n");
    ck_assert_int_eq(unlink(in("admin.token")), 0);
    ck_assert_int_eq(weir_file_write(in("agent/token"), "weir_strange\n", 13, 0600, &err), WEIR_OK);
    struct left second = start("n");
    ck_assert_str_ne(second.admin, first.admin);
    ck_assert_int_eq(who(second.admin).role, WEIR_ROLE_ADMIN);
    ck_assert_int_eq(who(first.admin).role, WEIR_ROLE_ADMIN); /* nobody has revoked it */
    ck_assert_int_eq(who(second.agent).role, WEIR_ROLE_AGENT);
    ck_assert_mem_eq(second.key, first.key, sizeof first.key);
}

END_TEST

START_TEST(a_machine_that_is_renamed_keeps_its_token)
{
    struct left first = start("n");
    struct left second = start("m");
    ck_assert_str_eq(second.agent, first.agent);
    ck_assert_str_eq(who(first.agent).node, "m");
    ck_assert_ptr_null(who(first.admin).node);
}

END_TEST

static weir_status disable_in(struct weir_txn *txn, void *context, struct weir_error *error)
{
    (void)context;
    struct weir_user user = {.name = "admin", .is_disabled = true};
    return weir_txn_update(txn, &weir_user_resource, &user, WEIR_FIELDS("is_disabled"), error);
}

START_TEST(who_was_disabled_does_not_come_back)
{
    struct left first = start("n");
    ck_assert_int_eq(weir_store_write(store, disable_in, NULL, &err), WEIR_OK);
    struct left second = start("n");
    ck_assert_str_eq(second.admin, first.admin);
    ck_assert_int_eq(who(second.admin).role, WEIR_ROLE_WORKER);
}

END_TEST

static weir_status find_former_in(struct weir_txn *txn, void *context, struct weir_error *error)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_attempt attempt;
    weir_secret_hash("weir_old", hash);
    int64_t *n = context;
    *n = weir_former_attempt(txn, hash, "j-0", &arena, &attempt, NULL) == WEIR_OK;
    (void)error;
    return WEIR_OK;
}

static weir_status run_former_in(struct weir_txn *txn, void *context, struct weir_error *error)
{
    (void)context;
    const struct weir_job job = {.id = "j",
                                 .name = "j",
                                 .project = "default",
                                 .kind = "predict",
                                 .state = "RUNNING",
                                 .spec = "{}",
                                 .attempt = 1,
                                 .created_ms = 1};
    const struct weir_task task = {.id = "t",
                                   .job = "j",
                                   .role = "replica",
                                   .definition = "{}",
                                   .attempt = 1,
                                   .state = "RUNNING",
                                   .desired = "running",
                                   .exit_code = -1,
                                   .started_ms = 1};
    WEIR_TRY(weir_txn_insert(txn, &weir_job_resource, &job, error));
    WEIR_TRY(weir_txn_insert(txn, &weir_task_resource, &task, error));
    return weir_txn_exec(txn, "INSERT INTO former_attempts VALUES ('t', 1)", WEIR_NO_BINDS, NULL,
                         error);
}

/* With what was begun by it, and never else. */
START_TEST(the_token_that_tasks_shared_is_taken_in_and_its_file_away)
{
    int64_t n_former = 0;
    for (int i = 0; i < 2; i++) {
        (void)start("n");
        ck_assert_int_eq(weir_file_write_atomic(in("worker.token"), "weir_old\n", 9, 0600, &err),
                         WEIR_OK);
        if (i == 1) {
            ck_assert_int_eq(weir_store_write(store, run_former_in, NULL, &err), WEIR_OK);
        }
        (void)start("n");
        ck_assert_int_ne(access(in("worker.token"), F_OK), 0);
        ck_assert_int_eq(weir_store_read(store, find_former_in, &n_former, &err), WEIR_OK);
        ck_assert_int_eq(n_former, i);
    }
    ck_assert_int_eq(who("weir_old").role, WEIR_ROLE_WORKER);
}

END_TEST

START_TEST(what_is_in_the_way_is_named)
{
    unsigned char key[BOOTSTRAP_TASK_KEY_BYTES];
    ck_assert_int_eq(mkdir(in("admin.token"), 0700), 0);
    ck_assert_int_ne(bootstrap(store, root, "n", &arena, key, &err), WEIR_OK);
    ck_assert_msg(strstr(err.message, "admin.token") != NULL, "%s", err.message);
    ck_assert_int_eq(rmdir(in("admin.token")), 0);
    (void)start("n");
}

END_TEST

WEIR_TEST_MAIN_WITH("bootstrap", set_up, tear_down, a_second_start_gives_the_same_tokens,
                    two_folders_have_nothing_in_common,
                    a_token_file_that_is_gone_or_strange_is_made_anew,
                    a_machine_that_is_renamed_keeps_its_token, who_was_disabled_does_not_come_back,
                    the_token_that_tasks_shared_is_taken_in_and_its_file_away,
                    what_is_in_the_way_is_named)
