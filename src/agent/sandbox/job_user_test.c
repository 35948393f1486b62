#include "agent/sandbox/job_user.h"

#include "base/file.h"
#include "base/test_main.h"

#include <pwd.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[WEIR_DIR_TEMPORARY_BYTES];
static char registry[300], job[2][320];

static void start(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("users", root, NULL), WEIR_OK);
    (void)snprintf(registry, sizeof registry, "%s/registry", root);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(job[i], sizeof job[i], "%s/j%d", root, i);
        ck_assert_int_eq(weir_dir_make(job[i], 0700, NULL), WEIR_OK);
    }
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

static uid_t claim(int i, uid_t base)
{
    uid_t user = 0;
    struct weir_error err = {0};
    ck_assert_msg(job_user_claim(registry, base, job[i], &user, &err) == WEIR_OK, "%s",
                  err.message);
    return user;
}

START_TEST(a_job_keeps_its_user_and_others_get_others)
{
    uid_t first = claim(0, JOB_USER_BASE), second = claim(1, JOB_USER_BASE);
    ck_assert_uint_ne(first, second);
    ck_assert_uint_gt(first, JOB_USER_BASE);
    ck_assert_uint_lt(first, JOB_USER_BASE + JOB_USER_COUNT);
    ck_assert_uint_eq(claim(0, JOB_USER_BASE), first);
    ck_assert_uint_eq(job_user_of(job[0]), first);
    job_user_release(registry, first);
    char again[400];
    (void)snprintf(again, sizeof again, "%s/user", job[0]);
    ck_assert_int_eq(unlink(again), 0);
    ck_assert_uint_eq(claim(0, JOB_USER_BASE), first); /* the same on every node */
}

END_TEST

static void put(const char *dir, const char *name, const char *text)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* All records but one say that a job which is there has the number. */
START_TEST(a_number_is_free_when_its_job_is_gone_whatever_the_registry_says)
{
    ck_assert_int_eq(mkdir(registry, 0700), 0);
    for (uid_t i = 1; i < JOB_USER_COUNT; i++) {
        char dir[340], number[32];
        (void)snprintf(dir, sizeof dir, "%s/k%u", root, (unsigned)i);
        (void)snprintf(number, sizeof number, "%u", (unsigned)(JOB_USER_BASE + i));
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        put(registry, number, dir);
        if (i != 77) {
            put(dir, "user", number);
        }
    }
    ck_assert_uint_eq(claim(0, JOB_USER_BASE), JOB_USER_BASE + 77);
    struct weir_error err;
    uid_t user;
    ck_assert_int_eq(job_user_claim(registry, JOB_USER_BASE, job[1], &user, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "--task-users"));
}

END_TEST

START_TEST(the_number_of_an_account_is_never_taken)
{
    struct passwd *nobody = getpwnam("nobody");
    if (nobody == NULL) {
        return;
    }
    /* A range in which the search begins at nobody's number. */
    uid_t first = claim(0, JOB_USER_BASE), base = nobody->pw_uid - (first - JOB_USER_BASE);
    char path[400];
    (void)snprintf(path, sizeof path, "%s/user", job[0]);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(claim(0, base), nobody->pw_uid + 1);
}

END_TEST

START_TEST(what_is_left_of_jobs_that_are_gone_is_swept)
{
    char shm[64], number[32], path[400], gone[400];
    if (geteuid() != 0) {
        return;
    }
    uid_t user = claim(0, JOB_USER_BASE), lost = JOB_USER_BASE + JOB_USER_COUNT + 1;
    (void)snprintf(gone, sizeof gone, "%s/gone", root);
    (void)snprintf(number, sizeof number, "%u", (unsigned)lost);
    put(registry, number, gone);
    job_user_shm_dir(lost, shm);
    ck_assert_int_eq(mkdir(shm, 0700), 0);
    put(shm, "left", "x");
    job_user_sweep(registry);
    ck_assert(!weir_path_exists(shm));
    (void)snprintf(path, sizeof path, "%s/%s", registry, number);
    ck_assert(!weir_path_exists(path));
    (void)snprintf(path, sizeof path, "%s/%u", registry, (unsigned)user);
    ck_assert(weir_path_exists(path));
}

END_TEST

START_TEST(what_a_job_left_of_system_v_goes_with_its_user)
{
    if (geteuid() != 0) {
        return;
    }
    uid_t user = claim(0, JOB_USER_BASE);
    int ids[2], pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    int kept = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    pid_t pid = fork();
    if (pid == 0) {
        int id = setuid(user) == 0 ? shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) : -1;
        (void)!write(pipe_fds[1], &id, sizeof id);
        _exit(0);
    }
    ck_assert_int_eq(read(pipe_fds[0], ids, sizeof ids[0]), sizeof ids[0]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    struct shmid_ds info;
    ck_assert_int_eq(shmctl(ids[0], IPC_STAT, &info), 0);
    job_user_release(registry, user);
    ck_assert_int_ne(shmctl(ids[0], IPC_STAT, &info), 0);
    ck_assert_int_eq(shmctl(kept, IPC_STAT, &info), 0);
    ck_assert_int_eq(shmctl(kept, IPC_RMID, NULL), 0);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {a_job_keeps_its_user_and_others_get_others,
                                  a_number_is_free_when_its_job_is_gone_whatever_the_registry_says,
                                  the_number_of_an_account_is_never_taken,
                                  what_is_left_of_jobs_that_are_gone_is_swept,
                                  what_a_job_left_of_system_v_goes_with_its_user};
    Suite *suite = suite_create("agent job user");
    TCase *tcase = tcase_create("job user");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
