#include "server/privacy.h"

#include "base/arena.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS    (S_IRWXG | S_IRWXO)
#define DEPTH_MAX 64 /* each level holds a descriptor */

struct privacy {
    char *path;
    pthread_t thread;
    atomic_bool is_stopping;
    dev_t device;
    gid_t group;    /* of the folder itself */
    ino_t jobs_dir; /* 0: there is none */
    int64_t n_closed, n_failed;
    char example[512];
};

weir_status privacy_close_folder(const char *path, struct weir_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return weir_error_set_errno(err, errno, "cannot use the state folder %s", path);
    }
    if (geteuid() != 0 && st.st_uid != geteuid()) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "the state folder %s belongs to the user with number %u: run as that "
                              "user, or choose another folder with --state",
                              path, (unsigned)st.st_uid);
    }
    if ((st.st_mode & OTHERS) != 0 && chmod(path, st.st_mode & 07777 & ~(mode_t)OTHERS) != 0) {
        return weir_error_set_errno(err, errno, "cannot close the state folder %s to other users",
                                    path);
    }
    return WEIR_OK;
}

static void close_children(struct privacy *privacy, int fd, int depth);

/* What others lose. A group that is not the folder's own has been given on purpose: to tasks, where
 * a file system cannot show them files as theirs. */
static mode_t denied_bits(const struct privacy *privacy, const struct stat *st)
{
    return st->st_mode & (st->st_gid == privacy->group ? OTHERS : S_IRWXO);
}

/* One entry, by a descriptor of itself: a task may put a link in its place at any moment. */
static void close_entry(struct privacy *privacy, int folder, const char *name, int depth)
{
    struct stat st;
    char self[64];
    int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return; /* gone meanwhile */
    }
    if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode) && st.st_dev == privacy->device) {
        (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        mode_t denied = denied_bits(privacy, &st);
        if (denied != 0) {
            bool is_closed = chmod(self, st.st_mode & 07777 & ~denied) == 0;
            privacy->n_closed += is_closed;
            privacy->n_failed += !is_closed;
            if (privacy->example[0] == '\0') {
                ssize_t len = readlink(self, privacy->example, sizeof privacy->example - 1);
                privacy->example[len > 0 ? len : 0] = '\0';
            }
        }
        /* What a job has as its /tmp is open within the job, as any /tmp. */
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX && st.st_ino != privacy->jobs_dir) {
            close_children(privacy, fd, depth);
        }
    }
    (void)close(fd);
}

static void close_children(struct privacy *privacy, int fd, int depth)
{
    int folder = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    if (dir == NULL && folder >= 0) {
        (void)close(folder);
    }
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && !atomic_load(&privacy->is_stopping); entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            close_entry(privacy, dirfd(dir), entry->d_name, depth + 1);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* All of it, or (is_deep false) only what lies in the folder itself. */
static void close_tree(struct privacy *privacy, bool is_deep)
{
    struct stat st, jobs;
    int fd = open(privacy->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        privacy->device = st.st_dev;
        privacy->group = st.st_gid;
        privacy->jobs_dir = fstatat(fd, "agent/jobs", &jobs, 0) == 0 ? jobs.st_ino : 0;
        close_children(privacy, fd, is_deep ? 0 : DEPTH_MAX - 1);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void *privacy_main(void *context)
{
    struct privacy *privacy = context;
    close_tree(privacy, true);
    if (privacy->n_closed + privacy->n_failed > 0) {
        weir_log(WEIR_LOG_WARN, "state_was_open_to_others", WEIR_KV_STR("state", privacy->path),
                 WEIR_KV_INT("closed", privacy->n_closed),
                 WEIR_KV_INT("still_open", privacy->n_failed),
                 WEIR_KV_STR("example", privacy->example));
    }
    return NULL;
}

weir_status privacy_start(const char *path, struct privacy **out, struct weir_error *err)
{
    struct privacy *privacy = weir_xalloc(sizeof *privacy);
    *privacy = (struct privacy){.path = weir_xstrdup(path)};
    close_tree(privacy, false); /* at once: the database's log takes the mode of the database */
    int reason = pthread_create(&privacy->thread, NULL, privacy_main, privacy);
    if (reason != 0) {
        free(privacy->path);
        free(privacy);
        return weir_error_set_errno(err, reason, "cannot start a thread");
    }
    *out = privacy;
    return WEIR_OK;
}

void privacy_stop(struct privacy *privacy)
{
    if (privacy == NULL) {
        return;
    }
    atomic_store(&privacy->is_stopping, true);
    pthread_join(privacy->thread, NULL);
    free(privacy->path);
    free(privacy);
}
