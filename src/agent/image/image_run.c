#include "agent/image/image_run.h"

#include "agent/image/image.h"
#include "agent/namespaces.h"
#include "agent/sandbox_enter.h"
#include "base/file.h"
#include "base/json.h"
#include "base/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MAX_BYTES ((size_t)1 << 20)
#define LEFT_MAX         4096
#define OCI_VERSION      "1.0.2"
#define TELL_AFTER_MS    2000 /* most images are here sooner */

char *image_run_program(struct weir_arena *arena)
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders); i++) {
        char *path = weir_arena_printf(arena, "%s/crun", folders[i]);
        if (access(path, X_OK) == 0) {
            return path;
        }
    }
    return NULL;
}

/* ---- in the supervisor ----------------------------------------------------------------------- */

static const char *find_pair(const struct task_pair *pairs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pairs[i].name, name) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

/* The task that waits while its image is fetched. */
struct waiting {
    const char *dir, *image;
    struct log_sink *log;
};

static bool is_to_stop(void *context)
{
    const struct waiting *waiting = context;
    int64_t grace_ms;
    return task_stop_read(waiting->dir, &grace_ms);
}

static void tell(void *context, const char *how_far)
{
    const struct waiting *waiting = context;
    char line[400];
    int len = snprintf(line, sizeof line, "weir: image \"%.80s\": %s\n", waiting->image, how_far);
    log_sink_write(waiting->log, line, (size_t)len);
}

/* The variables that the image sets. */
static weir_status read_env(const char *image_dir, struct task *task, struct weir_arena *arena,
                            struct weir_error *err)
{
    size_t i;
    json_t *record WEIR_AUTO(weir_json_auto_free) = NULL, *entry;
    WEIR_TRY(weir_json_load(weir_arena_printf(arena, "%s/image.json", image_dir), RECORD_MAX_BYTES,
                            &record, err));
    const json_t *env = json_object_get(record, "env");
    char **out = WEIR_ARENA_ARRAY(arena, json_array_size(env) + 1, char *);
    size_t n = 0;
    json_array_foreach(env, i, entry)
    {
        if (json_is_string(entry) && strchr(json_string_value(entry), '=') != NULL) {
            out[n++] = weir_arena_strdup(arena, json_string_value(entry));
        }
    }
    task->image_env = out; /* NULL at the end: the arena is cleared */
    return WEIR_OK;
}

weir_status image_run_get(const char *dir, struct task *task, struct log_sink *log,
                          struct weir_arena *arena, int *out_lock_fd, struct weir_error *err)
{
    struct waiting waiting = {dir, task->image, log};
    const struct image_watch watch = {.is_stopped = is_to_stop,
                                      .tell = tell,
                                      .tell_after_ms = TELL_AFTER_MS,
                                      .context = &waiting};

    const struct image_source source = {
        .name = task->image,
        .agent_dir = task->sandbox.agent_dir,
        .folder = task->images_dir,
        .server = find_pair(task->env, task->n_env, "WEIR_SERVER"),
        .token = find_pair(task->files, task->n_files, "token"),
        .ca_file = task->sandbox.ca_file,
    };
    if (image_run_program(arena) == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "image \"%.80s\": this node has no crun, which starts images: "
                              "apt-get install crun there",
                              task->image);
    }
    if (task->sandbox.user == 0 || !task->sandbox.is_alone) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "image \"%.80s\": this node cannot separate a task so far that it "
                              "has a root of its own: weir doctor says what is missing",
                              task->image);
    }
    char *image_dir = NULL;
    WEIR_TRY(image_get(&source, &watch, arena, &image_dir, out_lock_fd, err));
    task->image_dir = image_dir;
    return read_env(image_dir, task, arena, err);
}

/* The last of its numbers, which is that in its own namespace; 0: it is gone. */
static pid_t number_in_sandbox(pid_t pid)
{
    char path[64], text[4096];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    text[len] = '\0';
    const char *line = strstr(text, "\nNSpid:"), *state = strstr(text, "\nState:\t");
    if (line == NULL || state == NULL || state[sizeof "\nState:\t" - 1] == 'Z') {
        return 0;
    }
    const char *end = line + 1 + strcspn(line + 1, "\n"), *last = end;
    while (last > line && last[-1] >= '0' && last[-1] <= '9') {
        last--;
    }
    return (pid_t)strtol(last, NULL, 10);
}

