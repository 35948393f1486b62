#include "agent/supervise/launch.h"

#include "agent/image/image_run.h"
#include "agent/sandbox_enter.h"
#include "agent/supervise/pass.h"
#include "base/file.h"
#include "base/privileges.h"
#include "base/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

weir_status launch_write_file(const char *dir, const struct task_pair *file,
                              struct weir_arena *arena, struct weir_error *err)
{
    const char *slash = strrchr(file->name, '/');
    if (slash != NULL) {
        char *folder =
            weir_arena_printf(arena, "%s/work/%.*s", dir, (int)(slash - file->name), file->name);
        WEIR_TRY(weir_dir_make(folder, 0700, err));
    }
    char *path = weir_arena_printf(arena, "%s/work/%s", dir, file->name);
    unsigned mode = strncmp(file->value, "#!", 2) == 0 ? 0700 : 0600; /* a script can be run */
    return weir_file_replace(path, file->value, strlen(file->value), mode, err);
}

weir_status launch_prepare(const char *dir, const struct task *task, struct weir_arena *arena,
                           struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(weir_arena_printf(arena, "%s/work", dir), 0700, err));
    for (size_t i = 0; i < task->n_files; i++) {
        WEIR_TRY(launch_write_file(dir, &task->files[i], arena, err));
    }
    return WEIR_OK;
}

/* What a task inherits of the agent's environment: where programs are and how people read, nothing
 * that could be a secret. */
static bool is_inherited(const char *entry)
{
    static const char *const names[] = {"PATH=", "HOME=", "USER=",   "LOGNAME=",        "SHELL=",
                                        "LANG=", "TZ=",   "TMPDIR=", "LD_LIBRARY_PATH="};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (strncmp(entry, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return strncmp(entry, "LC_", 3) == 0;
}

/* The file of authorities lies elsewhere in a sandbox. */
static const char *value_in_sandbox(const struct task *task, const struct task_pair *pair,
                                    struct weir_arena *arena)
{
    const struct sandbox *sandbox = &task->sandbox;
    bool is_ca_file = sandbox->user != 0 && sandbox->ca_file != NULL &&
                      (strcmp(pair->name, "WEIR_CA_FILE") == 0 ||
                       strcmp(pair->name, "MLFLOW_TRACKING_SERVER_CERT_PATH") == 0) &&
                      strcmp(pair->value, sandbox->ca_file) == 0;
    return is_ca_file ? sandbox_given(sandbox, "ca.pem", arena) : pair->value;
}

/* Unless it is there. Returns how many there are then. */
static size_t add_variable(char **env, size_t n, char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(env[i], entry, name_len) == 0) {
            return n;
        }
    }
    env[n] = entry;
    return n + 1;
}

char **launch_environment(const char *dir, const struct task *task, struct weir_arena *arena)
{
    char mark[TASK_MARK_BYTES];
    /* In an image, what that sets stands for what the machine has. */
    char **machine = task->image_env != NULL ? task->image_env : environ;
    size_t n_inherited = 0;
    while (machine[n_inherited] != NULL) {
        n_inherited++;
    }
    char **env = WEIR_ARENA_ARRAY(arena, n_inherited + task->n_env + 16, char *);
    size_t n = 0;
    for (size_t i = 0; i < task->n_env; i++) { /* first, so that they win over inherited ones */
        env[n++] = weir_arena_printf(arena, "%s=%s", task->env[i].name,
                                     value_in_sandbox(task, &task->env[i], arena));
    }
    const struct task_pair own[] = {
        {"WEIR_TASK", task->id},
        {"WEIR_JOB", task->job},
        {"WEIR_ROLE", task->role},
        {"WEIR_ATTEMPT", weir_arena_printf(arena, "%lld", (long long)task->attempt)},
        {"WEIR_RANK", weir_arena_printf(arena, "%lld", (long long)task->rank)},
        {"WEIR_TASK_KEY", task_mark(mark, dir)},
        /* A user without an account: the agent's own are out of its reach. */
        {"HOME", weir_arena_printf(arena, "%s/work", dir)},
        {"USER", "weir-task"},
        {"LOGNAME", "weir-task"},
        {"TMPDIR", "/tmp"},
    };
    bool has_account = task->sandbox.user == 0 || task->sandbox.user == geteuid();
    size_t n_own = has_account ? WEIR_ARRAY_LEN(own) - 4 : WEIR_ARRAY_LEN(own);
    for (size_t i = 0; i < n_own; i++) {
        n = add_variable(env, n, weir_arena_printf(arena, "%s=%s", own[i].name, own[i].value));
    }
    for (size_t i = 0; i < n_inherited; i++) {
        bool is_taken = task->image_env != NULL || is_inherited(machine[i]);
        n = is_taken ? add_variable(env, n, machine[i]) : n;
    }
    /* Its output is a pipe, of which Python keeps 8 KiB back: lines would be late, or lost in a kill. */
    (void)add_variable(env, n, weir_arena_strdup(arena, "PYTHONUNBUFFERED=1"));
    return env;
}

