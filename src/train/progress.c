#include "train/progress.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS       1000
#define POLL_STEPS    10
#define POLL_STEPS_MS 100 /* ten steps of a tiny net are no news */
#define LINE_EVERY_MS 10000

void train_progress_start(struct train_progress *progress, const struct train_task *task,
                          const struct train_state *state)
{
    int64_t now_ms = weir_mono_ms();
    *progress =
        (struct train_progress){.task = task,
                                .form = isatty(STDOUT_FILENO) ? PROGRESS_TERMINAL : PROGRESS_LINES,
                                .start_ms = now_ms,
                                .last_ms = now_ms,
                                .last_line_ms = now_ms,
                                .first_step = state->step,
                                .last_step = state->step};
    if (strcmp(task->config->output.format, "json") == 0) {
        progress->form = PROGRESS_JSON;
    }
}

void train_progress_add(struct train_progress *progress, double loss, double correct, double seen)
{
    progress->loss += loss;
    progress->correct += correct;
    progress->seen += seen;
}

/* ---- output --------------------------------------------------------------------------------- */

static void print_json(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)printf("%s\n", text != NULL ? text : "{}");
    (void)fflush(stdout);
    free(text);
    json_decref(object);
}

static void close_line(struct train_progress *progress)
{
    if (progress->is_line_open) {
        (void)fputs("\r\033[K", stdout);
        progress->is_line_open = false;
    }
}

static void format_time(double seconds, char out[32])
{
    long long s = isfinite(seconds) && seconds < 1e9 ? (long long)(seconds + 0.5) : 0;
    if (s >= 3600) {
        (void)snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    } else {
        (void)snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
    }
}

static void show_view(struct train_progress *progress, const struct progress_view *view)
{
    if (progress->form == PROGRESS_JSON) {
        print_json(json_pack("{s:s,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f}", "event", "step", "epoch",
                             (json_int_t)view->epoch, "epochs", (json_int_t)view->n_epochs, "step",
                             (json_int_t)view->step, "steps", (json_int_t)view->n_steps,
                             "images_per_second", view->images_per_second, "loss", view->loss,
                             "accuracy", view->accuracy, "learning_rate", view->learning_rate,
                             "eta_s", view->eta_s));
        return;
    }
    char eta[32];
    format_time(view->eta_s, eta);
    bool is_terminal = progress->form == PROGRESS_TERMINAL;
    (void)printf("%sepoch %llu/%llu  step %llu/%llu  %.0f images/s  loss %.4f  accuracy %.4f  "
                 "%s left%s",
                 is_terminal ? "\r\033[K" : "", (unsigned long long)view->epoch,
                 (unsigned long long)view->n_epochs, (unsigned long long)view->step,
                 (unsigned long long)view->n_steps, view->images_per_second, view->loss,
                 view->accuracy, eta, is_terminal ? "" : "\n");
    progress->is_line_open = is_terminal;
    (void)fflush(stdout);
}

/* ---- looks ---------------------------------------------------------------------------------- */

bool train_progress_poll(struct train_progress *progress, const struct train_state *state,
                         bool is_epoch_end, struct progress_view *out)
{
    int64_t now_ms = weir_mono_ms(), passed_ms = now_ms - progress->last_ms;
    uint64_t n_new = state->step - progress->last_step;
    const struct train_task *task = progress->task;
    uint64_t every = (uint64_t)task->config->output.display_every;
    bool is_time = passed_ms >= POLL_MS || (n_new >= POLL_STEPS && passed_ms >= POLL_STEPS_MS);
    bool is_due = every > 0 ? state->step % every == 0 : is_time;
    if ((!is_due && !is_epoch_end) || n_new == 0) {
        return false;
    }
    double all_s = (double)WEIR_MAX(now_ms - progress->start_ms, 1) / 1000;
    double steps_per_s = (double)(state->step - progress->first_step) / all_s;
    *out = (struct progress_view){
        .step = state->step,
        .n_steps = task->n_steps,
        .epoch = (state->step - 1) / task->steps_per_epoch + 1,
        .n_epochs = task->n_epochs,
        .loss = progress->loss / progress->seen,
        .accuracy = progress->correct / progress->seen,
        .images_per_second = progress->seen * 1000 / (double)WEIR_MAX(passed_ms, 1),
        .learning_rate = weir_schedule_rate(&task->schedule, state->step - 1),
        .eta_s = (double)(task->n_steps - state->step) / steps_per_s};
    progress->last_ms = now_ms;
    progress->last_step = state->step;
    progress->loss = progress->correct = progress->seen = 0;
    bool is_shown = progress->form != PROGRESS_LINES || every > 0 ||
                    (now_ms - progress->last_line_ms >= LINE_EVERY_MS && !is_epoch_end);
    if (is_shown) {
        progress->last_line_ms = now_ms;
        show_view(progress, out);
    }
    return true;
}

