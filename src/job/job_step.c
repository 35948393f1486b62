#include "job/job_step.h"

#include "job/array.h"
#include "job/elastic.h"
#include "job/job_step_private.h"
#include "job/restart.h"

#include <inttypes.h>
#include <string.h>

static void set_phase(struct step *step, enum weir_job_phase phase)
{
    step->state->job.state = (char *)weir_job_phase_text(phase);
    step->state->job.expected_start_ms = 0;
}

static void set_task_phase(struct weir_task *task, enum weir_task_phase phase)
{
    task->state = (char *)weir_task_phase_text(phase);
}

static void act(struct step *step, struct weir_job_action action)
{
    struct weir_job_actions *actions = step->actions;
    if (actions->n == actions->cap) {
        actions->cap = actions->cap == 0 ? 8 : actions->cap * 2;
        struct weir_job_action *grown =
            WEIR_ARENA_ARRAY(step->arena, actions->cap, struct weir_job_action);
        if (actions->n > 0) {
            memcpy(grown, actions->items, actions->n * sizeof(*grown));
        }
        actions->items = grown;
    }
    actions->items[actions->n++] = action;
}

/** Once per node and step is enough. */
void job_wake(struct step *step, const char *node)
{
    for (size_t i = 0; i < step->actions->n; i++) {
        const struct weir_job_action *action = &step->actions->items[i];
        if (action->type == WEIR_JOB_ACTION_WAKE_NODE && strcmp(action->node, node) == 0) {
            return;
        }
    }
    act(step, (struct weir_job_action){.type = WEIR_JOB_ACTION_WAKE_NODE, .node = node});
}

void job_tell(struct step *step, const char *kind, const char *message)
{
    act(step,
        (struct weir_job_action){.type = WEIR_JOB_ACTION_EVENT, .kind = kind, .message = message});
}

static void finish(struct step *step, enum weir_job_phase phase)
{
    static const char *const kinds[] = {[WEIR_JOB_SUCCEEDED] = "job_succeeded",
                                        [WEIR_JOB_FAILED] = "job_failed",
                                        [WEIR_JOB_CANCELLED] = "job_cancelled"};
    static const char *const verbs[] = {[WEIR_JOB_SUCCEEDED] = "succeeded",
                                        [WEIR_JOB_FAILED] = "failed",
                                        [WEIR_JOB_CANCELLED] = "was cancelled"};
    struct weir_job *job = &step->state->job;
    set_phase(step, phase);
    job->outcome = NULL;
    job->is_held = false;
    job->finished_ms = step->now_ms;
    if (phase == WEIR_JOB_SUCCEEDED) {
        job->reason = NULL;
    }
    job_tell(step, kinds[phase],
             weir_arena_printf(step->arena, "Job %s %s%s%s.", job->name, verbs[phase],
                               job->reason != NULL ? ": " : "",
                               job->reason != NULL ? job->reason : ""));
    act(step, (struct weir_job_action){.type = WEIR_JOB_ACTION_ENDED,
                                       .kind = weir_job_phase_text(phase),
                                       .message = job->reason != NULL ? job->reason : ""});
}

/** The gang waits for placement again. */
static void restart_gang(struct step *step)
{
    for (size_t i = 0; i < step->state->n_tasks; i++) {
        struct weir_task *task = &step->state->tasks[i];
        set_task_phase(task, WEIR_TASK_WAITING);
        task->node = task->devices = NULL;
    }
    set_phase(step, WEIR_JOB_PENDING);
}

/** A gang that was evicted, or is held, has ended. */
static void requeue_gang(struct step *step)
{
    struct weir_job *job = &step->state->job;
    if (job->has_known_exits && weir_job_work_is_done(step->state)) {
        finish(step, WEIR_JOB_SUCCEEDED);
        return;
    }
    job->outcome = NULL;
    job->queued_ms = step->now_ms;
    restart_gang(step);
}

