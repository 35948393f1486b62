/**
 * Triggers: when a pipeline of an ION runs. Pure.
 *
 * A trigger is a kind (base/kind.h), a file of its own in ion/trigger/. It sees what is in
 * weir_trigger_inputs and nothing else, and answers whether the pipeline is to run now, why, and when
 * to ask again. The inputs are written with each firing: weir_trigger_replay makes the same decision
 * of them alone.
 *
 * What triggers look at is of three sorts. A person's wish, times and versions of datasets the ION's
 * engine knows itself; reports, figures, alerts and models are observed in the store by the server
 * (control/engine/observe.h). What was observed counts only if it is younger than both the trigger and the
 * beginning of the pipeline's last run: one breach is one run.
 *
 * Each kind takes least_interval_s: so long after the beginning of the last run, of whatever cause, it
 * does not fire. What would have fired a schedule, or is new data, fires when that time is over; a
 * person is refused.
 *
 * In a document a trigger is its name, or an object with its options ("{kind: NAME, OPTION: VALUE}"),
 * and a pipeline has a list of them.
 */
#ifndef WEIR_ION_TRIGGER_H
#define WEIR_ION_TRIGGER_H

#include "base/kind.h"
#include "base/record.h"

/** What a trigger looks at; a record, whose JSON is the firing's `inputs`. Borrowed. */
struct weir_trigger_inputs {
    char *trigger; /**< JSON: {"kind": NAME, OPTION: VALUE}. */
    int64_t now_ms;
    int64_t armed_ms;   /**< Since when the document has it. */
    int64_t started_ms; /**< When the pipeline's last run began; 0: never. */
    char *by;           /**< A person who wants a run; NULL: nobody does. */
    int64_t next_ms;    /**< When the schedule's time comes or came; 0: never. */
    /* The newest version of the pipeline's dataset, and the one that the last run began with. */
    char *dataset;
    int64_t version, n_files, n_bytes, n_rows;
    int64_t used_version, used_files, used_bytes, used_rows;
    char *windows; /**< JSON: [{"signal", "pipeline", "drifted": [bool, newest first]}]. */
    bool has_value;
    double value;
    int64_t value_ms; /**< The value's own time. */
    int64_t n_values; /**< From how many it was made. */
    char *alert;      /**< The newest open alert of the kind, in words; NULL: none. */
    int64_t alert_ms; /**< When it was raised last. */
    int64_t model_ms; /**< When the newest version of the pipeline's model came; 0: never. */
};

extern const struct weir_resource weir_trigger_inputs_resource;

struct weir_trigger_verdict {
    bool fires;
    const char *reason; /**< In words; a literal, or in the arena. */
    int64_t until_ms;   /**< If it does not fire: when to ask again; INT64_MAX: no time is known. */
};

/** What every kind's options begin with. */
struct weir_trigger_common {
    int64_t least_interval_s;
};

#define WEIR_TRIGGER_LEAST(strct, fallback)                                                        \
    WEIR_OPT_JSON(strct, common.least_interval_s, "least-interval-s", INT, 0, fallback, 0,         \
                  315360000, "Least time since the beginning of the pipeline's last run")

/** What a kind's inputs are: which part of them somebody has to fill. */
enum weir_trigger_sees {
    WEIR_TRIGGER_SEES_OWN,     /**< What the ION's engine knows. */
    WEIR_TRIGGER_SEES_WINDOWS, /**< weir_trigger_drift */
    WEIR_TRIGGER_SEES_VALUE,   /**< weir_trigger_metric */
    WEIR_TRIGGER_SEES_ALERT,   /**< weir_trigger_alert */
    WEIR_TRIGGER_SEES_MODEL,
};

/** `ops` of a trigger. */
struct weir_trigger_ops {
    enum weir_trigger_sees sees;
    /** What belongs together in the options. NULL: nothing. */
    weir_status (*check)(const void *options, const char *where, struct weir_error *err);
    /** Would it fire, were there no least interval? */
    struct weir_trigger_verdict (*decide)(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena);
};

/* Options that say what is to be observed. */

struct weir_trigger_drift {
    struct weir_trigger_common common;
    char *signal;   /**< NULL: any. */
    char *pipeline; /**< NULL: any of the ION. */
    int64_t k, n;
};

struct weir_trigger_metric {
    struct weir_trigger_common common;
    char *of;       /**< "kpi", "accuracy", "run" */
    char *name;     /**< NULL: of accuracy. */
    char *pipeline; /**< Of accuracy; NULL: any of the ION. */
    char *when;     /**< "above", "below" */
    double threshold;
    int64_t window_s, min_samples; /**< Of accuracy. */
};

struct weir_trigger_alert {
    struct weir_trigger_common common;
    char *alert; /**< Kind. */
};

extern const struct weir_registry weir_triggers;

#define WEIR_KIND(name) extern const struct weir_kind weir_trigger_kind_##name;
#include "ion/triggers.def"
#undef WEIR_KIND

#define WEIR_TRIGGERS_MAX 16

/** A trigger of a pipeline. */
struct weir_trigger {
    const struct weir_kind *kind;
    const void *options; /**< Begins with struct weir_trigger_common. */
    char *text;          /**< JSON: {"kind": NAME, OPTION: VALUE}. */
};

struct weir_trigger_list {
    struct weir_trigger *items;
    size_t n; /**< 1 or more: one of them is manual. */
};

/**
 * Read a list of triggers. One that names no manual trigger gets it: a person may start the pipeline.
 * @param where  "$.pipelines[0].triggers".
 */
weir_status weir_triggers_read(const json_t *list, const char *where, struct weir_arena *arena,
                               struct weir_trigger_list *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The first of this kind; NULL: none. */
const struct weir_trigger *weir_trigger_of_kind(const struct weir_trigger_list *list,
                                                const struct weir_kind *kind);

/** Ask a trigger, least interval included. */
struct weir_trigger_verdict weir_trigger_decide(const struct weir_trigger *trigger,
                                                const struct weir_trigger_inputs *inputs,
                                                struct weir_arena *arena);

/** A time that is past; 0 for one ahead, from before a wall clock was set back: it says nothing. */
static inline int64_t weir_trigger_past_ms(const struct weir_trigger_inputs *inputs,
                                           int64_t time_ms)
{
    return time_ms <= inputs->now_ms ? time_ms : 0;
}

/** Facts that are as old as this or older are used up. */
static inline int64_t weir_trigger_since_ms(const struct weir_trigger_inputs *inputs)
{
    return WEIR_MAX(weir_trigger_past_ms(inputs, inputs->armed_ms),
                    weir_trigger_past_ms(inputs, inputs->started_ms));
}

/** When the least interval since the last run is over; 0: it is. */
int64_t weir_trigger_until_ms(const struct weir_trigger *trigger,
                              const struct weir_trigger_inputs *inputs);

static inline const struct weir_trigger_ops *weir_trigger_ops(const struct weir_trigger *trigger)
{
    return trigger->kind->ops;
}

/** The schedule's text; NULL if the trigger is none. */
const char *weir_trigger_cron(const struct weir_trigger *trigger);

/** A firing's `inputs`, as JSON in the arena. */
char *weir_trigger_inputs_text(const struct weir_trigger_inputs *inputs, struct weir_arena *arena);

/** Make a recorded decision again. @return INVALID or UNSUPPORTED: they are not a trigger's inputs. */
weir_status weir_trigger_replay(const char *inputs, struct weir_arena *arena,
                                struct weir_trigger_verdict *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
