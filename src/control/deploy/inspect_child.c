#include "control/inspect_child.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX  22
#define CANNOT_EXECUTE 127
#define MS_PER_S       1000
#define STOP_LOOK_MS   100

/* How a line of the child begins that says what it could not give up (serve/model/confine.h). */
#define INSPECT_LACKS "not confined: "

/* A sanitizer reserves terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDS_ADDRESSES 0
#else
#define BOUNDS_ADDRESSES 1
#endif

/* What the child does between fork and exec: only calls that a signal handler may make, since other
 * threads of the server may hold any lock. All is made ready before. */
struct child {
    char *argv[ARGUMENTS_MAX];
    char beside[4096];
    char memory_mb[24];
    bool is_beside;
    struct rlimit memory, processor;
    int out, said; /* Write ends. */
    pid_t parent;
};

static char *const bare_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                                         "OMP_WAIT_POLICY=passive", NULL};

static void limit(int resource, rlim_t most)
{
    (void)setrlimit(resource, &(struct rlimit){most, most});
}

static _Noreturn void become(const struct child *child)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(child->out, STDOUT_FILENO) < 0 || dup2(child->said, STDERR_FILENO) < 0 ||
        chdir("/") != 0) {
        _exit(CANNOT_EXECUTE);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, 64);
    (void)setrlimit(RLIMIT_CPU, &child->processor);
    if (BOUNDS_ADDRESSES) {
        (void)setrlimit(RLIMIT_AS, &child->memory);
    }
    (void)setpriority(PRIO_PROCESS, 0, 10);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (child->is_beside) {
        (void)execve(child->beside, child->argv, bare_environment);
    }
    (void)execvpe(child->argv[0], child->argv, bare_environment);
    _exit(CANNOT_EXECUTE);
}

/* Where the program lies: as given, or weir-worker beside this one. */
static void find_program(const char *program, struct child *child)
{
    static char name[] = "weir-worker";
    child->argv[0] = program != NULL ? (char *)program : name;
    ssize_t len = readlink("/proc/self/exe", child->beside, sizeof child->beside - 1);
    if (program == NULL && len > 0) {
        child->beside[len] = '\0';
        char *slash = strrchr(child->beside, '/');
        if (slash != NULL &&
            (size_t)(slash - child->beside) + sizeof name + 1 < sizeof child->beside) {
            memcpy(slash + 1, name, sizeof name);
            child->is_beside = true;
        }
    }
}

static void put_arguments(const struct inspect_request *request, struct child *child)
{
    const char *const pairs[][2] = {
        {"--labels", request->labels},           {"--preprocess", request->preprocess},
        {"--inputs", request->inputs},           {"--golden", request->golden},
        {"--onnxruntime", request->onnxruntime}, {"--name", request->name}};
    size_t n = 1;
    child->argv[n++] = (char *)"inspect";
    child->argv[n++] = (char *)request->path;
    /* It ends with a sentence there, before the kernel ends it without one. */
    child->argv[n++] = (char *)"--memory-mb";
    child->argv[n++] = child->memory_mb;
    child->argv[n++] = (char *)"--threads";
    child->argv[n++] = (char *)"2";
    child->argv[n++] = (char *)"--confine";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(pairs); i++) {
        if (pairs[i][1] != NULL) {
            child->argv[n++] = (char *)pairs[i][0];
            child->argv[n++] = (char *)pairs[i][1];
        }
    }
    child->argv[n] = NULL;
}

/* ---- reading it ------------------------------------------------------------------------------ */

struct stream {
    int fd;
    char *bytes;
    size_t len, max;
};

/* What is over the maximum is read and forgotten: the child must not wait for us. */
static void take(struct stream *stream)
{
    char scrap[4096];
    bool has_room = stream->len < stream->max;
    ssize_t n = read(stream->fd, has_room ? stream->bytes + stream->len : scrap,
                     has_room ? stream->max - stream->len : sizeof scrap);
    if (n > 0 && has_room) {
        stream->len += (size_t)n;
    } else if (n == 0 || (n < 0 && errno != EINTR)) {
        (void)close(stream->fd);
        stream->fd = -1;
    }
}

