#include "cluster/slurm/job.h"

#include "cluster/slurm/command.h"
#include "cluster/slurm/refusal.h"
#include "cluster/slurm/text.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NAMES_MAX      500                /* in one command */
#define LIST_MAX_BYTES ((size_t)96 << 10) /* one word of a command has at most 128 KiB */
#define HISTORY_SINCE  "now-30days"
#define ENDLESS_S      ((int64_t)365 * 24 * 3600)

enum {
    Q_ID,
    Q_STATE,
    Q_LIMIT,
    Q_USED,
    Q_START,
    Q_END,
    Q_NODES,
    Q_NAME,
    Q_COMMENT,
    Q_REASON,
    N_QUEUE
};

enum { H_ID, H_STATE, H_LIMIT, H_USED, H_START, H_END, H_NODES, H_EXIT, H_NAME, N_HISTORY };

/* ---- what is read ---------------------------------------------------------------------------- */

static struct slurm_job *next_job(struct slurm_jobs *jobs, size_t *room, struct weir_arena *arena)
{
    if (jobs->n == *room) {
        *room = *room == 0 ? 16 : *room * 2;
        struct slurm_job *list = WEIR_ARENA_ARRAY(arena, *room, struct slurm_job);
        if (jobs->n > 0) {
            memcpy(list, jobs->list, jobs->n * sizeof *list);
        }
        jobs->list = list;
    }
    return &jobs->list[jobs->n++];
}

/* A year is how Slurm says that there is no end. */
static void set_times(struct slurm_job *job, const char *const times[4])
{
    job->limit_s = slurm_span_s(times[0]);
    job->used_s = slurm_span_s(times[1]);
    job->starts_ms = slurm_time_ms(times[2]);
    job->ends_ms = slurm_time_ms(times[3]);
    if (job->limit_s >= ENDLESS_S) {
        job->limit_s = 0;
        job->ends_ms = job->ends_ms - job->starts_ms >= ENDLESS_S * 1000 ? 0 : job->ends_ms;
    }
}

static const char *or_empty(const char *text)
{
    bool is_none = text[0] == '(' || strcmp(text, "None assigned") == 0;
    return is_none ? "" : text;
}

bool slurm_is_queue(const char *text)
{
    static const char head[] = "JOBID|";
    const char *at = strstr(text, head);
    while (at != NULL && at != text && at[-1] != '\n') {
        at = strstr(at + 1, head);
    }
    return at != NULL;
}

struct slurm_jobs slurm_jobs_read_queue(const char *text, struct weir_arena *arena)
{
    struct slurm_jobs jobs = {0};
    const char *fields[N_QUEUE];
    size_t room = 0;
    while (slurm_next_fields(&text, N_QUEUE, arena, fields)) {
        if (slurm_number(fields[Q_ID]) > 0) {
            struct slurm_job *job = next_job(&jobs, &room, arena);
            *job = (struct slurm_job){.id = slurm_number(fields[Q_ID]),
                                      .state = fields[Q_STATE],
                                      .nodes = or_empty(fields[Q_NODES]),
                                      .reason = fields[Q_REASON],
                                      .comment = fields[Q_COMMENT],
                                      .name = fields[Q_NAME],
                                      .exit_status = -1};
            set_times(job, &fields[Q_LIMIT]);
        }
    }
    return jobs;
}

struct slurm_jobs slurm_jobs_read_history(const char *text, struct weir_arena *arena)
{
    struct slurm_jobs jobs = {0};
    const char *fields[N_HISTORY];
    size_t room = 0;
    while (slurm_next_fields(&text, N_HISTORY, arena, fields)) {
        if (slurm_number(fields[H_ID]) > 0) {
            struct slurm_job *job = next_job(&jobs, &room, arena);
            *job = (struct slurm_job){.id = slurm_number(fields[H_ID]),
                                      .state = fields[H_STATE],
                                      .nodes = or_empty(fields[H_NODES]),
                                      .reason = "",
                                      .comment = "",
                                      .name = fields[H_NAME],
                                      .exit_status = (int)(slurm_number(fields[H_EXIT]) & 0xff)};
            set_times(job, &fields[H_LIMIT]);
        }
    }
    return jobs;
}

