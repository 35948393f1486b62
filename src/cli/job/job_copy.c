/** weir job cp: a file or a folder into a task, or out of one. */
#include "cli/core/progress.h"
#include "cli/job/inside.h"
#include "visit/copy.h"
#include "visit/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "JOB[/TASK]:PATH": the colon; NULL: a path here. */
static const char *find_colon(const char *word)
{
    const char *colon = strchr(word, ':'), *slash = strchr(word, '/');
    bool is_path = word[0] == '/' || word[0] == '.' || word[0] == '\0' || word[0] == ':';
    /* A task has one slash in front of its colon. */
    return is_path || colon == NULL ||
                   (slash != NULL && slash < colon && strchr(slash + 1, '/') != NULL &&
                    strchr(slash + 1, '/') < colon)
               ? NULL
               : colon;
}

/* ---- between the stream and what is here ------------------------------------------------------------------- */

/* A copy that is under way. The one end is the visit's stream, which the caller's thread moves into a pipe or out of it;
 * the other is what lies here, which a thread of its own reads or writes. */
struct here {
    const struct cli_call *call;
    const char *path; /* here */
    int out_fd;       /* -1; else one file goes there */
    bool is_sent;     /* from here into the task */
    int fd;           /* the thread's end of the pipe */
    struct weir_copy_watch watch;
    struct cli_progress progress;
    weir_status status;
    struct weir_error err;
};

static void complain(void *context, const char *path, const char *why)
{
    struct here *here = context;
    char *text = weir_arena_printf(here->call->arena, "%s%s%s", here->path,
                                   path[0] != '\0' ? "/" : "", path);
    weir_frame_disarm(text);
    cli_progress_end(&here->progress);
    (void)fprintf(stderr, "weir: %s: %s\n", text, why);
}

/* "1 file, 0.1 MiB" */
static const char *amount_of(const struct here *here)
{
    long long n = (long long)here->watch.n_files;
    return weir_arena_printf(here->call->arena, "%lld file%s, %.1f MiB", n, n == 1 ? "" : "s",
                             (double)here->watch.n_bytes / (1 << 20));
}

static void pass(void *context)
{
    struct here *here = context;
    cli_progress_tell(here->call, &here->progress, "%lld files, %.1f MiB %s",
                      (long long)here->watch.n_files, (double)here->watch.n_bytes / (1 << 20),
                      here->is_sent ? "sent" : "fetched");
}

static void *run_here(void *context)
{
    struct here *here = context;
    if (here->is_sent) {
        here->status = weir_copy_send(here->path, here->fd, &here->watch, &here->err);
    } else if (here->out_fd >= 0) {
        here->status = weir_copy_take_bytes(here->fd, here->out_fd, &here->watch, &here->err);
    } else {
        here->status = weir_copy_take(here->path, here->fd, &here->watch, &here->err);
    }
    close(here->fd);
    return NULL;
}

/* Signals are for the thread that moves the stream. */
static weir_status start_here(struct here *here, pthread_t *out, struct weir_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(out, NULL, run_here, here);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0 ? WEIR_OK : weir_error_set_errno(err, rc, "cannot copy");
}

/* What of it is there, if not all. */
static weir_status judge(struct cli_call *call, const struct here *here, const char *to,
                         const struct inside_end *end, struct weir_error *err)
{
    bool is_cut = !end->has_exit || end->exit_status > 1;
    bool is_over = !is_cut && end->exit_status == 0 && here->status == WEIR_OK;
    const char *there =
        !here->watch.is_folder ? "nothing was copied"
        : here->is_sent
            ? weir_arena_printf(call->arena, "%s were sent, the last of which may not be there",
                                amount_of(here))
            : weir_arena_printf(call->arena, "%s are there, the rest is not", amount_of(here));
    if (is_cut && (here->status == WEIR_OK || here->status == WEIR_ERR_CORRUPT || here->is_sent)) {
        return weir_error_set(err, WEIR_ERR_PEER, "%s: %s", there,
                              end->has_exit ? "it was interrupted" : end->message);
    }
    if (here->status != WEIR_OK && (here->status != WEIR_ERR_CORRUPT || end->exit_status == 0)) {
        return weir_error_set(err, here->status, "%s%s%s", here->err.message,
                              here->watch.is_folder ? "; " : "",
                              here->watch.is_folder ? there : "");
    }
    call->exit_status = is_over && here->watch.n_left_out == 0 ? 0 : 1;
    if (here->watch.is_folder && !cli_is_json(call)) {
        printf("%s: %s copied%s\n", to, amount_of(here),
               call->exit_status == 0 ? "" : ", less what was left out");
    }
    return WEIR_OK;
}