/** STOPPING and RESTARTING go on when the last task has ended. */
static void go_on_if_all_ended(struct step *step)
{
    if (!weir_job_none_is_alive(step->state)) {
        return;
    }
    struct weir_job *job = &step->state->job;
    enum weir_job_phase phase = weir_job_phase_of(step->state);
    if (phase == WEIR_JOB_STOPPING) {
        int outcome = weir_job_phase_from_text(job->outcome);
        if (outcome == WEIR_JOB_PENDING) {
            requeue_gang(step);
            return;
        }
        finish(step, outcome < 0 ? WEIR_JOB_FAILED : (enum weir_job_phase)outcome);
    } else if (phase == WEIR_JOB_RESTARTING && !weir_job_has_independent_tasks(step->state) &&
               step->now_ms >= weir_gang_due_ms(job, step->now_ms)) {
        restart_gang(step);
    }
}

void job_stop_task(struct step *step, struct weir_task *task)
{
    set_task_phase(task, WEIR_TASK_STOPPING);
    task->desired = "stopped";
    job_wake(step, task->node);
}

void job_stop_alive(struct step *step)
{
    for (size_t i = 0; i < step->state->n_tasks; i++) {
        if (weir_task_is_alive(&step->state->tasks[i])) {
            job_stop_task(step, &step->state->tasks[i]);
        }
    }
}

void job_stop(struct step *step, enum weir_job_phase outcome)
{
    step->state->job.outcome = (char *)weir_job_phase_text(outcome);
    set_phase(step, WEIR_JOB_STOPPING);
    job_stop_alive(step);
    go_on_if_all_ended(step);
}

/** A task of the gang has failed: all stop; restart if the rules allow it. */
static void fail_gang(struct step *step, const struct weir_task *task, char *reason)
{
    struct weir_job *job = &step->state->job;
    job->reason = reason;
    if (!weir_job_may_restart(job, task)) {
        job_stop(step, WEIR_JOB_FAILED);
        return;
    }
    job->n_restarts++;
    int64_t backoff_ms = weir_job_backoff_ms(job->n_restarts);
    job->due_ms = step->now_ms + backoff_ms;
    set_phase(step, WEIR_JOB_RESTARTING);
    job_tell(step, "job_restarting",
             weir_arena_printf(
                 step->arena, "Job %s restarts (%" PRId64 " of %" PRId64 ") in %" PRId64 " s: %s.",
                 job->name, job->n_restarts, WEIR_MAX(job->max_restarts, job->n_restarts),
                 backoff_ms / 1000, reason));
    job_stop_alive(step);
    go_on_if_all_ended(step);
}

/** The phase of a service follows from its replicas. */
static void refresh_service(struct step *step)
{
    struct weir_job *job = &step->state->job;
    size_t n_running = 0, n_starting = 0, n_restarting = 0;
    for (size_t i = 0; i < step->state->n_tasks; i++) {
        const struct weir_task *task = &step->state->tasks[i];
        n_running += weir_task_phase_of(task) == WEIR_TASK_RUNNING;
        n_starting += weir_task_phase_of(task) == WEIR_TASK_STARTING;
        n_restarting += (weir_task_phase_of(task) == WEIR_TASK_WAITING && task->attempt > 0) ||
                        weir_task_phase_of(task) == WEIR_TASK_STOPPING;
    }
    if (n_running > 0) {
        if (job->started_ms == 0) {
            job->started_ms = step->now_ms;
            job_tell(step, "job_running",
                     weir_arena_printf(step->arena, "Job %s runs.", job->name));
        }
        set_phase(step, WEIR_JOB_RUNNING);
    } else if (n_starting > 0) {
        set_phase(step, WEIR_JOB_STARTING);
    } else {
        set_phase(step, n_restarting > 0 ? WEIR_JOB_RESTARTING : WEIR_JOB_PENDING);
    }
    if (n_running + n_starting == step->state->n_tasks) {
        job->reason = job->eviction = NULL;
    }
}

