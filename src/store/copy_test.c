#include "store/store.h"

#include "store/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char sql_put[] = "INSERT INTO settings (key, value, updated_ms) VALUES (:key, '1', 0)";
static const char sql_count[] = "SELECT count(*) FROM settings";

static struct store_fixture fixture;
static char copy_path[128];
static atomic_bool is_over;

static void set_up(void)
{
    fixture_make(&fixture, NULL);
    (void)snprintf(copy_path, sizeof copy_path, "%s/copy.db", fixture.dir);
    atomic_store(&is_over, false);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* Two rows in one transaction: at every moment their number is even. */
static weir_status put_pair(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int *number = context;
    for (int half = 0; half < 2; half++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%d-%d", *number, half);
        WEIR_TRY(weir_txn_exec(txn, sql_put, WEIR_BINDS(WEIR_BIND_TEXT("key", key)), NULL, err));
    }
    return WEIR_OK;
}

static weir_status count(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_count, WEIR_NO_BINDS, -1, context, err);
}

static int64_t rows_of_copy(void)
{
    struct weir_store *store;
    struct weir_error err;
    int64_t n = -1;
    struct weir_store_config config = {.path = copy_path};
    weir_status status = weir_store_open(&config, &store, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(weir_store_read(store, count, &n, &err), WEIR_OK);
    weir_store_close(store);
    return n;
}

static void *write_main(void *context)
{
    int *number = context;
    struct weir_error err;
    while (!atomic_load(&is_over)) {
        ++*number;
        if (weir_store_write(fixture.store, put_pair, number, &err) != WEIR_OK) {
            return fixture.store;
        }
    }
    return NULL;
}

START_TEST(a_copy_beside_a_writer_is_of_one_moment)
{
    pthread_t writer;
    int number = 0;
    void *failed;
    int64_t before = 0;
    for (; number < 50; number++) {
        fixture_write(&fixture, put_pair, &number);
    }
    ck_assert_int_eq(pthread_create(&writer, NULL, write_main, &number), 0);
    for (int i = 0; i < 5; i++) {
        struct weir_error err;
        (void)unlink(copy_path);
        weir_status status = weir_store_copy(fixture.path, copy_path, &err);
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        int64_t n = rows_of_copy();
        ck_assert_int_ge(n, 100);
        ck_assert_int_eq(n % 2, 0);
        ck_assert_int_ge(n, before);
        before = n;
    }
    atomic_store(&is_over, true);
    ck_assert_int_eq(pthread_join(writer, &failed), 0);
    ck_assert_ptr_null(failed);
}

END_TEST

START_TEST(nothing_is_overwritten_and_nothing_is_made_from_nothing)
{
    struct weir_error err;
    char missing[128];
    (void)snprintf(missing, sizeof missing, "%s/missing.db", fixture.dir);
    ck_assert_int_eq(weir_store_copy(missing, copy_path, &err), WEIR_ERR_NOT_FOUND);
    ck_assert(!weir_path_exists(missing));
    ck_assert_int_eq(weir_file_write(copy_path, "mine", 4, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_store_copy(fixture.path, copy_path, &err), WEIR_ERR_EXISTS);
    struct stat st;
    ck_assert_int_eq(stat(copy_path, &st), 0);
    ck_assert_int_eq(st.st_size, 4);
}

END_TEST

START_TEST(a_damaged_database_gives_no_copy)
{
    struct weir_error err;
    for (int number = 0; number < 200; number++) {
        fixture_write(&fixture, put_pair, &number);
    }
    weir_store_close(fixture.store);
    fixture.store = NULL;
    int fd = open(fixture.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    for (off_t page = 1; page < 40; page++) {
        ck_assert_int_eq(pwrite(fd, garbage, sizeof garbage, page * 4096), sizeof garbage);
    }
    (void)close(fd);
    ck_assert_int_eq(weir_store_copy(fixture.path, copy_path, &err), WEIR_ERR_CORRUPT);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("store copy");
    TCase *tcase = tcase_create("copy");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_copy_beside_a_writer_is_of_one_moment);
    tcase_add_test(tcase, nothing_is_overwritten_and_nothing_is_made_from_nothing);
    tcase_add_test(tcase, a_damaged_database_gives_no_copy);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
