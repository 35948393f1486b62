#include "cli/job/git_state.h"

#include "base/buf.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define WORDS_MAX      24
#define HEX            "0123456789abcdef"

static void read_all(int fd, struct weir_buf *out, bool *out_is_full)
{
    char bytes[65536];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
        *out_is_full = n > 0 && weir_buf_append(out, bytes, (size_t)n) != WEIR_OK;
        if (*out_is_full) {
            return; /* the child gets SIGPIPE */
        }
    }
}

/* Run git and take what it prints. False if it fails; *out_is_full: it printed more than `out` may hold. */
static bool run(char *const argv[], struct weir_buf *out, bool *out_is_full)
{
    int fds[2];
    pid_t pid;
    struct weir_error ignored;
    *out_is_full = false;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    const struct weir_spawn spawn = {.argv = argv, .out = fds[1]};
    bool is_begun = weir_spawn_start(&spawn, &pid, &ignored) == WEIR_OK;
    close(fds[1]);
    if (is_begun) {
        read_all(fds[0], out, out_is_full);
    }
    close(fds[0]);
    bool is_well = is_begun && weir_spawn_wait(pid) == 0;
    return is_well && !*out_is_full;
}

/* git in `dir`; what a repository's own settings would have it execute is not executed. */
static bool git(const char *dir, const char *const *words, struct weir_buf *out, bool *out_is_full)
{
    const char *argv[WORDS_MAX] = {"git", "-c", "core.fsmonitor=false", "-C", dir};
    size_t n = 5;
    while (*words != NULL && n < WORDS_MAX - 1) {
        argv[n++] = *words++;
    }
    argv[n] = NULL;
    return run((char *const *)(uintptr_t)argv, out, out_is_full);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Its first line; NULL if it fails or prints none. */
static char *git_line(const char *dir, const char *const *words, struct weir_arena *arena)
{
    struct weir_buf text;
    bool is_full;
    char *line = NULL;
    weir_buf_init(&text, LINE_MAX_BYTES);
    if (git(dir, words, &text, &is_full) && text.len > 0) {
        line = weir_arena_memdup(arena, text.data, text.len);
        line[strcspn(line, "\n")] = '\0';
        line = line[0] != '\0' ? line : NULL;
    }
    weir_buf_fini(&text);
    return line;
}

char *git_address_plain(const char *address, struct weir_arena *arena)
{
    const char *scheme = strstr(address, "://");
    const char *host = scheme != NULL ? scheme + 3 : address;
    size_t len = strcspn(host, "/");
    const char *at = memrchr(host, '@', len);
    bool is_named =
        at != NULL && (scheme != NULL || memchr(host, ':', (size_t)(at - host)) != NULL);
    return is_named ? weir_arena_printf(arena, "%.*s%s", (int)(host - address), address, at + 1)
                    : weir_arena_strdup(arena, address);
}

static void read_patch(const char *dir, struct weir_arena *arena, struct git_state *state)
{
    struct weir_buf text;
    weir_buf_init(&text, GIT_PATCH_MAX);
    if (git(dir,
            WORDS("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "HEAD", "--",
                  "."),
            &text, &state->is_patch_too_large) &&
        text.len > 0) {
        state->patch = weir_arena_memdup(arena, text.data, text.len);
        state->patch_bytes = text.len;
    }
    weir_buf_fini(&text);
}

bool git_state_read(const char *dir, struct weir_arena *arena, struct git_state *out)
{
    struct git_state state = {0};
    state.commit = git_line(dir, WORDS("rev-parse", "--verify", "-q", "HEAD"), arena);
    if (state.commit == NULL || strspn(state.commit, HEX) != strlen(state.commit)) {
        return false;
    }
    state.branch = git_line(dir, WORDS("symbolic-ref", "--short", "-q", "HEAD"), arena);
    char *origin = git_line(dir, WORDS("remote", "get-url", "origin"), arena);
    state.repository = origin != NULL ? git_address_plain(origin, arena) : NULL;
    state.is_dirty = git_line(dir, WORDS("status", "--porcelain", "--", "."), arena) != NULL;
    if (state.is_dirty) {
        read_patch(dir, arena, &state);
    }
    *out = state;
    return true;
}

char *git_resolve(const char *address, const char *ref, struct weir_arena *arena)
{
    char *line = git_line(".", WORDS("ls-remote", "-q", "--", address, ref), arena);
    if (line == NULL || strspn(line, HEX) < 40) {
        return NULL;
    }
    line[strspn(line, HEX)] = '\0';
    return line;
}
