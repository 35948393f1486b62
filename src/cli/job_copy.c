/** weir job cp: a file into a task, or out of one. */
#include "cli/inside.h"

#include "base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct copy_options {
    struct cli_common common;
};

static const struct weir_option copy_options[] = {CLI_COMMON_OPTIONS(copy_options)};

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

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static weir_status copy(struct cli_call *call, const char *word, const char *kind, const char *path,
                        mode_t mode, const struct inside_ends *ends, struct weir_error *err)
{
    struct inside inside;
    struct inside_end end;
    struct weir_line *line = weir_arena_alloc(call->arena, sizeof *line);
    json_t *body = json_pack("{s:s,s:s,s:I}", "kind", kind, "path", path, "mode", (json_int_t)mode);
    if (body == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the path is no UTF-8");
    }
    WEIR_TRY(inside_begin(call, word, body, &inside, err));
    WEIR_TRY(inside_open(&inside, line, err));
    inside_run(&inside, line, ends, &end);
    if (!end.has_exit) {
        return weir_error_set(err, WEIR_ERR_PEER, "nothing was copied: %s", end.message);
    }
    call->exit_status = end.exit_status;
    return WEIR_OK;
}

/* Whole, or not at all. */
static weir_status copy_out(struct cli_call *call, const char *word, const char *path,
                            const char *to, struct weir_error *err)
{
    struct stat info;
    char uuid[WEIR_UUID_BYTES];
    bool is_folder = to[strlen(to) - 1] == '/' || (stat(to, &info) == 0 && S_ISDIR(info.st_mode));
    if (base_name(path)[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.80s:%.200s: which file?", word, path);
    }
    if (is_folder) {
        to = weir_arena_printf(call->arena, "%s/%s", to, base_name(path));
    }
    if (lstat(to, &info) == 0 && !S_ISREG(info.st_mode)) { /* /dev/stdout, a pipe, a link */
        int out = open(to, O_WRONLY | O_TRUNC | O_CLOEXEC);
        const struct inside_ends ends = {-1, out, STDERR_FILENO, false, false};
        return out < 0 ? weir_error_set_errno(err, errno, "cannot write %s", to)
                       : copy(call, word, "read", path, 0, &ends, err);
    }
    weir_uuid_make(uuid);
    char *temporary = weir_arena_printf(call->arena, "%s.%s.tmp", to, uuid);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot write %s", to);
    }
    const struct inside_ends ends = {-1, fd, STDERR_FILENO, false, false};
    weir_status status = copy(call, word, "read", path, 0, &ends, err);
    if (close(fd) != 0 && status == WEIR_OK) {
        status = weir_error_set_errno(err, errno, "cannot write %s", to);
    }
    if (status == WEIR_OK && call->exit_status == 0 && rename(temporary, to) != 0) {
        status = weir_error_set_errno(err, errno, "cannot write %s", to);
    }
    if (status != WEIR_OK || call->exit_status != 0) {
        (void)unlink(temporary);
    }
    return status;
}

static weir_status copy_in(struct cli_call *call, const char *from, const char *word,
                           const char *path, struct weir_error *err)
{
    struct stat info;
    bool is_standard = strcmp(from, "-") == 0;
    int fd = is_standard ? STDIN_FILENO : open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", from);
    }
    if (S_ISDIR(info.st_mode)) {
        close(fd);
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "%.200s is a folder: one file is copied at a time, or all of it by tar "
            "-c %.60s | weir job exec %.60s -- tar -x",
            from, from, word);
    }
    size_t len = strlen(path);
    if (len == 0 || path[len - 1] == '/') {
        path =
            weir_arena_printf(call->arena, "%s%s", path, is_standard ? "stdin" : base_name(from));
    }
    const struct inside_ends ends = {fd, STDOUT_FILENO, STDERR_FILENO, false, false};
    mode_t mode = S_ISREG(info.st_mode) ? info.st_mode & 0777 : 0644;
    weir_status status = copy(call, word, "write", path, mode, &ends, err);
    if (!is_standard) {
        close(fd);
    }
    return status;
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
    .usage = "JOB[/TASK]:PATH FILE, or FILE JOB[/TASK]:PATH",
    .summary = "Copy a file out of a task that runs, or into it",
    .help =
        "PATH is as the task has it: absolute, or in its folder. A path that ends with / is a "
        "folder to\n"
        "copy into; - in place of the file to copy is standard input. The file is there whole or "
        "not at\n"
        "all, and is the task's user's. It needs no program in the task's image.",
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(copy_options, copy_options),
    .run = run_copy,
};
