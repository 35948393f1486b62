#include "agent/sandbox/job_user.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1200

uid_t job_user_of(const char *job_dir)
{
    char path[PATH_BYTES], text[32];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/user", job_dir);
    if (weir_file_read_into(path, text, sizeof text - 1, &len, NULL) != WEIR_OK) {
        return 0;
    }
    text[len] = '\0';
    return (uid_t)strtoul(text, NULL, 10);
}

/* Does the registry say that a job which is still there has it? */
static bool is_taken(const char *registry, uid_t user)
{
    char path[PATH_BYTES], job_dir[PATH_BYTES];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/%u", registry, (unsigned)user);
    if (weir_file_read_into(path, job_dir, sizeof job_dir - 1, &len, NULL) != WEIR_OK) {
        return false;
    }
    job_dir[len] = '\0';
    return job_user_of(job_dir) == user;
}

static bool is_account(uid_t id)
{
    char buffer[4096];
    struct passwd passwd, *found_user = NULL;
    struct group group, *found_group = NULL;
    int rc = getpwuid_r(id, &passwd, buffer, sizeof buffer, &found_user);
    bool is_user = found_user != NULL || rc == ERANGE;
    rc = getgrgid_r(id, &group, buffer, sizeof buffer, &found_group);
    return is_user || found_group != NULL || rc == ERANGE;
}

static weir_status note(const char *registry, const char *job_dir, uid_t user,
                        struct weir_error *err)
{
    char path[PATH_BYTES], text[32];
    int len = snprintf(text, sizeof text, "%u", (unsigned)user);
    (void)snprintf(path, sizeof path, "%s/user", job_dir);
    WEIR_TRY(weir_file_replace(path, text, (size_t)len, 0600, err));
    (void)snprintf(path, sizeof path, "%s/%u", registry, (unsigned)user);
    return weir_file_write(path, job_dir, strlen(job_dir), 0600, err);
}

/* A hash of the job's name: FNV-1a. */
static uint32_t hash_of(const char *job_dir)
{
    const char *slash = strrchr(job_dir, '/');
    uint32_t hash = 0x811c9dc5U;
    for (const char *c = slash != NULL ? slash + 1 : job_dir; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 0x01000193U;
    }
    return hash;
}

static weir_status claim(const char *registry, uid_t base, const char *job_dir, uid_t *out,
                         struct weir_error *err)
{
    uint32_t first = hash_of(job_dir);
    for (uint32_t i = 0; i < JOB_USER_COUNT - 1; i++) {
        uid_t user = base + 1 + (first % (JOB_USER_COUNT - 1) + i) % (JOB_USER_COUNT - 1);
        if (!is_taken(registry, user) && !is_account(user)) {
            WEIR_TRY(note(registry, job_dir, user, err));
            *out = user;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "all users for tasks are taken, %u to %u: choose another range with "
                          "weir agent --task-users",
                          (unsigned)base, (unsigned)base + JOB_USER_COUNT - 1);
}

weir_status job_user_claim(const char *registry, uid_t base, const char *job_dir, uid_t *out,
                           struct weir_error *err)
{
    uid_t known = job_user_of(job_dir);
    if (known != 0) {
        *out = known;
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(registry, 0700, err));
    int fd = open(registry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        return weir_error_set_errno(err, errno, "cannot lock %s", registry);
    }
    weir_status status = claim(registry, base, job_dir, out, err);
    close(fd);
    return status;
}

/* Objects of the user in /proc/sysvipc/NAME; `i_user` is the column of the owner. */
static void remove_objects(const char *name, int i_user, uid_t user, int (*remove)(int id))
{
    char path[64], line[512];
    (void)snprintf(path, sizeof path, "/proc/sysvipc/%s", name);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        long long columns[12] = {0};
        char *at = line, *end = line;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(columns); i++, at = end) {
            columns[i] = strtoll(at, &end, 10); /* the head line gives zeros */
        }
        if (columns[i_user] == (long long)user) {
            (void)remove((int)columns[1]);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static int remove_shm(int id)
{
    return shmctl(id, IPC_RMID, NULL);
}

static int remove_msg(int id)
{
    return msgctl(id, IPC_RMID, NULL);
}

static int remove_sem(int id)
{
    return semctl(id, 0, IPC_RMID);
}

static void remove_queues(uid_t user)
{
    DIR *dir = opendir("/dev/mqueue");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        struct stat info;
        char name[300];
        (void)snprintf(name, sizeof name, "/%s", entry->d_name);
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            info.st_uid == user) {
            (void)mq_unlink(name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

void job_user_shm_dir(uid_t user, char out[64])
{
    (void)snprintf(out, 64, "/dev/shm/weir-%u", (unsigned)user);
}

void job_user_release(const char *registry, uid_t user)
{
    char path[PATH_BYTES], shm[64];
    struct weir_error err;
    job_user_shm_dir(user, shm);
    if (weir_path_exists(shm) && weir_dir_remove(shm, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "shared_memory_not_removed", WEIR_KV_STR("dir", shm),
                 WEIR_KV_STR("error", err.message));
    }
    remove_objects("shm", 7, user, remove_shm);
    remove_objects("msg", 7, user, remove_msg);
    remove_objects("sem", 4, user, remove_sem);
    remove_queues(user);
    (void)snprintf(path, sizeof path, "%s/%u", registry, (unsigned)user);
    (void)unlink(path);
}

void job_user_sweep(const char *registry)
{
    int fd = open(registry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 && flock(fd, LOCK_EX) == 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        uid_t user = (uid_t)strtoul(entry->d_name, NULL, 10);
        if (user != 0 && !is_taken(registry, user)) {
            job_user_release(registry, user);
        }
    }
    if (dir != NULL) {
        closedir(dir); /* with fd, and the lock */
    } else if (fd >= 0) {
        close(fd);
    }
}
