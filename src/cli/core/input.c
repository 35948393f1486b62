#include "cli/core/input.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that a pipe gives. */
static weir_status read_all(int fd, const char *what, size_t max_bytes, struct weir_buf *buf,
                            struct weir_error *err)
{
    char chunk[1 << 14];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n == 0) {
            return WEIR_OK;
        }
        if (n < 0 && errno != EINTR) {
            return weir_error_set_errno(err, errno, "cannot read %s", what);
        }
        if (n > 0 && weir_buf_append(buf, chunk, (size_t)n) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s holds more than %zu bytes", what,
                                  max_bytes);
        }
    }
}

static weir_status read_pipe(int fd, const char *what, size_t max_bytes, struct weir_arena *arena,
                             char **out, size_t *out_len, struct weir_error *err)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, max_bytes);
    WEIR_TRY(read_all(fd, what, max_bytes, &buf, err));
    *out = weir_arena_memdup(arena, buf.len > 0 ? buf.data : "", buf.len);
    *out_len = buf.len;
    return WEIR_OK;
}

weir_status cli_input_read(const char *path, size_t max_bytes, struct weir_arena *arena, char **out,
                           size_t *out_len, struct weir_error *err)
{
    struct stat info;
    if (strcmp(path, "-") == 0) {
        return isatty(STDIN_FILENO) == 1
                   ? weir_error_set(err, WEIR_ERR_INVALID,
                                    "\"-\" reads standard input, which is the terminal: send "
                                    "something into it, as in `cat FILE | weir …`")
                   : read_pipe(STDIN_FILENO, "standard input", max_bytes, arena, out, out_len, err);
    }
    bool is_pipe = stat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
    if (!is_pipe) {
        return weir_file_read(path, max_bytes, arena, out, out_len, err);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    weir_status status = read_pipe(fd, path, max_bytes, arena, out, out_len, err);
    (void)close(fd);
    return status;
}

weir_status cli_input_yaml(const char *path, size_t max_bytes, bool is_many,
                           struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    char *text;
    size_t len;
    WEIR_TRY(cli_input_read(path, max_bytes, arena, &text, &len, err));
    return weir_yaml_parse(text, len, path, is_many, out, err);
}

void cli_input_project(json_t *document, const char *project)
{
    if (project != NULL && json_is_object(document) &&
        json_object_get(document, "project") == NULL) {
        json_object_set_new(document, "project", json_string(project));
    }
}
