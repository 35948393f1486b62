#include "capture/state.h"

#include "base/clock.h"
#include "ion/decision.h"
#include "ion/ion_doc.h"
#include "ion/revision.h"
#include "store/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MAX   256
#define SIGNALS_MAX 4096

/* What is kept to be shown. Of what Weir writes an alert is longest, whose data are a health report's
 * details (64 KB) beside its sentence; but a file that was imported may say anything. */
#define RECORD_MAX_BYTES ((size_t)128 << 10)
#define ALERTS_MAX_BYTES ((size_t)64 << 20)

static const char *const verdicts[] = {"grant", "deny", "unknown", "error", "label"};

/* Decisions, in all and by their place among the verdicts. */
struct counts {
    int64_t n, by_verdict[WEIR_ARRAY_LEN(verdicts)];
};

/* A link, as far as policy decisions have told by the moment. */
struct link {
    const char *id;
    json_t *view;
};

struct moment {
    struct weir_arena *arena;
    int64_t time_ms;
    json_t *out, *document; /* owned; of the last revision by then */
    int64_t revision;
    json_t *candidates; /* model by candidate */
    struct link links[LINKS_MAX];
    size_t n_links;
    json_t *signals; /* the last report by "PIPELINE/SIGNAL" */
    json_t *events;  /* a ring: the newest WEIR_SNAPSHOT_STATE_EVENTS */
    size_t n_events, alert_bytes;
    struct counts decisions;
};

static json_t *time_json(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms <= 0) {
        return json_null();
    }
    weir_time_format(time_ms, text);
    return json_string(text);
}

/* A record as JSON. @return LIMIT: its texts are longer than any that Weir writes. */
static weir_status view_of(const struct weir_resource *resource, const void *record, json_t **out,
                           size_t *out_bytes, struct weir_error *err)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field->type == WEIR_FIELD_TYPE_TEXT || field->type == WEIR_FIELD_TYPE_JSON) {
            const char *text = *(char *const *)weir_field_cptr(field, record);
            n_bytes += text != NULL ? strlen(text) : 0;
        }
    }
    if (n_bytes > RECORD_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a %s of the snapshot is longer than %zu KB",
                              resource->name, RECORD_MAX_BYTES >> 10);
    }
    *out = weir_record_to_json(resource, record);
    *out_bytes = n_bytes;
    return WEIR_OK;
}

/* ---- what the records tell ------------------------------------------------------------------- */

static weir_status see_revision(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_ion_revision *revision = record;
    (void)err;
    if (revision->time_ms <= moment->time_ms && revision->document != NULL) {
        json_decref(moment->document);
        moment->document = json_loads(revision->document, 0, NULL);
        moment->revision = revision->revision;
    }
    return WEIR_OK;
}

static weir_status see_candidate(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_ion_candidate *candidate = record;
    (void)err;
    if (candidate->model != NULL) {
        json_object_set_new(moment->candidates, candidate->id, json_string(candidate->model));
    }
    return WEIR_OK;
}

static struct link *link_of(struct moment *moment, const char *id)
{
    for (size_t i = 0; i < moment->n_links; i++) {
        if (strcmp(moment->links[i].id, id) == 0) {
            return &moment->links[i];
        }
    }
    if (moment->n_links == LINKS_MAX) {
        return NULL;
    }
    struct link *link = &moment->links[moment->n_links++];
    const char *colon = strchr(id, ':');
    *link = (struct link){
        .id = weir_arena_strdup(moment->arena, id),
        .view = json_pack("{s:s,s:s%,s:s,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:[]}", "id", id, "from", id,
                          colon != NULL ? (size_t)(colon - id) : strlen(id), "to",
                          colon != NULL ? colon + 1 : "", "policy", "version", "model", "since_ms",
                          "verdict", "rule", "actor", "waiting")};
    return link;
}

/* @return Whether it waited. */
static bool forget_waiting(json_t *view, int64_t version)
{
    bool has_waited = false;
    json_t *waiting = json_object_get(view, "waiting");
    for (size_t i = json_array_size(waiting); i > 0; i--) {
        json_t *one = json_array_get(waiting, i - 1);
        if (json_integer_value(json_object_get(one, "version")) == version) {
            json_array_remove(waiting, i - 1);
            has_waited = true;
        }
    }
    return has_waited;
}