static bool is_stopping(const struct inspect_request *request)
{
    return request->is_stopping != NULL && atomic_load(request->is_stopping);
}

/* @return false if the time was over, or the server stops. */
static bool read_both(const struct inspect_request *request, struct stream *answer,
                      struct stream *said, int64_t until_mono_ms)
{
    while (answer->fd >= 0 || said->fd >= 0) {
        int64_t left_ms = until_mono_ms - weir_mono_ms();
        struct pollfd fds[2] = {{.fd = answer->fd, .events = POLLIN},
                                {.fd = said->fd, .events = POLLIN}};
        if (left_ms <= 0 || is_stopping(request)) {
            return false;
        }
        int n = poll(fds, 2, (int)WEIR_MIN(left_ms, (int64_t)STOP_LOOK_MS));
        if (n > 0 && fds[0].revents != 0) {
            take(answer);
        }
        if (n > 0 && fds[1].revents != 0) {
            take(said);
        }
    }
    return true;
}

/* What the child could not give up here is logged once: it is so for all. */
static void log_lacks(const char *text)
{
    static atomic_flag is_logged = ATOMIC_FLAG_INIT;
    const char *line = strstr(text, INSPECT_LACKS);
    if (line == NULL || atomic_flag_test_and_set(&is_logged)) {
        return;
    }
    for (; line != NULL; line = strstr(line + 1, INSPECT_LACKS)) {
        char what[128];
        const char *from = line + strlen(INSPECT_LACKS);
        (void)snprintf(what, sizeof what, "%.*s",
                       (int)WEIR_MIN(strcspn(from, "\n"), sizeof what - 1), from);
        weir_log(WEIR_LOG_WARN, "inspection_not_confined", WEIR_KV_STR("lacks", what));
    }
}

/* The child's last line, without its program's name. */
static const char *sentence_of(struct stream *said)
{
    said->bytes[said->len] = '\0';
    log_lacks(said->bytes);
    while (said->len > 0 &&
           (said->bytes[said->len - 1] == '\n' || said->bytes[said->len - 1] == ' ')) {
        said->bytes[--said->len] = '\0';
    }
    char *line = strrchr(said->bytes, '\n');
    line = line != NULL ? line + 1 : said->bytes;
    static const char *const prefixes[] = {"weir-worker inspect: ", "weir-worker: ", "inspect: "};
    if (strncmp(line, INSPECT_LACKS, strlen(INSPECT_LACKS)) == 0) {
        return ""; /* no word on the file */
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(prefixes); i++) {
        if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0) {
            line += strlen(prefixes[i]);
        }
    }
    return line;
}

static weir_status judge_exit(const struct inspect_request *request, int code, const char *sentence,
                              struct weir_error *err)
{
    static const weir_status statuses[] = {WEIR_ERR_INVALID, WEIR_ERR_CORRUPT, WEIR_ERR_UNSUPPORTED,
                                           WEIR_ERR_NOMEM};
    if (code == CANNOT_EXECUTE) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "no model can be checked: weir-worker is neither beside weir nor in "
                              "PATH of the server: install it");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(statuses); i++) {
        if (code == weir_status_exit(statuses[i])) {
            weir_status status = statuses[i] == WEIR_ERR_NOMEM ? WEIR_ERR_LIMIT : statuses[i];
            return weir_error_set(err, status, "%.900s",
                                  sentence[0] != '\0' ? sentence : "the file is no model");
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s cannot be loaded: %.800s", request->name,
                          sentence[0] != '\0' ? sentence : "weir-worker inspect gave no reason");
}

static weir_status judge(const struct inspect_request *request, int how, bool was_in_time,
                         const char *sentence, int64_t time_ms, struct weir_error *err)
{
    if (!was_in_time && is_stopping(request)) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "%s: the server stops", request->name);
    }
    if (!was_in_time || (WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU)) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%s: looking at the file took more than %lld s, and was given up",
                              request->name, (long long)(time_ms / MS_PER_S));
    }
    if (WIFSIGNALED(how)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: the program that loads it was ended by signal %d: the file is "
                              "damaged, or needs more memory than it may take",
                              request->name, WTERMSIG(how));
    }
    return WEXITSTATUS(how) == 0 ? WEIR_OK : judge_exit(request, WEXITSTATUS(how), sentence, err);
}