/* The stream with one end of the pipe, what is here with the other. */
static weir_status move(const struct inside *inside, struct weir_line *line, struct here *here,
                        struct inside_end *out, struct weir_error *err)
{
    int fds[2];
    pthread_t thread;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "cannot copy");
    }
    int own = fds[here->is_sent ? 0 : 1];
    here->fd = fds[here->is_sent ? 1 : 0];
    weir_status status = start_here(here, &thread, err);
    if (status != WEIR_OK) {
        close(fds[0]);
        close(fds[1]);
        return status;
    }
    const struct inside_ends ends = {here->is_sent ? own : -1, here->is_sent ? STDOUT_FILENO : own,
                                     STDERR_FILENO, false, false};
    inside_run(inside, line, &ends, out);
    close(own);
    (void)pthread_join(thread, NULL);
    cli_progress_end(&here->progress);
    return WEIR_OK;
}

static weir_status copy(struct cli_call *call, const char *word, const char *path,
                        struct here *here, const char *to, struct weir_error *err)
{
    struct inside inside;
    struct inside_end end;
    struct weir_line *line = weir_arena_alloc(call->arena, sizeof *line);
    json_t *body = json_pack("{s:s,s:s}", "kind", here->is_sent ? "write" : "read", "path", path);
    if (body == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the path is no UTF-8");
    }
    here->call = call;
    here->watch = (struct weir_copy_watch){.complain = complain, .pass = pass, .context = here};
    WEIR_TRY(inside_begin(call, word, body, &inside, err));
    WEIR_TRY(inside_open(&inside, line, err));
    WEIR_TRY(move(&inside, line, here, &end, err));
    return judge(call, here, to, &end, err);
}

static weir_status copy_out(struct cli_call *call, const char *word, const char *path,
                            const char *to, struct weir_error *err)
{
    struct stat info;
    struct here here = {.path = to, .out_fd = -1};
    if (path[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.80s:%.200s: which file or folder?", word,
                              path);
    }
    bool is_there = stat(to, &info) == 0;
    if (strcmp(to, "-") == 0 || (is_there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        here.out_fd = strcmp(to, "-") == 0 ? dup(STDOUT_FILENO) /* /dev/stdout, a pipe */
                                           : open(to, O_WRONLY | O_CLOEXEC);
        if (here.out_fd < 0) {
            return weir_error_set_errno(err, errno, "cannot write %s", to);
        }
    }
    weir_status status = copy(call, word, path, &here, to, err);
    if (here.out_fd >= 0) {
        close(here.out_fd);
    }
    return status;
}

static weir_status copy_in(struct cli_call *call, const char *from, const char *word,
                           const char *path, struct weir_error *err)
{
    struct here here = {.path = from, .out_fd = -1, .is_sent = true};
    if (strcmp(from, "-") != 0 && access(from, R_OK) != 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", from);
    }
    return copy(call, word, path[0] != '\0' ? path : "./", &here,
                weir_arena_printf(call->arena, "%s:%s", word, path), err);
}

static weir_status run_copy(struct cli_call *call, struct weir_error *err)
{
    const char *from = call->words[0], *to = call->words[1];
    const char *from_colon = find_colon(from), *to_colon = find_colon(to);
    if ((from_colon != NULL) == (to_colon != NULL)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "one of the two is in a task, and written JOB[/TASK]:PATH; a file here "
            "whose name has a colon is written ./NAME");
    }
    if (from_colon != NULL) {
        return copy_out(call, weir_arena_memdup(call->arena, from, (size_t)(from_colon - from)),
                        from_colon + 1, to, err);
    }
    return copy_in(call, from, weir_arena_memdup(call->arena, to, (size_t)(to_colon - to)),
                   to_colon + 1, err);
}

const struct cli_command cli_job_cp = {
    .name = "job cp",
    .usage = "JOB[/TASK]:PATH PATH, or PATH JOB[/TASK]:PATH",
    .summary = "Copy a file or a folder out of a task that runs, or into it",
    .help = "In a task PATH is as it has it: absolute, or in its folder. What goes to a folder "
            "that is there, or to a path\n"
            "that ends with /, goes into it under its own name; what is in DIR/. without DIR. A "
            "folder is copied with all\n"
            "below it, rights and empty folders too, and added to what is there. Links are copied "
            "if they lead to something\n"
            "within it; other links, pipes and devices are left out and named, and the exit status "
            "is 1. A file is there\n"
            "whole or not at all. - is standard input or output, of one file. It needs no program "
            "in the task's image.",
    CLI_WORDS(2, 2),
    CLI_PLAIN,
    .run = run_copy,
};
