#include "nn/schedule.h"

#include "base/names.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Longest text of a schedule: sixteen milestones and the other settings fit many times. */
#define TEXT_MAX 512

static const double pi = 3.14159265358979323846;

static double constant_rate(const struct weir_schedule *schedule, uint64_t step)
{
    (void)step;
    return schedule->base;
}

static double step_rate(const struct weir_schedule *schedule, uint64_t step)
{
    double rate = schedule->base;
    for (size_t i = 0; i < schedule->n_milestones && schedule->milestones[i] <= step; i++) {
        rate *= schedule->gamma;
    }
    return rate;
}

static double piecewise_rate(const struct weir_schedule *schedule, uint64_t step)
{
    double rate = schedule->base;
    for (size_t i = 0; i < schedule->n_milestones && schedule->milestones[i] <= step; i++) {
        rate = schedule->rates[i];
    }
    return rate;
}

static double polynomial_rate(const struct weir_schedule *schedule, uint64_t step)
{
    if (step >= schedule->n_steps) {
        return schedule->floor;
    }
    double left = (double)(schedule->n_steps - step);
    double all = (double)(schedule->n_steps - schedule->n_warmup);
    return schedule->floor + (schedule->base - schedule->floor) * pow(left / all, schedule->power);
}

static double cosine_rate(const struct weir_schedule *schedule, uint64_t step)
{
    if (step >= schedule->n_steps) {
        return schedule->floor;
    }
    double done = (double)(step - schedule->n_warmup);
    double all = (double)(schedule->n_steps - schedule->n_warmup);
    return schedule->floor + (schedule->base - schedule->floor) * (1 + cos(pi * done / all)) / 2;
}

static const struct weir_schedule_type types[] = {
    {.name = "constant",
     .doc = "The learning rate stays as it is.",
     .keys = "",
     .rate = constant_rate},
    {.name = "step",
     .doc = "Multiplied by gamma (0.1) at each of milestones (epochs; one half, three quarters).",
     .keys = "gamma milestones",
     .rate = step_rate},
    {.name = "piecewise",
     .doc = "Each of rates from its one of milestones (epochs) on; the learning rate before.",
     .keys = "milestones rates",
     .rate = piecewise_rate},
    {.name = "polynomial",
     .doc = "Down to floor (0) as a power (1: a line) of the steps that are left.",
     .keys = "floor power",
     .rate = polynomial_rate},
    {.name = "cosine",
     .doc = "Half a cosine from the learning rate down to floor (0).",
     .keys = "floor",
     .rate = cosine_rate},
};

const struct weir_schedule_type *weir_schedule_types(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(types);
    return types;
}

double weir_schedule_rate(const struct weir_schedule *schedule, uint64_t step)
{
    if (step < schedule->n_warmup) {
        return schedule->base * (double)(step + 1) / (double)schedule->n_warmup;
    }
    return schedule->type->rate(schedule, step);
}

static const struct weir_schedule_type *type_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

static bool type_takes(const struct weir_schedule_type *type, const char *key)
{
    return weir_words_have(type->keys, key, strlen(key));
}

/** A whole number text, finite; false for anything else. */
static bool number_read(const char *text, double *out)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

/** Epochs to the nearest step. Epochs were checked to be within the span, which fits. */
static uint64_t steps_of(double epochs, const struct weir_schedule_span *span)
{
    return (uint64_t)llround(epochs * (double)span->steps_per_epoch);
}

static weir_status milestones_read(char *text, const struct weir_schedule_span *span,
                                   struct weir_schedule *schedule, struct weir_error *err)
{
    schedule->n_milestones = 0;
    double last = 0;
    for (char *next = text; next != NULL;) {
        char *item = strsep(&next, "/");
        double epochs;
        if (!number_read(item, &epochs) || epochs <= last || epochs > span->epochs) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "schedule: milestones: expected increasing epochs up to %g, "
                                  "got \"%s\"",
                                  span->epochs, item);
        }
        if (schedule->n_milestones == WEIR_SCHEDULE_MILESTONES_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "schedule: milestones: at most %d are kept",
                                  WEIR_SCHEDULE_MILESTONES_MAX);
        }
        schedule->milestones[schedule->n_milestones++] = steps_of(epochs, span);
        last = epochs;
    }
    return WEIR_OK;
}

static weir_status rates_read(char *text, struct weir_schedule *schedule, struct weir_error *err)
{
    schedule->n_rates = 0;
    for (char *next = text; next != NULL;) {
        char *item = strsep(&next, "/");
        double rate;
        if (!number_read(item, &rate) || rate < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "schedule: rates: expected numbers >= 0, got \"%s\"", item);
        }
        if (schedule->n_rates == WEIR_SCHEDULE_MILESTONES_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "schedule: rates: at most %d are kept",
                                  WEIR_SCHEDULE_MILESTONES_MAX);
        }
        schedule->rates[schedule->n_rates++] = rate;
    }
    return WEIR_OK;
}