static weir_status read_answer(const struct inspect_request *request, const struct stream *answer,
                               struct weir_arena *arena, char **out, struct weir_error *err)
{
    json_t *signature;
    if (answer->len == answer->max) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%s: its signature is over %zu MiB: give fewer or shorter labels",
                              request->name, answer->max >> 20);
    }
    WEIR_TRY(weir_json_parse(answer->bytes, answer->len, "the signature", &signature, err));
    weir_status status = WEIR_OK;
    if (json_is_object(signature)) {
        *out = weir_json_text(signature, arena);
    } else {
        status = weir_error_set(err, WEIR_ERR_INTERNAL, "weir-worker inspect printed no signature");
    }
    json_decref(signature);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status open_pipes(int answer[2], int said[2], struct weir_error *err)
{
    if (pipe2(answer, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "cannot make a pipe");
    }
    if (pipe2(said, O_CLOEXEC) != 0) {
        int reason = errno;
        (void)close(answer[0]);
        (void)close(answer[1]);
        return weir_error_set_errno(err, reason, "cannot make a pipe");
    }
    return WEIR_OK;
}

static weir_status start(const char *program, const struct inspect_request *request,
                         int64_t time_ms, struct stream *answer, struct stream *said, pid_t *out,
                         struct weir_error *err)
{
    int answers[2], sentences[2];
    struct stat file = {0};
    struct child child = {.parent = getpid()};
    (void)stat(request->path, &file);
    uint64_t memory =
        WEIR_MIN(INSPECT_MEMORY_BYTES + 4 * (uint64_t)file.st_size, INSPECT_MEMORY_MAX);
    child.memory = (struct rlimit){memory, memory};
    (void)snprintf(child.memory_mb, sizeof child.memory_mb, "%llu",
                   (unsigned long long)(memory >> 20));
    rlim_t seconds = (rlim_t)WEIR_MAX(time_ms / 2 / MS_PER_S, (int64_t)1);
    child.processor = (struct rlimit){seconds, seconds + 1};
    find_program(program, &child);
    put_arguments(request, &child);
    WEIR_TRY(open_pipes(answers, sentences, err));
    child.out = answers[1];
    child.said = sentences[1];
    pid_t pid = fork();
    int reason = errno;
    if (pid == 0) {
        become(&child);
    }
    (void)close(answers[1]);
    (void)close(sentences[1]);
    answer->fd = answers[0];
    said->fd = sentences[0];
    if (pid < 0) {
        (void)close(answers[0]);
        (void)close(sentences[0]);
        return weir_error_set_errno(err, reason, "cannot start weir-worker inspect");
    }
    *out = pid;
    return WEIR_OK;
}

weir_status inspect_child_run(const char *program, const struct inspect_request *request,
                              int64_t time_ms, struct weir_arena *arena, char **out,
                              struct weir_error *err)
{
    pid_t pid = -1;
    int how = 0;
    int64_t span_ms = time_ms > 0 ? time_ms : INSPECT_TIME_MS;
    char sentence[INSPECT_SENTENCE_BYTES + 1];
    struct stream said = {.fd = -1, .bytes = sentence, .max = INSPECT_SENTENCE_BYTES};
    struct stream answer = {.fd = -1, .max = INSPECT_ANSWER_BYTES};
    answer.bytes = weir_xalloc(INSPECT_ANSWER_BYTES);
    weir_status status = start(program, request, span_ms, &answer, &said, &pid, err);
    if (status == WEIR_OK) {
        bool was_in_time = read_both(request, &answer, &said, weir_mono_ms() + span_ms);
        (void)kill(pid, SIGKILL); /* one that has closed both ends has nothing more to say */
        while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
        }
        for (int *fd = &answer.fd; fd != NULL; fd = fd == &answer.fd ? &said.fd : NULL) {
            if (*fd >= 0) {
                (void)close(*fd);
            }
        }
        status = judge(request, how, was_in_time, sentence_of(&said), span_ms, err);
    }
    if (status == WEIR_OK) {
        status = read_answer(request, &answer, arena, out, err);
    }
    free(answer.bytes);
    return status;
}
