/* The processes of a task, told again and again: a line of JSON each time. */
#include "agent/visit/visit.h"

#include "base/clock.h"
#include "visit/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_MS      250 /* two are needed for what is used */
#define EVERY_MS      1000
#define PROCESSES_MAX 256
#define COMMAND_BYTES 100

/* One process; NULL: it is gone. */
static json_t *look_at(pid_t pid)
{
    char path[64], text[1024], command[COMMAND_BYTES] = "";
    unsigned long long user = 0, kernel = 0, threads = 0;
    long long pages = 0;
    char state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    text[len] = '\0';
    const char *after = strrchr(text, ')');
    if (after == NULL ||
        sscanf(after + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
               "%llu %*d %*u %*u %lld",
               &state, &user, &kernel, &threads, &pages) != 5) {
        return NULL;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    file = fopen(path, "re");
    len = file != NULL ? fread(command, 1, sizeof command - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    for (size_t i = 0; i + 1 < len; i++) {
        command[i] = command[i] == '\0' ? ' ' : command[i];
    }
    if (len == 0) {
        const char *name = strchr(text, '(');
        (void)snprintf(command, sizeof command, "[%.*s]", (int)(after - name - 1), name + 1);
    }
    weir_frame_disarm(command);
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    json_t *shown = json_string(command);
    for (char *at = command; shown == NULL && *at != '\0'; at++) { /* no UTF-8, or cut within it */
        *at = (*at & 0x80) != 0 ? '?' : *at;
    }
    shown = shown != NULL ? shown : json_string(command);
    return json_pack("{s:I,s:s%,s:I,s:I,s:I,s:o}", "pid", (json_int_t)pid, "state", &state,
                     (size_t)1, "cpu_ms",
                     (json_int_t)((user + kernel) * 1000 / (unsigned long long)ticks), "rss_bytes",
                     (json_int_t)(pages * page), "threads", (json_int_t)threads, "command", shown);
}

static size_t find_members(const struct visit_host *host, pid_t pids[PROCESSES_MAX])
{
    static struct process_id below[PROCESSES_MAX];
    size_t n = weir_group_members(host->group, pids, PROCESSES_MAX);
    if (host->group->n_dirs > 0) {
        return n;
    }
    n = process_descendants(host->pid, below, PROCESSES_MAX - 1);
    pids[0] = host->pid;
    for (size_t i = 0; i < n; i++) {
        pids[i + 1] = below[i].pid;
    }
    return n + 1;
}

/* Into frames: a line may be longer than one. False: the visitor is gone. */
static bool tell(struct weir_line *line, const char *text, size_t len)
{
    while (len > 0) {
        size_t part = WEIR_MIN(len, weir_frame_room(&line->box));
        if (part > 0 && weir_frame_put(&line->box, WEIR_FRAME_OUTPUT, text, part)) {
            text += part;
            len -= part;
        }
        struct pollfd fd = weir_line_poll(line, false);
        if (!weir_line_flush(line) || (part == 0 && poll(&fd, 1, -1) < 0)) {
            return false;
        }
    }
    return true;
}

static bool tell_all(const struct visit_host *host, struct weir_line *line)
{
    pid_t pids[PROCESSES_MAX];
    size_t n = find_members(host, pids);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *one = look_at(pids[i]);
        if (one != NULL) {
            json_array_append_new(list, one);
        }
    }
    json_t *all = json_pack("{s:I,s:o}", "time_ms", (json_int_t)weir_time_ms(), "processes", list);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    bool goes_on = text != NULL && tell(line, text, strlen(text)) && tell(line, "\n", 1);
    free(text);
    return goes_on;
}

_Noreturn void visit_top(const struct visit_host *host, struct weir_line *line)
{
    (void)weir_frame_put(&line->box, WEIR_FRAME_READY, NULL, 0);
    for (int64_t wait_ms = FIRST_MS; tell_all(host, line); wait_ms = EVERY_MS) {
        int64_t due_ms = weir_mono_ms() + wait_ms, left_ms;
        while ((left_ms = due_ms - weir_mono_ms()) > 0 && !line->is_over) {
            struct pollfd fd = weir_line_poll(line, true);
            (void)poll(&fd, 1, (int)left_ms);
            while (weir_line_next(line)) {
                if (line->frames.type == WEIR_FRAME_PING) {
                    (void)weir_frame_put(&line->box, WEIR_FRAME_PONG, NULL, 0);
                }
            }
            (void)weir_line_flush(line);
        }
    }
    _exit(0);
}