static bool is_one_of(const char *verdict, const char *const *among, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(verdict, among[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* By which a version serves. A rollback by which one that was tried is given up says nothing of what serves:
 * it stood at a policy until then, and what a person goes back to does not. */
static bool lets_serve(const struct weir_policy_decision *decision, bool has_waited)
{
    static const char *const serves[] = {WEIR_VERDICT_PROMOTE, WEIR_VERDICT_SET};
    bool is_by_hand = decision->policy == NULL || strcmp(decision->policy, WEIR_POLICY_NONE) == 0;
    return is_one_of(decision->verdict, serves, WEIR_ARRAY_LEN(serves)) ||
           (strcmp(decision->verdict, WEIR_VERDICT_ROLLBACK) == 0 && is_by_hand && !has_waited);
}

static weir_status see_policy_decision(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_policy_decision *decision = record;
    struct link *link =
        decision->time_ms <= moment->time_ms && decision->link != NULL && decision->verdict != NULL
            ? link_of(moment, decision->link)
            : NULL;
    (void)err;
    if (link == NULL) {
        return WEIR_OK;
    }
    bool has_waited = forget_waiting(link->view, decision->version);
    if (lets_serve(decision, has_waited)) {
        json_object_set_new(link->view, "version", json_integer(decision->version));
        json_t *model = json_object_get(moment->candidates, decision->candidate);
        json_object_set(link->view, "model", model != NULL ? model : json_null());
        json_object_set_new(link->view, "since_ms", time_json(decision->time_ms));
        json_object_set_new(link->view, "verdict", json_string(decision->verdict));
        json_object_set_new(link->view, "rule", json_string(decision->rule));
        json_object_set_new(link->view, "actor", json_string(decision->actor));
    } else if (strcmp(decision->verdict, WEIR_VERDICT_WAIT) == 0) {
        json_array_append_new(json_object_get(link->view, "waiting"),
                              json_pack("{s:I,s:s?,s:s?,s:o}", "version",
                                        (json_int_t)decision->version, "policy", decision->policy,
                                        "rule", decision->rule, "since_ms",
                                        time_json(decision->time_ms)));
    }
    return WEIR_OK;
}

static weir_status see_report(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_health_report *report = record;
    json_t *view;
    size_t n_bytes;
    if (report->time_ms <= moment->time_ms && report->pipeline != NULL && report->signal != NULL &&
        json_object_size(moment->signals) < SIGNALS_MAX) {
        char *key = weir_arena_printf(moment->arena, "%s/%s", report->pipeline, report->signal);
        WEIR_TRY(view_of(&weir_health_report_resource, report, &view, &n_bytes, err));
        json_object_set_new(moment->signals, key, view);
    }
    return WEIR_OK;
}

static weir_status see_alert(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_alert *alert = record;
    json_t *view;
    size_t n_bytes;
    if (alert->raised_ms > moment->time_ms ||
        (alert->resolved_ms != 0 && alert->resolved_ms <= moment->time_ms)) {
        return WEIR_OK;
    }
    WEIR_TRY(view_of(&weir_alert_resource, alert, &view, &n_bytes, err));
    json_array_append_new(json_object_get(moment->out, "alerts"), view);
    moment->alert_bytes += n_bytes + sizeof *alert;
    return moment->alert_bytes <= ALERTS_MAX_BYTES
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "more alerts were open at that moment than can be shown");
}

static weir_status see_event(void *context, const void *record, struct weir_error *err)
{
    struct moment *moment = context;
    const struct weir_event *event = record;
    json_t *view;
    size_t n_bytes;
    if (event->time_ms > moment->time_ms) {
        return WEIR_OK;
    }
    WEIR_TRY(view_of(&weir_event_resource, event, &view, &n_bytes, err));
    if (moment->n_events < WEIR_SNAPSHOT_STATE_EVENTS) {
        json_array_append_new(moment->events, view);
    } else {
        json_array_set_new(moment->events, moment->n_events % WEIR_SNAPSHOT_STATE_EVENTS, view);
    }
    moment->n_events++;
    return WEIR_OK;
}

/* Does the line have this? In JSON a key and its text in quotes stand nowhere inside of another text. */
static const char *find_in(const char *line, size_t len, const char *what)
{
    const char *found = memmem(line, len, what, strlen(what));
    return found != NULL ? found + strlen(what) : NULL;
}

/* Of a line its time. @return False: it has none. */
static bool read_time(const char *line, size_t len, int64_t *out_ms)
{
    char text[WEIR_TIME_TEXT_BYTES] = "";
    const char *time = find_in(line, len, "\"time_ms\":\"");
    const char *end = time != NULL ? memchr(time, '"', len - (size_t)(time - line)) : NULL;
    if (end == NULL || (size_t)(end - time) >= sizeof text) {
        return false;
    }
    memcpy(text, time, (size_t)(end - time));
    return weir_time_parse(text, out_ms) == WEIR_OK;
}

static void count(struct counts *counts, const char *line, size_t len)
{
    char text[32];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verdicts); i++) {
        (void)snprintf(text, sizeof text, "\"verdict\":\"%s\"", verdicts[i]);
        if (find_in(line, len, text) != NULL) {
            counts->by_verdict[i]++;
            counts->n++;
            return;
        }
    }
}