/** An array runs until its last task has ended for good. */
static void refresh_array(struct step *step)
{
    struct weir_job *job = &step->state->job;
    const struct weir_array_count count = weir_array_count(step->state);
    if (count.n_running + count.n_ended > 0 && job->started_ms == 0) {
        job->started_ms = step->now_ms;
        job_tell(step, "job_running",
                 weir_arena_printf(step->arena, "Job %s runs (%zu tasks, on their own).", job->name,
                                   step->state->n_tasks));
    }
    if (count.n_ended == step->state->n_tasks) {
        if (count.n_failed > 0) {
            job->reason = weir_array_reason(step->state, &count, step->arena);
        }
        finish(step, count.n_failed > 0 ? WEIR_JOB_FAILED : WEIR_JOB_SUCCEEDED);
    } else if (count.n_running + count.n_starting == 0) {
        set_phase(step, WEIR_JOB_PENDING);
    } else {
        set_phase(step, job->started_ms > 0 ? WEIR_JOB_RUNNING : WEIR_JOB_STARTING);
    }
}

void job_refresh_independent(struct step *step)
{
    if (weir_job_is_service(step->state)) {
        refresh_service(step);
    } else {
        refresh_array(step);
    }
}

/** A gang runs when each of its tasks has run; an elastic one when as many have as it needs. */
static void refresh_gang(struct step *step)
{
    struct weir_job *job = &step->state->job;
    if (weir_job_phase_of(step->state) == WEIR_JOB_STARTING && weir_job_has_begun(step->state)) {
        set_phase(step, WEIR_JOB_RUNNING);
        job->started_ms = job->started_ms == 0 ? step->now_ms : job->started_ms;
        job_tell(step, "job_running",
                 weir_arena_printf(step->arena, "Job %s runs (attempt %" PRId64 ", %zu tasks).",
                                   job->name, job->attempt, step->state->n_tasks));
    }
}

/** A replica that was asked to end has: it waits for a node, at once. */
static void requeue_replica(struct step *step, struct weir_task *task)
{
    job_wake(step, task->node);
    task->node = task->devices = NULL;
    task->due_ms = step->now_ms;
    step->state->job.queued_ms = step->now_ms;
    set_task_phase(task, WEIR_TASK_WAITING);
}

/** A replica has ended: it starts again on its own after its back-off. */
static void restart_replica(struct step *step, struct weir_task *task, const char *why)
{
    bool was_stable = step->now_ms - task->started_ms >= WEIR_JOB_STABLE_MS;
    task->n_restarts = was_stable ? 1 : task->n_restarts + 1;
    int64_t backoff_ms = weir_replica_backoff_ms(task);
    task->due_ms = step->now_ms + backoff_ms;
    job_wake(step, task->node);
    task->node = task->devices = NULL;
    task->desired = "stopped";
    set_task_phase(task, WEIR_TASK_WAITING);
    step->state->job.reason =
        weir_arena_printf(step->arena, "%s %" PRId64 " restarts: %s", task->role, task->rank, why);
    if (weir_replica_restart_is_told(task->n_restarts)) {
        job_tell(step, "replica_restarting",
                 weir_arena_printf(step->arena,
                                   "The %s %" PRId64 " of job %s restarts in %.1f s: %s.",
                                   task->role, task->rank, step->state->job.name,
                                   (double)backoff_ms / 1000, why));
    }
}

/** A task of an array has ended: for good, or it waits to be tried again. */
static void end_of_array(struct step *step, struct weir_task *task, bool has_succeeded)
{
    if (strcmp(task->desired, "stopped") == 0) {
        requeue_replica(step, task);
    } else if (!has_succeeded && weir_array_may_retry(&step->state->job, task)) {
        task->n_restarts++;
        step->state->job.n_restarts++;
        task->due_ms = step->now_ms + weir_job_backoff_ms(task->n_restarts);
        job_wake(step, task->node);
        task->node = task->devices = NULL;
        task->desired = "stopped";
        set_task_phase(task, WEIR_TASK_WAITING);
    }
    refresh_array(step);
}

