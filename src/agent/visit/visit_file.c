/* Files and folders of a task, copied by ourselves: an image may have no program that does. In the task's sandbox, as its
 * user: paths, links and rights are what the task's own are. */
#include "agent/visit/visit.h"

#include "visit/copy.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void complain(void *context, const char *path, const char *why)
{
    const char *root = context;
    dprintf(2, "%s%s%s: %s\n", root, path[0] != '\0' ? "/" : "", path, why);
}

static void on_end(int signal_number)
{
    weir_copy_abandon(); // NOLINT(bugprone-signal-handler): it is made for that, and calls unlinkat alone
    _exit(128 + signal_number);
}

static int end(weir_status status, const struct weir_copy_watch *watch,
               const struct weir_error *err)
{
    if (status != WEIR_OK) {
        dprintf(2, "%s\n", err->message);
    }
    return status != WEIR_OK || watch->n_left_out > 0;
}

int visit_file_read(const char *path)
{
    struct weir_error err;
    struct weir_copy_watch watch = {.complain = complain, .context = (void *)path};
    weir_status status = weir_copy_send(path, STDOUT_FILENO, &watch, &err);
    return end(status, &watch, &err);
}

int visit_file_write(const char *path)
{
    struct weir_error err;
    struct weir_copy_watch watch = {.complain = complain, .context = (void *)path};
    (void)signal(SIGHUP, on_end);
    (void)signal(SIGINT, on_end);
    (void)signal(SIGTERM, on_end);
    weir_status status = weir_copy_take(path, STDIN_FILENO, &watch, &err);
    return end(status, &watch, &err);
}