/* There may be many, and a slider moves: they are counted without being read as records. */
static weir_status see_decision(void *context, const char *line, size_t len, int64_t number,
                                bool *out_is_enough, struct weir_error *err)
{
    struct moment *moment = context;
    int64_t time_ms;
    (void)err;
    (void)number;
    if (read_time(line, len, &time_ms)) {
        *out_is_enough = time_ms > moment->time_ms; /* they are in order */
        if (!*out_is_enough) {
            count(&moment->decisions, line, len);
        }
    }
    return WEIR_OK;
}

static json_t *counts_json(const struct counts *counts)
{
    json_t *view = json_pack("{s:I}", "n", (json_int_t)counts->n);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verdicts); i++) {
        json_object_set_new(view, verdicts[i], json_integer((json_int_t)counts->by_verdict[i]));
    }
    return view;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_topology(struct moment *moment)
{
    json_t *pipelines = json_object_get(moment->out, "pipelines"), *item;
    size_t i;
    json_array_foreach(json_object_get(moment->document, "pipelines"), i, item)
    {
        json_t *name = json_object_get(item, "name"), *type = json_object_get(item, "type");
        if (json_is_string(name) && json_is_string(type)) {
            json_array_append_new(pipelines, json_pack("{s:O,s:O}", "name", name, "type", type));
        }
    }
    json_array_foreach(json_object_get(moment->document, "links"), i, item)
    {
        const json_t *from = json_object_get(item, "from");
        const char *model = json_string_value(json_object_get(from, "model"));
        const char *alias = json_string_value(json_object_get(from, "alias"));
        const char *name = json_string_value(from);
        const json_t *to = json_object_get(item, "to");
        const char *deployment = json_string_value(json_object_get(to, "deployment"));
        const char *target = deployment != NULL ? deployment : json_string_value(to);
        if (target == NULL || (model == NULL && name == NULL)) {
            continue;
        }
        struct link *link = link_of(
            moment, weir_arena_printf(moment->arena, "%s%s%s%s:%s%s",
                                      model != NULL ? WEIR_ION_FROM_MODEL : "",
                                      model != NULL ? model : name, alias != NULL ? "@" : "",
                                      alias != NULL ? alias : "",
                                      deployment != NULL ? WEIR_ION_TO_DEPLOYMENT : "", target));
        json_t *policy = json_object_get(item, "policy");
        if (link != NULL && policy != NULL) {
            json_object_set(link->view, "policy", policy);
        }
    }
    for (i = 0; i < moment->n_links; i++) {
        json_array_append(json_object_get(moment->out, "links"), moment->links[i].view);
    }
}

static void put_rest(struct moment *moment)
{
    const char *key;
    json_t *report, *events = json_object_get(moment->out, "events");
    size_t n_kept = json_array_size(moment->events);
    json_object_foreach(moment->signals, key, report)
    {
        json_array_append(json_object_get(moment->out, "health"), report);
    }
    for (size_t i = 0; i < n_kept; i++) {
        size_t at = (moment->n_events - 1 - i) % WEIR_SNAPSHOT_STATE_EVENTS;
        json_array_append(events, json_array_get(moment->events, at));
    }
    json_object_set_new(moment->out, "time_ms", time_json(moment->time_ms));
    json_object_set_new(moment->out, "revision", json_integer(moment->revision));
    json_object_set(moment->out, "document",
                    moment->document != NULL ? moment->document : json_null());
    json_object_set_new(moment->out, "decisions", counts_json(&moment->decisions));
}