/** A task of an elastic gang has ended: the others go on, or all wait again. @return false: it has
 *  failed the gang. */
static bool let_go(struct step *step, struct weir_task *task)
{
    struct weir_job *job = &step->state->job;
    bool was_asked = strcmp(task->desired, "stopped") == 0;
    bool may_lose = weir_job_may_lose(step->state, task);
    if (was_asked && may_lose) {
        requeue_replica(step, task);
    } else if (was_asked) {
        job_stop(step, WEIR_JOB_PENDING);
    } else if (!may_lose || !weir_job_may_restart(job, task)) {
        return false;
    } else {
        job->n_restarts += weir_task_phase_of(task) != WEIR_TASK_LOST;
        restart_replica(step, task, weir_task_describe_end(task, step->arena));
    }
    return true;
}

/** Why the task's node ends. */
static char *tell_foreseen(const struct step *step, const struct weir_task *task)
{
    const char *why = step->event->type == WEIR_JOB_EVENT_NODE_LOST ? step->event->text : NULL;
    return why != NULL ? weir_arena_strdup(step->arena, why)
                       : weir_arena_printf(step->arena, "node %s ends", task->node);
}

/** A task that was asked to save has ended, and that is its answer; or it has ended with its node, as was foreseen. It
 *  is stopped as if it had been told to. @return true: its gang goes back with it. */
static bool take_answer(struct step *step, struct weir_task *task, bool has_succeeded)
{
    bool is_foreseen = step->event->is_foreseen;
    bool is_answer = task->asked_ms > 0 && weir_task_phase_of(task) == WEIR_TASK_EXITED;
    bool is_alone = weir_job_has_independent_tasks(step->state) ||
                    (weir_job_is_elastic(step->state) && weir_job_may_lose(step->state, task));
    /* What ends well has done its work, but for a service, which is to run. */
    bool is_done =
        has_succeeded && task->saved_ms == 0 && !(is_foreseen && weir_job_is_service(step->state));
    if (strcmp(task->desired, "running") != 0 || (!is_answer && !is_foreseen) || is_done) {
        return false;
    }
    task->desired = "stopped";
    job_wake(step, task->node);
    if (is_foreseen) {
        step->state->job.eviction = tell_foreseen(step, task);
    }
    job_note_eviction(step, is_foreseen ? "has lost a node, as was foreseen"
                                        : "has ended, as it was asked to save");
    if (!is_alone) {
        job_stop(step, WEIR_JOB_PENDING);
    }
    return !is_alone;
}

/** A gang fails because one of its nodes is about to end, and is told of the failure first: it was no failure.
 *  @return false: nothing of it has failed, or this is not the reason. */
static bool take_back_restart(struct step *step, struct weir_task *task)
{
    struct weir_job *job = &step->state->job;
    bool has_failed = false;
    for (size_t i = 0; i < step->state->n_tasks; i++) {
        const struct weir_task *other = &step->state->tasks[i];
        has_failed = has_failed || (weir_task_phase_of(other) == WEIR_TASK_EXITED &&
                                    strcmp(other->desired, "running") == 0 &&
                                    (other->exit_code != 0 || other->signal != 0));
    }
    if (!step->event->is_foreseen || !has_failed || job->n_restarts == 0) {
        return false;
    }
    job->n_restarts--;
    job->eviction = tell_foreseen(step, task);
    job_note_eviction(step, "has lost a node, as was foreseen");
    job_stop(step, WEIR_JOB_PENDING);
    return true;
}