/* What crun wrote down of its program: its number in the sandbox; 0: nothing yet. */
static pid_t recorded_number(const char *dir)
{
    struct weir_arena arena;
    json_t *status = NULL;
    weir_arena_init(&arena, 0);
    weir_status read = weir_json_load(weir_arena_printf(&arena, "%s/image/run/task/status", dir),
                                      RECORD_MAX_BYTES, &status, NULL);
    weir_arena_fini(&arena);
    pid_t number = read == WEIR_OK ? (pid_t)json_integer_value(json_object_get(status, "pid")) : 0;
    json_decref(read == WEIR_OK ? status : NULL);
    return number;
}

/* The program among crun's processes; NULL: it is none of them. */
static const struct process_id *find_program(pid_t number, const struct process_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (number_in_sandbox(ids[i].pid) == number) {
            return &ids[i];
        }
    }
    return NULL;
}

bool image_run_find(const char *dir, pid_t crun, struct process_id *out)
{
    static struct process_id ids[LEFT_MAX];
    pid_t number = recorded_number(dir);
    size_t n = number > 0 ? process_descendants(crun, ids, LEFT_MAX) : 0;
    const struct process_id *program = find_program(number, ids, n);
    if (program != NULL) {
        *out = *program;
    }
    return program != NULL;
}

bool image_run_end(const char *dir, pid_t crun, int signal_number)
{
    static struct process_id ids[LEFT_MAX];
    pid_t number = recorded_number(dir);
    size_t n = number > 0 ? process_descendants(crun, ids, LEFT_MAX) : 0;
    if (number == 0 || find_program(number, ids, n) != NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        (void)process_signal(&ids[i], signal_number);
    }
    return true;
}

void image_run_explain(struct task_exit *record)
{
    static const char missing[] = "executable file `", denied[] = "open executable";
    if (record->exit_code == 1 && strncmp(record->message, missing, sizeof missing - 1) == 0) {
        record->exit_code = WEIR_EXIT_NOT_FOUND;
    } else if (record->exit_code == 1 && strncmp(record->message, denied, sizeof denied - 1) == 0) {
        record->exit_code = WEIR_EXIT_NOT_RUN;
    }
}

/* ---- the root -------------------------------------------------------------------------------- */

static char *part(const char *dir, const char *name, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/image/%s", dir, name);
}

static weir_status fail(const struct task *task, const char *what, struct weir_error *err)
{
    return weir_error_set_errno(err, errno, "cannot build the root of task %s from image %.80s: %s",
                                task->id, task->image, what);
}

static bool set(int context, const char *key, const char *value)
{
    return fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

/* The image under a folder of the attempt's own, which takes the mount points. */
static bool mount_root(const char *dir, const struct task *task, struct weir_arena *arena)
{
    int context = fsopen("overlay", FSOPEN_CLOEXEC), tree = -1;
    bool is_good =
        context >= 0 &&
        set(context, "lowerdir", weir_arena_printf(arena, "%s/rootfs", task->image_dir)) &&
        set(context, "upperdir", part(dir, "up", arena)) &&
        set(context, "workdir", part(dir, "wk", arena)) &&
        (geteuid() == 0 || fsconfig(context, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0) &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
    tree = is_good ? fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) : -1;
    is_good = tree >= 0 && move_mount(tree, "", AT_FDCWD, part(dir, "root", arena),
                                      MOVE_MOUNT_F_EMPTY_PATH) == 0;
    int errno_value = errno;
    if (context >= 0) {
        close(context);
    }
    if (tree >= 0) {
        close(tree);
    }
    errno = errno_value;
    return is_good;
}

/* crun refuses machines with control groups of both versions; it is to make none. */
static void hide_mixed_groups(void)
{
    if (weir_path_is_dir("/sys/fs/cgroup/unified")) {
        (void)mount("none", "/sys/fs/cgroup/unified", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY,
                    "size=4k");
    }
}

static weir_status make_parts(const char *dir, struct weir_arena *arena, struct weir_error *err)
{
    static const char *const parts[] = {"up", "wk", "root", "bundle", "run"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        WEIR_TRY(weir_dir_make(part(dir, parts[i], arena), 0700, err));
    }
    return chmod(part(dir, "up", arena), 0755) == 0 /* the new root itself */
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot make the root of a task");
}

/* ---- config.json ----------------------------------------------------------------------------- */

/* crun mounts again with the options that it is given: what was read-only is only if it is said. */
static void add_mount(json_t *list, const char *path, const char *bind, const char *access)
{
    bool is_dev = strcmp(path, "/dev") == 0;
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:[s, s, s, s]}", "destination", path,
                                          "source", path, "type", "bind", "options", bind, access,
                                          "nosuid", is_dev ? "dev" : "nodev"));
}