static weir_status look(struct moment *moment, const struct weir_snapshot_file *file,
                        struct weir_error *err)
{
    static const struct weir_snapshot_seer seers[] = {
        {&weir_noun_ion_revision, see_revision},
        {&weir_noun_ion_candidate, see_candidate},
        {&weir_noun_policy_decision, see_policy_decision},
        {&weir_noun_health_report, see_report},
        {&weir_noun_alert, see_alert},
        {&weir_noun_event, see_event},
    };
    WEIR_TRY(weir_snapshot_see(file, seers, WEIR_ARRAY_LEN(seers), moment, err));
    WEIR_TRY(weir_snapshot_lines(file, &weir_noun_decision, see_decision, moment, err));
    put_topology(moment);
    put_rest(moment);
    return weir_arena_check(moment->arena, "snapshot", err);
}

struct span {
    int64_t from_ms, to_ms;
};

static weir_status check_moment(const struct weir_snapshot_file *file, int64_t time_ms,
                                struct weir_error *err)
{
    struct span span;
    char from[WEIR_TIME_TEXT_BYTES], to[WEIR_TIME_TEXT_BYTES];
    WEIR_TRY(weir_snapshot_span(file, &span.from_ms, &span.to_ms, err));
    weir_time_format(span.from_ms, from);
    weir_time_format(span.to_ms, to);
    return time_ms >= span.from_ms && time_ms <= span.to_ms
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the snapshot is of %s to %s", from, to);
}

weir_status weir_snapshot_state(const struct weir_snapshot_file *file, int64_t time_ms,
                                struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    WEIR_TRY(check_moment(file, time_ms, err));
    struct moment *moment = WEIR_ARENA_NEW(arena, struct moment);
    *moment = (struct moment){.arena = arena,
                              .time_ms = time_ms,
                              .out = json_pack("{s:[],s:[],s:[],s:[],s:[]}", "pipelines", "links",
                                               "health", "alerts", "events"),
                              .candidates = json_object(),
                              .signals = json_object(),
                              .events = json_array()};
    weir_status status = look(moment, file, err);
    for (size_t i = 0; i < moment->n_links; i++) {
        json_decref(moment->links[i].view);
    }
    json_decref(moment->document);
    json_decref(moment->candidates);
    json_decref(moment->signals);
    json_decref(moment->events);
    if (status != WEIR_OK) {
        json_decref(moment->out);
        return status;
    }
    *out = moment->out;
    return WEIR_OK;
}

/* ---- the course ------------------------------------------------------------------------------ */

struct course {
    struct span span;
    size_t n_parts;
    struct counts *parts;
};

/* The part that a moment is in: a part ends with its last moment, the first begins with the span. */
static size_t part_of(const struct course *course, int64_t time_ms)
{
    int64_t span_ms = course->span.to_ms - course->span.from_ms;
    int64_t after_ms = time_ms - course->span.from_ms;
    if (after_ms <= 0 || span_ms <= 0) {
        return 0;
    }
    double end = (double)after_ms * (double)course->n_parts / (double)span_ms;
    size_t i = (size_t)end;
    i -= i > 0 && (double)i == end ? 1 : 0;
    return WEIR_MIN(i, course->n_parts - 1);
}

static weir_status see_in_course(void *context, const char *line, size_t len, int64_t number,
                                 bool *out_is_enough, struct weir_error *err)
{
    struct course *course = context;
    int64_t time_ms;
    (void)err;
    (void)number;
    if (read_time(line, len, &time_ms)) {
        *out_is_enough = time_ms > course->span.to_ms;
        if (!*out_is_enough) {
            count(&course->parts[part_of(course, time_ms)], line, len);
        }
    }
    return WEIR_OK;
}

weir_status weir_snapshot_course(const struct weir_snapshot_file *file, size_t n_parts,
                                 struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    struct course course = {.n_parts = n_parts,
                            .parts = WEIR_ARENA_ARRAY(arena, n_parts, struct counts)};
    WEIR_TRY(weir_arena_check(arena, "snapshot", err));
    WEIR_TRY(weir_snapshot_span(file, &course.span.from_ms, &course.span.to_ms, err));
    WEIR_TRY(weir_snapshot_lines(file, &weir_noun_decision, see_in_course, &course, err));
    *out = json_array();
    for (size_t i = 0; i < n_parts; i++) {
        double part = (double)(i + 1) / (double)n_parts;
        double span_ms = (double)(course.span.to_ms - course.span.from_ms);
        json_t *view = counts_json(&course.parts[i]);
        json_object_set_new(view, "time_ms",
                            time_json(course.span.from_ms + (int64_t)(span_ms * part)));
        json_array_append_new(*out, view);
    }
    return WEIR_OK;
}