/** What follows for the job from tasks that have just ended; `task` is the one to name. */
static void after_end(struct step *step, struct weir_task *task)
{
    enum weir_job_phase phase = weir_job_phase_of(step->state);
    bool is_active = phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING;
    bool has_succeeded =
        weir_task_phase_of(task) == WEIR_TASK_EXITED && task->exit_code == 0 && task->signal == 0;
    if (is_active && take_answer(step, task, has_succeeded)) {
        return;
    }
    if (phase == WEIR_JOB_RESTARTING && !weir_job_has_independent_tasks(step->state) &&
        take_back_restart(step, task)) {
        return;
    }
    if (phase == WEIR_JOB_RESTARTING && !weir_job_has_independent_tasks(step->state) &&
        weir_task_is_beyond_repair(&step->state->job, task)) {
        /* The others' end was told first, but this one is why they ended. */
        step->state->job.reason = weir_task_describe_end(task, step->arena);
        job_stop(step, WEIR_JOB_FAILED);
    } else if (phase == WEIR_JOB_STOPPING ||
               (!is_active && !weir_job_has_independent_tasks(step->state))) {
        go_on_if_all_ended(step);
    } else if (step->state->job.is_array) {
        end_of_array(step, task, has_succeeded);
    } else if (weir_job_is_service(step->state)) {
        if (strcmp(task->desired, "stopped") == 0) {
            requeue_replica(step, task);
        } else {
            restart_replica(step, task, weir_task_describe_end(task, step->arena));
        }
        refresh_service(step);
    } else if (weir_job_is_elastic(step->state) &&
               (!has_succeeded || strcmp(task->desired, "stopped") == 0) && let_go(step, task)) {
        return; /* it goes on without, or has all stopped */
    } else if (!has_succeeded) {
        fail_gang(step, task, weir_task_describe_end(task, step->arena));
    } else {
        refresh_gang(step);
        if (weir_job_work_is_done(step->state)) {
            job_stop(step, WEIR_JOB_SUCCEEDED);
        }
    }
}

static void bind_tasks(struct step *step, const size_t *wants, size_t n_wants)
{
    struct weir_job *job = &step->state->job;
    bool is_independent = weir_job_has_independent_tasks(step->state);
    bool begins = !is_independent && weir_job_phase_of(step->state) == WEIR_JOB_PENDING;
    if (begins) {
        job->attempt = weir_job_last_attempt(step->state) + 1;
        job->reason = job->eviction = NULL;
        set_phase(step, WEIR_JOB_STARTING);
    }
    for (size_t i = 0; i < n_wants; i++) {
        struct weir_task *task = &step->state->tasks[wants[i]];
        if (step->event->place[i] == NULL) {
            continue;
        }
        task->node = weir_arena_strdup(step->arena, step->event->place[i]);
        task->devices = step->event->devices != NULL
                            ? weir_arena_strdup(step->arena, step->event->devices[i])
                            : NULL;
        task->attempt = begins ? job->attempt : task->attempt + 1;
        task->desired = "running";
        task->pid = 0;
        task->exit_code = -1;
        task->signal = 0;
        task->message = NULL;
        task->started_ms = step->now_ms;
        task->finished_ms = task->asked_ms = task->saved_ms = 0;
        set_task_phase(task, WEIR_TASK_STARTING);
        job_wake(step, task->node);
    }
    if (step->state->job.is_array) {
        job->attempt = weir_job_last_attempt(step->state);
        job->reason = job->eviction = NULL;
    }
    if (is_independent) {
        job_refresh_independent(step);
    }
}

static void on_running(struct step *step, struct weir_task *task)
{
    if (weir_task_is_alive(task)) {
        task->pid = step->event->pid;
    }
    if (weir_task_phase_of(task) != WEIR_TASK_STARTING) {
        return;
    }
    set_task_phase(task, WEIR_TASK_RUNNING);
    if (weir_job_has_independent_tasks(step->state)) {
        job_refresh_independent(step);
        return;
    }
    refresh_gang(step);
}