/* ---- questions ------------------------------------------------------------------------------- */

static const char *own_uid(struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%u", (unsigned)getuid());
}

weir_status slurm_jobs_queued(const struct slurm_options *options, const char *name,
                              struct weir_arena *arena, struct slurm_jobs *out,
                              struct weir_error *err)
{
    const char *text;
    WEIR_TRY(slurm_ask(options,
                       SLURM_WORDS("squeue", "-a", "-t", "all", "-u", own_uid(arena), "-o",
                                   SLURM_QUEUE_FORMAT, name != NULL ? "-n" : NULL, name),
                       arena, &text, err));
    if (!slurm_is_queue(text)) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "bin: Slurm's squeue prints no list of jobs: \"%.80s\"",
                              slurm_said_line(text, arena));
    }
    *out = slurm_jobs_read_queue(text, arena);
    return WEIR_OK;
}

/* The first of the names, with commas between; *out_n: how many. */
static const char *join(const char *const *names, size_t n, struct weir_arena *arena, size_t *out_n)
{
    struct weir_buf list;
    size_t i = 0;
    weir_buf_init(&list, LIST_MAX_BYTES);
    for (; i < n && i < NAMES_MAX; i++) {
        (void)weir_buf_printf(&list, "%s%s", i > 0 ? "," : "", names[i]);
    }
    const char *text = weir_arena_memdup(arena, list.data, list.len);
    weir_buf_fini(&list);
    *out_n = i;
    return text;
}

/* Ask for those names. *out is "" where no accounts are kept. */
static weir_status ask_accounts(const struct slurm_options *options, const char *names,
                                struct weir_arena *arena, const char **out, struct weir_error *err)
{
    struct slurm_answer answer;
    const struct slurm_command command = {
        .words = SLURM_WORDS("sacct", "-X", "-P", "-n", "-S", HISTORY_SINCE, "-u", own_uid(arena),
                             "-o", SLURM_HISTORY_FORMAT, "--name", names),
        .timeout_ms = SLURM_ASK_MS};
    weir_status status = slurm_run(options, &command, arena, &answer, err);
    *out = "";
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    WEIR_TRY(status);
    if (answer.exit_status == 0) {
        *out = answer.out;
        return WEIR_OK;
    }
    return slurm_has_no_accounting(answer.said) ? WEIR_OK
                                                : slurm_refusal("sacct", answer.said, err);
}

weir_status slurm_jobs_past(const struct slurm_options *options, const char *const *names, size_t n,
                            struct weir_arena *arena, struct slurm_jobs *out,
                            struct weir_error *err)
{
    const char *text;
    *out = (struct slurm_jobs){0};
    for (size_t i = 0, n_asked; i < n; i += n_asked) {
        const char *list = join(names + i, n - i, arena, &n_asked);
        WEIR_TRY(ask_accounts(options, list, arena, &text, err));
        struct slurm_jobs more = slurm_jobs_read_history(text, arena);
        struct slurm_job *all = WEIR_ARENA_ARRAY(arena, out->n + more.n + 1, struct slurm_job);
        memcpy(all, out->n > 0 ? out->list : all, out->n * sizeof *all);
        memcpy(all + out->n, more.n > 0 ? more.list : all, more.n * sizeof *all);
        *out = (struct slurm_jobs){all, out->n + more.n};
    }
    return WEIR_OK;
}

/* One that has ended meanwhile is no error. */
static weir_status cancel(const struct slurm_options *options, const char *id,
                          struct weir_arena *arena, struct weir_error *err)
{
    struct slurm_answer answer;
    const struct slurm_command command = {.words = SLURM_WORDS("scancel", id),
                                          .timeout_ms = SLURM_CHANGE_MS};
    WEIR_TRY(slurm_run(options, &command, arena, &answer, err));
    bool is_over = strcasestr(answer.said, "already complet") != NULL ||
                   strcasestr(answer.said, "Invalid job id") != NULL;
    return answer.exit_status == 0 || is_over ? WEIR_OK
                                              : slurm_refusal("scancel", answer.said, err);
}