static json_t *mounts_of(const struct sandbox_view *view)
{
    static const char *const hosts[] = {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"};
    static const char *const temporary[] = {"/tmp", "/var/tmp"};
    json_t *list = json_array();
    add_mount(list, "/proc", "rbind", "rw");
    add_mount(list, "/dev", "rbind", "ro");
    add_mount(list, "/sys", "rbind", "ro");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(temporary); i++) {
        if (weir_path_is_dir(temporary[i])) {
            /* What lies in a /tmp of the machine is shown by name, below. */
            add_mount(list, temporary[i], geteuid() == 0 ? "bind" : "rbind", "rw");
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(hosts); i++) {
        if (weir_path_exists(hosts[i])) {
            add_mount(list, hosts[i], "bind", "ro");
        }
    }
    for (size_t i = 0; i < view->n_shown; i++) {
        add_mount(list, view->shown[i].path, "rbind", view->shown[i].is_writable ? "rw" : "ro");
    }
    return list;
}

static json_t *texts_of(char *const texts[])
{
    json_t *list = json_array();
    for (size_t i = 0; texts[i] != NULL; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    return list;
}

static json_t *process_of(const char *dir, const struct task *task, char *const env[],
                          struct weir_arena *arena)
{
    bool is_root = geteuid() == 0;
    const struct sandbox *sandbox = &task->sandbox;
    json_t *user = json_pack("{s:I, s:I}", "uid", (json_int_t)(is_root ? sandbox->user : 0), "gid",
                             (json_int_t)(is_root ? sandbox->user : 0));
    if (is_root && sandbox->readers != 0) {
        json_object_set_new(user, "additionalGids", json_pack("[I]", (json_int_t)sandbox->readers));
    }
    return json_pack("{s:b, s:o, s:o, s:o, s:s, s:b, s:{s:[], s:[], s:[], s:[], s:[]}}", "terminal",
                     0, "user", user, "args", texts_of(task->argv), "env", texts_of(env), "cwd",
                     weir_arena_printf(arena, "%s/work", dir), "noNewPrivileges", 1, "capabilities",
                     "bounding", "effective", "inheritable", "permitted", "ambient");
}

static weir_status write_config(const char *dir, const struct task *task, char *const env[],
                                const struct sandbox_view *view, struct weir_arena *arena,
                                struct weir_error *err)
{
    json_t *config = json_pack(
        "{s:s, s:{s:s, s:b}, s:o, s:o, s:{s:[{s:s}]}, s:{s:s?}}", "ociVersion", OCI_VERSION, "root",
        "path", part(dir, "root", arena), "readonly", 1, "process",
        process_of(dir, task, env, arena), "mounts", mounts_of(view), "linux", "namespaces", "type",
        "mount", "annotations", "run.oci.seccomp_bpf_data", weir_syscall_filter_text(true, arena));
    WEIR_AUTO(weir_auto_free) char *text = config != NULL ? json_dumps(config, 0) : NULL;
    json_decref(config);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task %s: a word or a variable is no UTF-8",
                              task->id);
    }
    return weir_file_write_atomic(
        weir_arena_printf(arena, "%s/config.json", part(dir, "bundle", arena)), text, strlen(text),
        0600, err);
}

/* ---- in the child ---------------------------------------------------------------------------- */

weir_status image_run_build(const char *dir, const struct task *task, char *const env[],
                            struct weir_arena *arena, struct weir_error *err)
{
    struct sandbox_view view = {
        .kept = {part(dir, "root", arena), part(dir, "bundle", arena), part(dir, "run", arena)},
        .n_kept = 3};
    WEIR_TRY(make_parts(dir, arena, err));
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return fail(task, "no mount namespace", err);
    }
    hide_mixed_groups();
    if (!mount_root(dir, task, arena)) {
        return fail(task, "no overlay file system here", err);
    }
    WEIR_TRY(sandbox_enter(dir, task, &view, arena, err));
    WEIR_TRY(write_config(dir, task, env, &view, arena, err));
    return geteuid() == 0 || namespaces_enter_user_as_root() ? WEIR_OK
                                                             : fail(task, "no user namespace", err);
}

void image_run_execute(const char *dir, struct weir_arena *arena)
{
    char *program = image_run_program(arena);
    char *const argv[] = {"crun",
                          "--root",
                          part(dir, "run", arena),
                          "--cgroup-manager=disabled",
                          "run",
                          "--no-subreaper",
                          "--bundle",
                          part(dir, "bundle", arena),
                          "task",
                          NULL};
    char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    /* As for all tasks (privileges.h): crun passes it on. */
    (void)setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    errno = ENOENT;
    if (program != NULL) {
        (void)execve(program, argv, env);
    }
}