/* It goes on to count, and to have what it has: what comes of its failure waits for its end. */
static void on_held(struct step *step, struct weir_task *task)
{
    struct weir_job *job = &step->state->job;
    if (weir_task_phase_of(task) != WEIR_TASK_RUNNING ||
        (task->message != NULL && strcmp(task->message, step->event->text) == 0)) {
        return;
    }
    task->message = weir_arena_strdup(step->arena, step->event->text);
    job->reason = weir_arena_printf(step->arena, "%s-%" PRId64 " is %s", task->role, task->rank,
                                    task->message);
    job_tell(step, "task_kept",
             weir_arena_printf(step->arena,
                               "Task %s of job %s: weir job shell %s/%s-%" PRId64
                               " looks at it, weir job cancel ends it.",
                               job->reason, job->name, job->name, task->role, task->rank));
}

static void on_end(struct step *step, struct weir_task *task, bool is_lost)
{
    if (!weir_task_is_alive(task)) {
        return;
    }
    task->exit_code = is_lost ? -1 : step->event->exit_code;
    task->signal = is_lost ? 0 : step->event->signal;
    task->message = weir_arena_strdup(step->arena, step->event->text);
    task->finished_ms = step->now_ms;
    set_task_phase(task, is_lost ? WEIR_TASK_LOST : WEIR_TASK_EXITED);
    after_end(step, task);
}

static void on_node_lost(struct step *step)
{
    struct weir_task *named = NULL;
    for (size_t i = 0; i < step->state->n_tasks; i++) {
        struct weir_task *task = &step->state->tasks[i];
        if (!weir_task_is_alive(task) || strcmp(task->node, step->event->node) != 0) {
            continue;
        }
        task->message = step->event->is_foreseen
                            ? tell_foreseen(step, task)
                            : weir_arena_printf(step->arena, "node %s is lost", step->event->node);
        task->exit_code = -1;
        task->finished_ms = step->now_ms;
        set_task_phase(task, WEIR_TASK_LOST);
        if (weir_job_has_independent_tasks(step->state)) {
            after_end(step, task);
        } else {
            named = named == NULL ? task : named;
        }
    }
    for (size_t i = 0; weir_job_is_elastic(step->state) && i < step->state->n_tasks; i++) {
        struct weir_task *task = &step->state->tasks[i];
        bool is_of_now = weir_task_phase_of(task) == WEIR_TASK_LOST && task->node != NULL &&
                         task->finished_ms == step->now_ms;
        if (is_of_now) {
            after_end(step, task);
        }
    }
    if (named != NULL && !weir_job_is_elastic(step->state)) {
        after_end(step, named);
    }
}

/** A device is no longer fit to be used: what has it moves, which is no failure of its own. */
static void on_device_lost(struct step *step, struct weir_task *task)
{
    struct weir_job *job = &step->state->job;
    enum weir_job_phase phase = weir_job_phase_of(step->state);
    bool is_active = phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING;
    if (!weir_task_is_alive(task) || weir_task_phase_of(task) == WEIR_TASK_STOPPING || !is_active) {
        return;
    }
    job->reason = weir_arena_strdup(step->arena, step->event->text);
    job_tell(step, "job_moves",
             weir_arena_printf(step->arena, "Job %s moves: %s.", job->name, job->reason));
    if (weir_job_has_independent_tasks(step->state)) {
        job_stop_task(step, task);
        job_refresh_independent(step);
        return;
    }
    if (weir_job_is_elastic(step->state) && weir_job_may_lose(step->state, task)) {
        job_stop_task(step, task);
        return;
    }
    job->due_ms = step->now_ms;
    set_phase(step, WEIR_JOB_RESTARTING);
    job_stop_alive(step);
}