weir_status slurm_jobs_cancel(const struct slurm_options *options, const struct slurm_jobs *jobs,
                              bool mark, struct weir_arena *arena, struct weir_error *err)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const char *id = weir_arena_printf(arena, "%lld", (long long)jobs->list[i].id), *ignored;
        if (!slurm_job_is_alive(&jobs->list[i])) {
            continue;
        }
        if (mark) { /* without a mark, the ending is told by the user who cancelled it */
            struct weir_error unmarked;
            (void)!slurm_ask(options,
                             SLURM_WORDS("scontrol", "update",
                                         weir_arena_printf(arena, "JobId=%s", id),
                                         "Comment=" SLURM_RELEASED),
                             arena, &ignored, &unmarked);
        }
        WEIR_TRY(cancel(options, id, arena, err));
    }
    return WEIR_OK;
}

/* ---- poll ------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const struct slurm_job *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order != 0 ? order : (one->id > other->id) - (one->id < other->id);
}

/* Where the jobs of that name begin in a sorted list: with the oldest. */
static size_t find(const struct slurm_jobs *jobs, const char *name)
{
    size_t low = 0, high = jobs->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(jobs->list[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct slurm_jobs *jobs, size_t i, const char *name)
{
    return i < jobs->n && strcmp(jobs->list[i].name, name) == 0;
}

static void sort(struct slurm_jobs *jobs)
{
    if (jobs->n > 0) {
        qsort(jobs->list, jobs->n, sizeof jobs->list[0], by_name);
    }
}

/* What a poll knows. */
struct poll {
    const struct slurm_options *options;
    struct weir_arena *arena;
    struct slurm_jobs queued;  /* sorted */
    struct slurm_job **of_tag; /* NULL: there is none */
    size_t n;
};

/* When an answer was lost, a request may have been made twice: the oldest is the allocation, and others never began. */
static weir_status cancel_doubles(const struct poll *poll, const char *const *tags,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < poll->n; i++) {
        size_t at = find(&poll->queued, tags[i]), n = 0;
        while (is_at(&poll->queued, at + n, tags[i])) {
            n++;
        }
        if (n > 1) {
            const struct slurm_jobs doubles = {poll->queued.list + at + 1, n - 1};
            WEIR_TRY(slurm_jobs_cancel(poll->options, &doubles, false, poll->arena, err));
        }
    }
    return WEIR_OK;
}

static weir_status look_back(struct poll *poll, const char *const *tags, struct weir_error *err)
{
    const char **missing = WEIR_ARENA_ARRAY(poll->arena, poll->n + 1, const char *);
    struct slurm_jobs past = {0};
    size_t n = 0;
    for (size_t i = 0; i < poll->n; i++) {
        if (poll->of_tag[i] == NULL) {
            missing[n++] = tags[i];
        }
    }
    WEIR_TRY(slurm_jobs_past(poll->options, missing, n, poll->arena, &past, err));
    sort(&past);
    for (size_t i = 0; i < poll->n; i++) {
        size_t at = find(&past, tags[i]);
        if (poll->of_tag[i] == NULL && is_at(&past, at, tags[i])) {
            poll->of_tag[i] = &past.list[at];
        }
    }
    return WEIR_OK;
}

static void take_details(struct poll *poll, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *line = weir_arena_memdup(poll->arena, text, len);
        const char *preempted = line + strcspn(line, " ");
        preempted += strspn(preempted, " ");
        const char *status = preempted + strcspn(preempted, " ");
        status += strspn(status, " ");
        for (size_t i = 0; i < poll->n; i++) {
            struct slurm_job *job = poll->of_tag[i];
            if (job != NULL && job->id == slurm_number(line) && job->exit_status < 0) {
                job->was_preempted = slurm_number(preempted) > 0;
                job->exit_status = (int)(slurm_number(status) >> 8 & 0xff);
            }
        }
        text += len + (text[len] == '\n');
    }
}