/** A setting that is one number. */
static weir_status number_setting(const char *key, const char *text,
                                  const struct weir_schedule_span *span,
                                  struct weir_schedule *schedule, struct weir_error *err)
{
    const struct {
        const char *key;
        double *value;
        double high;
        bool can_be_zero;
        const char *expected;
    } settings[] = {
        {"gamma", &schedule->gamma, 1, false, "a number in (0, 1]"},
        {"power", &schedule->power, 100, false, "a number in (0, 100]"},
        {"floor", &schedule->floor, span->learning_rate, true,
         "a number from 0 to the learning rate"},
    };

    size_t i = 0;
    while (strcmp(settings[i].key, key) != 0) {
        i++; /* ends: the type's keys are among them */
    }
    double number;
    if (!number_read(text, &number) || number < 0 || number > settings[i].high ||
        (number == 0 && !settings[i].can_be_zero)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "schedule: %s: expected %s, got \"%s\"", key,
                              settings[i].expected, text);
    }
    *settings[i].value = number;
    return WEIR_OK;
}

static weir_status setting_read(char *setting, const struct weir_schedule_span *span,
                                struct weir_schedule *schedule, struct weir_error *err)
{
    char *value = setting;
    const char *key = strsep(&value, "=");
    if (!type_takes(schedule->type, key)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "schedule: %s has no setting \"%s\"%s%s", schedule->type->name,
            key, *schedule->type->keys == '\0' ? "" : "; it takes: ", schedule->type->keys);
    }
    if (value == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "schedule: %s: expected %s=value", key, key);
    }
    if (strcmp(key, "milestones") == 0) {
        return milestones_read(value, span, schedule, err);
    }
    return strcmp(key, "rates") == 0 ? rates_read(value, schedule, err)
                                     : number_setting(key, value, span, schedule, err);
}

static weir_status span_check(const struct weir_schedule_span *span, struct weir_error *err)
{
    if (!(span->learning_rate > 0) || !isfinite(span->learning_rate)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "learning rate: expected a number > 0, got %g",
                              span->learning_rate);
    }
    /* 2^53: beyond it a step number is no longer exact as a double. */
    if (!(span->epochs > 0) || span->steps_per_epoch == 0 ||
        !(span->epochs * (double)span->steps_per_epoch <= 9007199254740992.0)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "epochs: expected a number > 0 of at least one step, got %g epochs of "
            "%llu steps",
            span->epochs, (unsigned long long)span->steps_per_epoch);
    }
    if (!(span->warmup_epochs >= 0) || !(span->warmup_epochs < span->epochs)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "warmup epochs: expected a number >= 0 and below the %g epochs, got %g", span->epochs,
            span->warmup_epochs);
    }
    return WEIR_OK;
}

static weir_status names_error(const char *name, struct weir_error *err)
{
    struct weir_names known = {0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        weir_names_add(&known, types[i].name, strlen(types[i].name));
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "schedule: expected one of %s, got \"%.64s\"",
                          known.text, name);
}

weir_status weir_schedule_parse(const char *text, const struct weir_schedule_span *span,
                                struct weir_schedule *out, struct weir_error *err)
{
    WEIR_TRY(span_check(span, err));
    char copy[TEXT_MAX];
    int len = snprintf(copy, sizeof copy, "%s", text);
    if (len < 0 || len >= (int)sizeof copy) {
        return weir_error_set(err, WEIR_ERR_INVALID, "schedule: text is over %d bytes", TEXT_MAX);
    }
    char *settings = copy;
    const char *name = strsep(&settings, ":");
    struct weir_schedule schedule = {
        .type = type_find(name),
        .base = span->learning_rate,
        .gamma = 0.1,
        .power = 1,
        .n_steps = WEIR_MAX(steps_of(span->epochs, span), 1),
        .n_warmup = steps_of(span->warmup_epochs, span),
        .milestones = {steps_of(span->epochs / 2, span), steps_of(span->epochs * 3 / 4, span)},
        .n_milestones = 2,
    };
    if (schedule.type == NULL) {
        return names_error(name, err);
    }
    if (type_takes(schedule.type, "rates")) {
        schedule.n_milestones = 0; /* those of step mean nothing without rates */
    }
    while (settings != NULL) {
        WEIR_TRY(setting_read(strsep(&settings, ","), span, &schedule, err));
    }
    if (type_takes(schedule.type, "rates") &&
        (schedule.n_rates == 0 || schedule.n_rates != schedule.n_milestones)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "schedule: %s: expected as many rates as milestones, as in "
                              "milestones=30/60,rates=0.01/0.001; got %zu and %zu",
                              schedule.type->name, schedule.n_rates, schedule.n_milestones);
    }
    *out = schedule;
    return WEIR_OK;
}
