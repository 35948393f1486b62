#include "agent/visit/visit.h"

#include "agent/image/image_run.h"

#include "base/file.h"
#include "base/log.h"
#include "visit/visit.h"

#include <dirent.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ORDER_PREFIX    "visit."
#define ORDER_MAX_BYTES ((size_t)1 << 20)

/* ---- orders ------------------------------------------------------------------------------------------ */

static weir_status read_command(const json_t *command, struct weir_arena *arena,
                                struct visit_order *out, struct weir_error *err)
{
    size_t i, n = json_array_size(command);
    const json_t *word;
    if (command == NULL) {
        return WEIR_OK;
    }
    if (n == 0 || n > WEIR_VISIT_WORDS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.command: expected words");
    }
    out->command = WEIR_ARENA_ARRAY(arena, n + 1, char *);
    json_array_foreach(command, i, word)
    {
        if (!json_is_string(word)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.command: expected words");
        }
        out->command[i] = weir_arena_strdup(arena, json_string_value(word));
    }
    out->command[n] = NULL;
    return WEIR_OK;
}

/** Read one. INVALID names the member. Pure. */
static weir_status order_read(const json_t *object, struct weir_arena *arena,
                              struct visit_order *out, struct weir_error *err)
{
    struct visit_order order = {
        .stream = json_integer_value(json_object_get(object, "stream")),
        .rows = json_integer_value(json_object_get(object, "rows")),
        .columns = json_integer_value(json_object_get(object, "columns")),
        .port = json_integer_value(json_object_get(object, "port")),
        .has_tty = json_is_true(json_object_get(object, "tty")),
    };

    const struct {
        const char *name;
        const char **to;
        bool is_needed;
    } texts[] = {{"id", &order.id, true},
                 {"kind", &order.kind, true},
                 {"secret", &order.secret, true},
                 {"server", &order.server, true},
                 {"ca_file", &order.ca_file, false},
                 {"term", &order.term, false},
                 {"path", &order.path, false}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        const char *text = json_string_value(json_object_get(object, texts[i].name));
        if (text == NULL && texts[i].is_needed) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected text", texts[i].name);
        }
        *texts[i].to = text != NULL ? weir_arena_strdup(arena, text) : NULL;
    }
    WEIR_TRY(read_command(json_object_get(object, "command"), arena, &order, err));
    *out = order;
    return WEIR_OK;
}

static weir_status leave_order(const char *tasks_dir, const char *server, const char *ca_file,
                               const json_t *order, struct weir_error *err)
{
    char dir[TASK_PATH_BYTES], name[TASK_ID_MAX_BYTES + 64], path[TASK_PATH_BYTES];
    const char *id = json_string_value(json_object_get(order, "id"));
    const char *task = json_string_value(json_object_get(order, "task"));
    long long attempt = json_integer_value(json_object_get(order, "attempt"));
    if (id == NULL || task == NULL || !task_is_id(id) || !task_is_id(task)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "an order without \"id\" and \"task\"");
    }
    (void)snprintf(dir, sizeof dir, "%.700s/%s.%lld", tasks_dir, task, attempt);
    if (!task_has(dir, "run.json") || task_has(dir, "exit.json")) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "attempt %lld of task %s does not run",
                              attempt, task);
    }
    (void)snprintf(name, sizeof name, ORDER_PREFIX "%s.%lld", id,
                   (long long)json_integer_value(json_object_get(order, "stream")));
    WEIR_AUTO(weir_json_auto_free) json_t *whole = json_deep_copy(order);
    json_object_set_new(whole, "server", json_string(server));
    if (ca_file != NULL) {
        json_object_set_new(whole, "ca_file", json_string(ca_file));
    }
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(whole, JSON_COMPACT);
    return text != NULL
               ? weir_file_write_atomic(task_path(path, dir, name), text, strlen(text), 0600, err)
               : weir_error_set(err, WEIR_ERR_INVALID, "an order that is no UTF-8");
}

void visit_leave_orders(const char *tasks_dir, const char *server, const char *ca_file,
                        const json_t *orders)
{
    size_t i;
    const json_t *order;
    json_array_foreach(orders, i, order)
    {
        struct weir_error err;
        if (leave_order(tasks_dir, server, ca_file, order, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "visit_not_begun", WEIR_KV_STR("error", err.message));
        }
    }
}

/* ---- runners ------------------------------------------------------------------------------------------ */

/* Locks and pipes of the supervisor are not to be held. */
static void close_all_but(const struct namespaces *ns)
{
    const int kept[] = {ns->user_fd, ns->pid_fd,        ns->ipc_fd,
                        ns->net_fd,  ns->inner_user_fd, ns->mount_fd};
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0U;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(kept); i++) {
            unsigned fd = (unsigned)kept[i];
            next = kept[i] >= 0 && fd >= from && fd < next ? fd : next;
        }
        if (next == ~0U) {
            (void)close_range(from, ~0U, 0);
            return;
        }
        if (next > from) {
            (void)close_range(from, next - 1, 0);
        }
        from = next + 1;
    }
}

/* What a program in an image has of its own began after crun did. */
static struct visit_host find_place(const struct visit_host *host, struct namespaces *ns)
{
    struct visit_host own = *host;
    *ns = *host->ns;
    ns->hold_fd = -1;
    if (host->task->image != NULL) {
        struct process_id program;
        own.pid = image_run_find(host->dir, host->pid, &program) ? program.pid : 0;
        if (own.pid > 0) {
            (void)namespaces_open_sandbox(ns, own.pid);
        }
    }
    own.ns = ns;
    return own;
}

static _Noreturn void be_runner(const struct visit_host *host, const char *path, pid_t parent)
{
    struct namespaces ns;
    struct visit_host own = find_place(host, &ns);
    struct weir_arena arena;
    struct weir_error err;
    struct visit_order order;
    json_t *object = NULL;
    sigset_t none;
    (void)prctl(PR_SET_NAME, "weir-visit", 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGTERM, SIG_IGN); /* a task that stops may still be looked at */
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    close_all_but(&ns);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    weir_arena_init(&arena, 0);
    weir_status status = weir_json_load(path, ORDER_MAX_BYTES, &object, &err);
    (void)unlink(path);
    if (status == WEIR_OK) {
        status = order_read(object, &arena, &order, &err);
    }
    if (status != WEIR_OK || getppid() != parent) {
        _exit(1);
    }
    visit_run(&own, &order);
}

void visit_start_all(const struct visit_host *host)
{
    char path[TASK_PATH_BYTES], taken[TASK_PATH_BYTES];
    pid_t parent = getpid();
    DIR *dir = opendir(host->dir);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        if (strncmp(entry->d_name, ORDER_PREFIX, sizeof ORDER_PREFIX - 1) != 0 ||
            strchr(entry->d_name, '~') != NULL || strstr(entry->d_name, ".tmp") != NULL) {
            continue;
        }
        /* Taken by name, so that no order is begun twice. */
        (void)task_path(path, host->dir, entry->d_name);
        (void)snprintf(taken, sizeof taken, "%.*s~", (int)sizeof taken - 2, path);
        pid_t pid = rename(path, taken) == 0 ? fork() : -1;
        if (pid == 0) {
            be_runner(host, taken, parent);
        }
        if (pid < 0) {
            (void)unlink(taken);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}