/* Were those that ended by themselves, or in time, preempted? What Slurm has forgotten meanwhile stays as it is. */
static weir_status look_closer(struct poll *poll, struct weir_error *err)
{
    const char **ids = WEIR_ARENA_ARRAY(poll->arena, poll->n + 1, const char *), *text = "";
    size_t n = 0, n_asked;
    for (size_t i = 0; i < poll->n; i++) {
        const struct slurm_job *job = poll->of_tag[i];
        if (job != NULL && slurm_job_is_doubtful(job) && job->exit_status < 0) {
            ids[n++] = weir_arena_printf(poll->arena, "%lld", (long long)job->id);
        }
    }
    for (size_t i = 0; i < n; i += n_asked) {
        const char *list = join(ids + i, n - i, poll->arena, &n_asked);
        weir_status status = slurm_ask(poll->options,
                                       SLURM_WORDS("squeue", "-h", "-a", "-t", "all", "-j", list,
                                                   "-O", "JobID:20,PreemptTime:30,exit_code:12"),
                                       poll->arena, &text, err);
        if (status != WEIR_ERR_INVALID) {
            WEIR_TRY(status);
            take_details(poll, text);
        }
    }
    return WEIR_OK;
}

struct closed {
    const char *node, *state, *reason;
};

static int by_node(const void *a, const void *b)
{
    return strcmp(((const struct closed *)a)->node, ((const struct closed *)b)->node);
}

/* The first node of each that takes nothing new. */
static void set_closed(struct closed *closed, size_t n_closed, struct weir_arena *arena,
                       struct weir_allocation_report *out)
{
    for (size_t i = 0; i < out->n_nodes && out->closed_node == NULL; i++) {
        const struct closed key = {.node = out->nodes[i]};
        const struct closed *found = bsearch(&key, closed, n_closed, sizeof *closed, by_node);
        if (found != NULL) {
            bool is_said = found->reason[0] != '\0' && strcmp(found->reason, "none") != 0;
            out->closed_node = found->node;
            out->closed_why = is_said
                                  ? weir_arena_printf(arena, "%s: %s", found->state, found->reason)
                                  : found->state;
        }
    }
}

static weir_status look_at_nodes(const struct poll *poll, struct weir_allocation_report *out,
                                 struct weir_error *err)
{
    const char *text, *fields[3];
    size_t n = 0, room = 0, n_nodes = 0;
    for (size_t i = 0; i < poll->n; i++) {
        n_nodes += out[i].n_nodes;
    }
    if (n_nodes == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(
        slurm_ask(poll->options,
                  SLURM_WORDS("sinfo", "-h", "-a", "-N", "-t", "drain,down,fail", "-o", "%N|%T|%E"),
                  poll->arena, &text, err));
    for (const char *at = text; *at != '\0'; at++) {
        room += *at == '\n';
    }
    struct closed *closed = WEIR_ARENA_ARRAY(poll->arena, room + 1, struct closed);
    while (n <= room && slurm_next_fields(&text, 3, poll->arena, fields)) {
        closed[n++] = (struct closed){fields[0], fields[1], fields[2]};
    }
    qsort(closed, n, sizeof *closed, by_node);
    for (size_t i = 0; i < poll->n; i++) {
        set_closed(closed, n, poll->arena, &out[i]);
    }
    return WEIR_OK;
}

weir_status slurm_poll(const struct slurm_options *options, const char *const *tags, size_t n,
                       struct weir_arena *arena, struct weir_allocation_report *out,
                       struct weir_error *err)
{
    struct poll poll = {.options = options,
                        .arena = arena,
                        .n = n,
                        .of_tag = WEIR_ARENA_ARRAY(arena, n + 1, struct slurm_job *)};
    WEIR_TRY(slurm_jobs_queued(options, NULL, arena, &poll.queued, err));
    sort(&poll.queued);
    for (size_t i = 0; i < n; i++) {
        size_t at = find(&poll.queued, tags[i]);
        poll.of_tag[i] = is_at(&poll.queued, at, tags[i]) ? &poll.queued.list[at] : NULL;
    }
    WEIR_TRY(cancel_doubles(&poll, tags, err));
    WEIR_TRY(look_back(&poll, tags, err));
    WEIR_TRY(look_closer(&poll, err));
    for (size_t i = 0; i < n; i++) {
        if (poll.of_tag[i] != NULL) {
            slurm_report(poll.of_tag[i], (int64_t)getuid(), arena, &out[i]);
        } else {
            out[i] = (struct weir_allocation_report){.phase = WEIR_ALLOCATION_UNKNOWN};
        }
    }
    return look_at_nodes(&poll, out, err);
}