/* "weir-worker" and "weir" mean the ones beside this program, if they are there. */
const char *launch_program(const struct task *task, struct weir_arena *arena)
{
    const char *name = task->argv[0];
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0 || (strcmp(name, "weir-worker") != 0 && strcmp(name, "weir") != 0)) {
        return name;
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    *slash = '\0';
    const char *beside = weir_arena_printf(arena, "%s/%s", self, name);
    if (access(beside, X_OK) != 0) {
        return name;
    }
    return task->sandbox.user != 0 ? sandbox_given(&task->sandbox, name, arena) : beside;
}

void launch_be_expendable(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "0", 1);
        close(fd);
    }
}

struct child_plan {
    const char *program, *dir, *work;
    char **argv, **env;
    const struct task *task;
    struct weir_arena *arena;
    int null_fd, log_fd, barrier_fd, status_fd;
};

bool launch_give_up_privileges(const struct task *task, uid_t user)
{
    const struct sandbox *sandbox = &task->sandbox;
    errno =
        task->is_isolated ? weir_privileges_drop(user, sandbox->readers) : weir_privileges_freeze();
    if (errno == 0 && task->is_isolated && weir_syscall_filter_is_here()) {
        errno = weir_syscall_filter_enter(sandbox->is_alone);
    }
    return errno == 0;
}

/* execvp says "permission denied" of a name that it has not found if a folder of PATH is closed to
 * the task. */
static bool is_in_path(const char *name)
{
    char path[PATH_MAX];
    const char *rest = getenv("PATH");
    while (rest != NULL && *rest != '\0') {
        size_t len = strcspn(rest, ":");
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)len, rest, name);
        if (access(path, F_OK) == 0) {
            return true;
        }
        rest += len + (rest[len] == ':');
    }
    return false;
}

/* For visitors: the program may end before anybody else could look. */
static void tell_sandbox(const struct child_plan *plan)
{
    const struct launch_failure none = {0};
    int fds[PASS_MAX];
    if (namespaces_open_own(&fds[0], &fds[1])) {
        (void)pass_send(plan->status_fd, &none, sizeof none, fds, PASS_MAX);
    }
}

/* In the child: what the program is to find around it. False: *failure says why not. */
static bool build(const struct child_plan *plan, struct launch_failure *failure)
{
    struct weir_error err;
    weir_status status = WEIR_OK;
    if (plan->task->image != NULL) {
        status = image_run_build(plan->dir, plan->task, plan->env, plan->arena, &err);
    } else if (plan->task->sandbox.user != 0) {
        status = sandbox_enter(plan->dir, plan->task, NULL, plan->arena, &err);
    }
    if (status != WEIR_OK) {
        failure->status = status;
        (void)snprintf(failure->message, sizeof failure->message, "%s", err.message);
    }
    return status == WEIR_OK;
}