static void on_tick(struct step *step)
{
    struct weir_job *job = &step->state->job;
    if (weir_job_limit_end_ms(step->state) <= step->now_ms) {
        job->reason = weir_arena_printf(step->arena, "its time limit of %" PRId64 " s is over",
                                        job->time_limit_ms / 1000);
        job_stop(step, WEIR_JOB_FAILED);
        return;
    }
    go_on_if_all_ended(step);
}

/** What is said of one task. */
static weir_status on_report(struct step *step, struct weir_error *err)
{
    struct weir_task *task = weir_job_find_task(step->state, step->event->task);
    if (task == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "job %s has no task \"%s\"",
                              step->state->job.name, step->event->task);
    }
    if (task->attempt != step->event->attempt) {
        return WEIR_OK; /* About an attempt that is over. */
    }
    if (step->event->type == WEIR_JOB_EVENT_TASK_RUNNING) {
        on_running(step, task);
    } else if (step->event->type == WEIR_JOB_EVENT_TASK_HELD) {
        on_held(step, task);
    } else if (step->event->type == WEIR_JOB_EVENT_TASK_SAVED) {
        job_on_saved(step, task);
    } else if (step->event->type == WEIR_JOB_EVENT_DEVICE_LOST) {
        on_device_lost(step, task);
    } else {
        on_end(step, task, step->event->type == WEIR_JOB_EVENT_TASK_LOST);
    }
    return WEIR_OK;
}

static weir_status on_bind(struct step *step, struct weir_error *err)
{
    size_t *wants = WEIR_ARENA_ARRAY(step->arena, step->state->n_tasks + 1, size_t);
    size_t n_wants = weir_job_wants(step->state, step->now_ms, wants);
    WEIR_TRY(weir_job_check_bind(step->state, step->event, n_wants, err));
    bind_tasks(step, wants, n_wants);
    return WEIR_OK;
}

weir_status weir_job_step(struct weir_job_state *state, const struct weir_job_event *event,
                          int64_t now_ms, struct weir_arena *arena,
                          struct weir_job_actions *actions, struct weir_error *err)
{
    struct step step = {state, event, now_ms, arena, actions};
    if (weir_job_phase_is_final(weir_job_phase_of(state))) {
        if (event->type == WEIR_JOB_EVENT_CANCEL || event->type == WEIR_JOB_EVENT_HOLD ||
            event->type == WEIR_JOB_EVENT_RELEASE || event->type == WEIR_JOB_EVENT_EVICT ||
            event->type == WEIR_JOB_EVENT_ASK || event->type == WEIR_JOB_EVENT_PRIORITY) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "job %s is over: %s", state->job.name,
                                  state->job.state);
        }
        return WEIR_OK;
    }
    switch (event->type) {
    case WEIR_JOB_EVENT_BIND:
        return on_bind(&step, err);
    case WEIR_JOB_EVENT_TASK_RUNNING:
    case WEIR_JOB_EVENT_TASK_HELD:
    case WEIR_JOB_EVENT_TASK_SAVED:
    case WEIR_JOB_EVENT_TASK_EXITED:
    case WEIR_JOB_EVENT_TASK_LOST:
    case WEIR_JOB_EVENT_DEVICE_LOST:
        return on_report(&step, err);
    case WEIR_JOB_EVENT_NODE_LOST:
        on_node_lost(&step);
        break;
    case WEIR_JOB_EVENT_CANCEL:
        job_on_cancel(&step);
        break;
    case WEIR_JOB_EVENT_ASK:
        return job_on_ask(&step, err);
    case WEIR_JOB_EVENT_EVICT:
        return job_on_evict(&step, err);
    case WEIR_JOB_EVENT_HOLD:
        return job_on_hold(&step, err);
    case WEIR_JOB_EVENT_RELEASE:
        return job_on_release(&step, err);
    case WEIR_JOB_EVENT_PRIORITY:
        job_on_priority(&step);
        break;
    case WEIR_JOB_EVENT_TICK:
        on_tick(&step);
        break;
    }
    return WEIR_OK;
}
