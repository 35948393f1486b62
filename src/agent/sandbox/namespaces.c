#include "agent/namespaces.h"

#include "agent/process.h"
#include "agent/task.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the init ---------------------------------------------------------------------------------- */

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return is_written;
}

static bool enter_user_as(uid_t user, gid_t group)
{
    char users[64], groups[64];
    (void)snprintf(users, sizeof users, "%u %u 1", (unsigned)user, (unsigned)geteuid());
    (void)snprintf(groups, sizeof groups, "%u %u 1", (unsigned)group, (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

bool namespaces_enter_user(void)
{
    return enter_user_as(geteuid(), getegid());
}

bool namespaces_enter_user_as_root(void)
{
    return enter_user_as(0, 0);
}

static void bring_up_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
        close(fd);
    }
}

/* What ps shows: not one supervisor more. The text of the arguments lies where the kernel put it. */
static void set_title(const char *record)
{
    char stat[2048];
    unsigned long begin = 0, end = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    const char *after =
        file != NULL && fgets(stat, sizeof stat, file) != NULL ? strrchr(stat, ')') : NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    for (int field = 3; after != NULL && field <= 48; field++) {
        after = strchr(after + 1, ' ');
    }
    if (after != NULL && sscanf(after, "%lu %lu", &begin, &end) == 2 && end > begin) {
        char *text = (char *)(uintptr_t)begin; /* NOLINT(performance-no-int-to-ptr) */
        memset(text, 0, end - begin);
        (void)snprintf(text, end - begin, "weir job init %s", record);
    }
    (void)prctl(PR_SET_NAME, "weir-job-init", 0, 0, 0);
}

static bool has_writers(int fifo_fd)
{
    struct pollfd fifo = {.fd = fifo_fd};
    return poll(&fifo, 1, 0) == 0 || (fifo.revents & POLLHUP) == 0;
}

/* Process 1: until no supervisor is left. Nothing of it is the job's: not its files, not its
 * memory. It decides under the lock, so that a supervisor which joins finds it alive or not at all.
 */
static _Noreturn void be_init(int fifo_fd, int lock_fd, const char *record)
{
    set_title(record);
    (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps orphans */
    for (;;) {
        struct pollfd fifo = {.fd = fifo_fd};
        (void)poll(&fifo, 1, -1);
        if (flock(lock_fd, LOCK_EX) == 0 && !has_writers(fifo_fd)) {
            (void)unlink(record);
            _exit(0);
        }
        (void)flock(lock_fd, LOCK_UN);
    }
}

/* Only `keep` and `also` stay open, as 3 and 4, with nothing as 0, 1 and 2: a lock or a pipe of the
 * supervisor held here would be held too long. */
static bool close_others(int keep, int also)
{
    int null_fd = open("/dev/null", O_RDWR);
    int high = fcntl(keep, F_DUPFD, 16), high_also = fcntl(also, F_DUPFD, 16);
    return null_fd >= 0 && high >= 0 && high_also >= 0 && dup2(null_fd, 0) == 0 &&
           dup2(null_fd, 1) == 1 && dup2(null_fd, 2) == 2 && dup2(high, 3) == 3 &&
           dup2(high_also, 4) == 4 && close_range(5, ~0U, 0) == 0;
}

/* What the maker of the init says to the supervisor. */
struct made {
    pid_t pid; /* the init's; 0: see below */
    int errno_value;
};

/* In a child of the supervisor, which ends at once: make the namespaces, and the init in them. */
static _Noreturn void make_init(const char *lock, const char *record, int fifo_fd, int said_fd,
                                bool has_network)
{
    struct made made = {0, 0};
    bool is_made = setsid() > 0 && (geteuid() == 0 || namespaces_enter_user()) &&
                   unshare(CLONE_NEWPID | CLONE_NEWIPC | (has_network ? 0 : CLONE_NEWNET)) == 0;
    made.pid = is_made ? fork() : -1;
    if (made.pid == 0) {
        int lock_fd = open(lock, O_RDWR); /* a description of its own: a lock belongs to that */
        if (lock_fd < 0 || chdir("/") != 0 || !close_others(fifo_fd, lock_fd)) {
            _exit(1);
        }
        if (!has_network) {
            bring_up_loopback();
        }
        be_init(3, 4, record);
    }
    made.errno_value = made.pid < 0 ? errno : 0;
    made.pid = made.pid < 0 ? 0 : made.pid;
    (void)!write(said_fd, &made, sizeof made);
    _exit(0);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Whatever the kernel says (of a process that was killed meanwhile: that it is not there), it may be otherwise next time. */
static weir_status fail(struct weir_error *err, const char *what)
{
    return weir_error_set(err, WEIR_ERR_IO, "cannot make the namespaces of the job: %s: %s", what,
                          strerror(errno));
}

static int open_namespace(pid_t pid, const char *kind)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The descriptors, and that they are this very process's. */
static bool open_all(const struct process_id *init, bool has_network, struct namespaces *ns)
{
    ns->user_fd = geteuid() == 0 ? -1 : open_namespace(init->pid, "user");
    ns->pid_fd = open_namespace(init->pid, "pid");
    ns->ipc_fd = open_namespace(init->pid, "ipc");
    ns->net_fd = has_network ? -1 : open_namespace(init->pid, "net");
    return (ns->user_fd >= 0 || geteuid() == 0) && ns->pid_fd >= 0 && ns->ipc_fd >= 0 &&
           (ns->net_fd >= 0 || has_network) && process_is_alive(init);
}

static bool read_init(const char *record, struct process_id *out)
{
    char text[64];
    size_t len = 0;
    int pid;
    unsigned long long start_time;
    if (weir_file_read_into(record, text, sizeof text - 1, &len, NULL) != WEIR_OK) {
        return false;
    }
    text[len] = '\0';
    if (sscanf(text, "%d %llu", &pid, &start_time) != 2) {
        return false;
    }
    *out = (struct process_id){.pid = (pid_t)pid, .start_time = start_time};
    return true;
}

/* The lock is held, and no init has the FIFO open. */
static weir_status start_init(const char *lock, const char *record, int fifo_fd, bool has_network,
                              struct process_id *out, struct weir_error *err)
{
    char text[64];
    int said[2];
    struct made made = {0, EIO};
    if (pipe2(said, O_CLOEXEC) != 0) {
        return fail(err, "pipe");
    }
    pid_t maker = fork();
    if (maker == 0) {
        make_init(lock, record, fifo_fd, said[1], has_network);
    }
    close(said[1]);
    if (maker > 0) {
        (void)!read(said[0], &made, sizeof made);
        (void)waitpid(maker, NULL, 0);
    }
    close(said[0]);
    errno = made.errno_value;
    if (made.pid <= 0 || !process_identify(made.pid, out)) {
        return fail(err, "its first process");
    }
    int len =
        snprintf(text, sizeof text, "%d %llu", (int)out->pid, (unsigned long long)out->start_time);
    return weir_file_replace(record, text, (size_t)len, 0600, err);
}

static weir_status join(const char *job_dir, const char *lock, bool has_network,
                        struct namespaces *ns, struct weir_error *err)
{
    char fifo[TASK_PATH_BYTES], record[TASK_PATH_BYTES];
    struct process_id init;
    (void)task_path(fifo, job_dir, "init.fifo");
    (void)task_path(record, job_dir, "init");
    if (mkfifo(fifo, 0600) != 0 && errno != EEXIST) {
        return fail(err, fifo);
    }
    ns->hold_fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (ns->hold_fd >= 0 && read_init(record, &init) && open_all(&init, has_network, ns)) {
        return WEIR_OK;
    }
    namespaces_leave(ns); /* there is none, or what was recorded is not it */
    int fifo_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ns->hold_fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    weir_status status = fifo_fd >= 0 && ns->hold_fd >= 0
                             ? start_init(lock, record, fifo_fd, has_network, &init, err)
                             : fail(err, fifo);
    if (fifo_fd >= 0) {
        close(fifo_fd);
    }
    if (status == WEIR_OK && !open_all(&init, has_network, ns)) {
        status = fail(err, "its first process has ended");
    }
    return status;
}

weir_status namespaces_join(const char *job_dir, bool has_network, struct namespaces *out,
                            struct weir_error *err)
{
    char lock[TASK_PATH_BYTES];
    struct namespaces ns = NAMESPACES_NONE;
    int lock_fd = open(task_path(lock, job_dir, "init.lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX) != 0) {
        weir_status status = fail(err, lock);
        if (lock_fd >= 0) {
            close(lock_fd);
        }
        return status;
    }
    weir_status status = join(job_dir, lock, has_network, &ns, err);
    close(lock_fd);
    if (status != WEIR_OK) {
        namespaces_leave(&ns);
        return status;
    }
    *out = ns;
    return WEIR_OK;
}

void namespaces_leave(struct namespaces *ns)
{
    int fds[] = {ns->user_fd, ns->pid_fd,        ns->ipc_fd,  ns->net_fd,
                 ns->hold_fd, ns->inner_user_fd, ns->mount_fd};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    *ns = NAMESPACES_NONE;
}

/* Unless it is that of `own_fd`, or of this process: closed, and -1, then. */
static int keep_other(int fd, const char *kind, int own_fd)
{
    struct stat info, own;
    int self_fd = own_fd >= 0 ? -1 : open_namespace(getpid(), kind);
    bool is_other = fd >= 0 && fstat(fd, &info) == 0 &&
                    fstat(own_fd >= 0 ? own_fd : self_fd, &own) == 0 && info.st_ino != own.st_ino;
    if (self_fd >= 0) {
        close(self_fd);
    }
    if (fd >= 0 && !is_other) {
        close(fd);
    }
    return is_other ? fd : -1;
}

void namespaces_take_sandbox(struct namespaces *ns, int user_fd, int mount_fd)
{
    ns->inner_user_fd = keep_other(user_fd, "user", ns->user_fd);
    ns->mount_fd = keep_other(mount_fd, "mnt", -1);
}

bool namespaces_open_sandbox(struct namespaces *ns, pid_t pid)
{
    int user_fd = open_namespace(pid, "user"), mount_fd = open_namespace(pid, "mnt");
    bool is_known = user_fd >= 0 && mount_fd >= 0;
    namespaces_take_sandbox(ns, user_fd, mount_fd);
    return is_known;
}

bool namespaces_open_own(int *out_user_fd, int *out_mount_fd)
{
    *out_user_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    *out_mount_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return *out_user_fd >= 0 && *out_mount_fd >= 0;
}

/* ---- starting a task ------------------------------------------------------------------------- */

/* A process keeps its own number: only its children get one in the namespace. */
static bool enter(const struct namespaces *ns)
{
    return (ns->user_fd < 0 || setns(ns->user_fd, CLONE_NEWUSER) == 0) &&
           (ns->ipc_fd < 0 || setns(ns->ipc_fd, CLONE_NEWIPC) == 0) &&
           (ns->net_fd < 0 || setns(ns->net_fd, CLONE_NEWNET) == 0) &&
           (ns->pid_fd < 0 || setns(ns->pid_fd, CLONE_NEWPID) == 0) &&
           (ns->inner_user_fd < 0 || setns(ns->inner_user_fd, CLONE_NEWUSER) == 0) &&
           (ns->mount_fd < 0 || setns(ns->mount_fd, CLONE_NEWNS) == 0);
}

pid_t namespaces_fork(const struct namespaces *ns)
{
    int said[2];
    struct made made = {0, EIO};
    if (ns->pid_fd < 0 && ns->mount_fd < 0) {
        return fork();
    }
    if (pipe2(said, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t between = fork();
    if (between == 0) {
        close(said[0]);
        made.pid =
            enter(ns) ? (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0) : -1;
        if (made.pid == 0) {
            close(said[1]);
            struct namespaces left = *ns;
            namespaces_leave(&left); /* the job does not keep its own init */
            return 0;
        }
        made.errno_value = errno;
        (void)!write(said[1], &made, sizeof made);
        _exit(0);
    }
    close(said[1]);
    if (between > 0) {
        (void)!read(said[0], &made, sizeof made);
        (void)waitpid(between, NULL, 0);
        errno = made.errno_value;
    }
    close(said[0]);
    return between > 0 && made.pid > 0 ? made.pid : -1;
}