/* In the child: become the program; comes back if that fails. */
static void execute(const struct child_plan *plan, struct launch_failure *failure)
{
    sigset_t none;
    bool is_image = plan->task->image != NULL;
    uid_t user = plan->task->sandbox.user != geteuid() ? plan->task->sandbox.user : 0;
    if (!is_image) {
        tell_sandbox(plan);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (dup2(plan->null_fd, 0) == 0 && dup2(plan->log_fd, 1) == 1 && dup2(plan->log_fd, 2) == 2 &&
        chdir(plan->work) == 0 && (is_image || launch_give_up_privileges(plan->task, user))) {
        /* Whatever the agent inherited from elsewhere is not the task's. */
        (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        if (is_image) {
            image_run_execute(plan->dir, plan->arena);
            failure->errno_value = errno;
            return;
        }
        environ = plan->env;
        (void)execvp(plan->program, plan->argv);
        if (errno == EACCES && strchr(plan->program, '/') == NULL) {
            errno = is_in_path(plan->program) ? EACCES : ENOENT;
        }
    }
    failure->errno_value = errno;
}

/* In the child: the sandbox is built while the supervisor writes down its identity; then wait for the word to go. */
static _Noreturn void child_main(const struct child_plan *plan)
{
    struct weir_limits limits;
    struct launch_failure failure = {0};
    (void)setsid();
    launch_be_expendable();
    bool is_built = build(plan, &failure);
    if (read(plan->barrier_fd, &limits, sizeof limits) != (ssize_t)sizeof limits) {
        _exit(0); /* the supervisor ended, or thought better of it */
    }
    weir_isolation_limit_self(&limits);
    if (is_built) {
        execute(plan, &failure);
    }
    (void)!write(plan->status_fd, &failure, sizeof failure);
    _exit(127);
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

weir_status launch_fork(const char *dir, const struct task *task, const struct namespaces *ns,
                        struct weir_arena *arena, struct launch *out, struct weir_error *err)
{
    int output[2] = {-1, -1};
    int barrier[2] = {-1, -1};
    int status[2] = {-1, -1};
    char work[TASK_PATH_BYTES];
    struct child_plan plan = {.program = launch_program(task, arena),
                              .dir = dir,
                              .work = task_path(work, dir, "work"),
                              .arena = arena,
                              .argv = task->argv,
                              .env = launch_environment(dir, task, arena),
                              .task = task,
                              .null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    pid_t pid = -1;
    if (plan.null_fd >= 0 && pipe2(output, O_CLOEXEC) == 0 && pipe2(barrier, O_CLOEXEC) == 0 &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, status) == 0 &&
        fcntl(output[0], F_SETFL, O_NONBLOCK) == 0) {
        pid = namespaces_fork(ns);
    }
    if (pid == 0) {
        close(barrier[1]); /* else it would never see the end of it */
        plan.log_fd = output[1];
        plan.barrier_fd = barrier[0];
        plan.status_fd = status[1];
        child_main(&plan);
    }
    int errno_value = errno;
    if (plan.null_fd >= 0) {
        close(plan.null_fd);
    }
    if (pid < 0) {
        close_pair(output);
        close_pair(barrier);
        close_pair(status);
        return weir_error_set_errno(err, errno_value, "cannot start a process for task %s",
                                    task->id);
    }
    close(output[1]);
    close(barrier[0]);
    close(status[1]);
    *out = (struct launch){.pid = pid,
                           .log_fd = output[0],
                           .barrier_fd = barrier[1],
                           .status_fd = status[0],
                           .user_fd = -1,
                           .mount_fd = -1};
    return WEIR_OK;
}

bool launch_release(struct launch *launch, const struct weir_limits *limits,
                    struct launch_failure *out)
{
    (void)!write(launch->barrier_fd, limits, sizeof *limits);
    close(launch->barrier_fd);
    int fds[PASS_MAX];
    ssize_t n = pass_receive(launch->status_fd, out, sizeof *out, fds);
    if (n == (ssize_t)sizeof *out && fds[0] >= 0) {
        launch->user_fd = fds[0];
        launch->mount_fd = fds[1];
        n = pass_receive(launch->status_fd, out, sizeof *out, fds);
    }
    close(launch->status_fd); /* 0: it was executed */
    return n != (ssize_t)sizeof *out;
}

void launch_abandon(struct launch *launch)
{
    close(launch->barrier_fd);
    close(launch->status_fd);
    close(launch->log_fd);
}

/* Exit statuses as a shell gives them, and of what may be otherwise a moment later, our own. */
static int exit_code_of_exec(int errno_value)
{
    static const int passing[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY, EIO, EINTR};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passing); i++) {
        if (errno_value == passing[i]) {
            return weir_status_exit(WEIR_ERR_IO);
        }
    }
    return errno_value == ENOENT ? WEIR_EXIT_NOT_FOUND : WEIR_EXIT_NOT_RUN;
}

/* What the node's disk or memory did, which may be otherwise a moment later or on another node. */
static bool is_of_node(weir_status status)
{
    return status == WEIR_ERR_IO || status == WEIR_ERR_NOSPACE || status == WEIR_ERR_NOMEM;
}

/* What may be meant by a program that is not found where the task looks. */
static void suggest(const char *dir, const struct task *task, char *out, size_t size)
{
    char path[TASK_PATH_BYTES];
    const char *program = task->argv[0];
    size_t len = strlen(program);
    bool is_script = len > 3 && strcmp(program + len - 3, ".py") == 0;
    out[0] = '\0';
    if (program[0] == '/' && task->sandbox.user != 0 && access(program, F_OK) == 0) {
        (void)snprintf(
            out, size,
            " in what jobs see of this node: start the agent with --share of its folder");
        return;
    }
    (void)snprintf(path, sizeof path, "%s/work/%s", dir, program);
    if (strchr(program, '/') == NULL && access(path, F_OK) == 0) {
        (void)snprintf(out, size, "; to run the job's own file say %s%.100s",
                       is_script ? "python3 " : "./", program);
    }
}

void launch_explain(const struct launch_failure *failure, const char *dir, const struct task *task,
                    struct task_exit *record)
{
    char hint[256] = "";
    if (failure->message[0] != '\0') {
        record->exit_code =
            is_of_node(failure->status) ? weir_status_exit(failure->status) : WEIR_EXIT_NOT_RUN;
        (void)snprintf(record->message, sizeof record->message, "%s", failure->message);
        return;
    }
    record->exit_code = exit_code_of_exec(failure->errno_value);
    if (failure->errno_value == ENOENT) {
        suggest(dir, task, hint, sizeof hint);
    }
    (void)snprintf(record->message, sizeof record->message, "cannot start \"%.100s\": %s%s",
                   task->argv[0], strerror(failure->errno_value), hint);
}