void train_progress_epoch(struct train_progress *progress, const struct train_state *state,
                          const struct train_score *score, bool is_best)
{
    unsigned long long epoch = state->step / progress->task->steps_per_epoch;
    double loss = state->epoch_loss / state->epoch_seen;
    double accuracy = state->epoch_correct / state->epoch_seen;
    double seconds = (double)(weir_mono_ms() - progress->start_ms) / 1000;
    if (progress->form == PROGRESS_JSON) {
        json_t *object = json_pack(
            "{s:s,s:I,s:I,s:I,s:f,s:f,s:f}", "event", "epoch", "epoch", (json_int_t)epoch, "epochs",
            (json_int_t)progress->task->n_epochs, "step", (json_int_t)state->step, "loss", loss,
            "accuracy", accuracy, "seconds", seconds);
        if (score->n > 0) {
            json_object_set_new(object, "validation_loss", json_real(score->loss));
            json_object_set_new(object, "validation_accuracy", json_real(score->accuracy));
            train_detect_write(&score->found, object);
        }
        if (is_best) {
            json_object_set_new(object, "best", json_true());
        }
        print_json(object);
        return;
    }
    close_line(progress);
    (void)printf("epoch %llu/%llu  loss %.4f  accuracy %.4f", epoch,
                 (unsigned long long)progress->task->n_epochs, loss, accuracy);
    if (score->n > 0) {
        (void)printf("  validation loss %.4f  accuracy %.4f", score->loss, score->accuracy);
    }
    if (score->n > 0 && score->found.is_known) {
        (void)printf("  recall %.3f", score->found.recall_10);
    }
    (void)printf("%s  after %.1f s\n", is_best ? "  best" : "", seconds);
    (void)fflush(stdout);
    progress->last_line_ms = weir_mono_ms();
}

void train_progress_note(struct train_progress *progress, const char *event, const char *key,
                         double value)
{
    if (progress->form == PROGRESS_JSON) {
        json_t *object = json_pack("{s:s}", "event", event);
        if (key != NULL) {
            json_object_set_new(object, key, json_real(value));
        }
        print_json(object);
        return;
    }
    close_line(progress);
    if (key != NULL) {
        (void)printf("%s  %s %.6g\n", event, key, value);
    } else {
        (void)printf("%s\n", event);
    }
    (void)fflush(stdout);
}

void train_progress_registered(struct train_progress *progress, const char *model, int64_t version)
{
    if (progress->form == PROGRESS_JSON) {
        print_json(json_pack("{s:s,s:s,s:I}", "event", "registered", "model", model, "version",
                             (json_int_t)version));
        return;
    }
    close_line(progress);
    (void)printf("registered  model %s, version %lld\n", model, (long long)version);
    (void)fflush(stdout);
}

static json_t *members_json(const struct progress_group *group)
{
    json_t *array = json_array();
    for (int i = 0; i < group->n; i++) {
        json_array_append_new(array, json_integer(group->members[i]));
    }
    return array;
}

static void print_members(const char *event, const struct progress_group *group)
{
    for (int i = 0; i < group->n; i++) {
        (void)printf("%s %d", i == 0 ? event : ",", group->members[i]);
    }
    (void)printf("%s", group->n > 0 ? "  " : "");
}

void train_progress_members(struct train_progress *progress, const struct progress_change *change)
{
    if (progress->form == PROGRESS_JSON) {
        print_json(json_pack("{s:s,s:I,s:i,s:o,s:o,s:f}", "event", "workers", "step",
                             (json_int_t)change->step, "workers", change->n_workers, "lost",
                             members_json(&change->lost), "joined", members_json(&change->joined),
                             "seconds", change->seconds));
        return;
    }
    close_line(progress);
    print_members("lost worker", &change->lost);
    print_members("joined by worker", &change->joined);
    (void)printf("%d workers go on at step %llu after %.3f s\n", change->n_workers,
                 (unsigned long long)change->step, change->seconds);
    (void)fflush(stdout);
}

void train_progress_done(struct train_progress *progress, const char *output)
{
    double seconds = (double)(weir_mono_ms() - progress->start_ms) / 1000;
    if (progress->form == PROGRESS_JSON) {
        print_json(
            json_pack("{s:s,s:s,s:f}", "event", "done", "output", output, "seconds", seconds));
        return;
    }
    close_line(progress);
    (void)printf("%s written after %.1f s\n", output, seconds);
    (void)fflush(stdout);
}
