/** The report: the ledger of what was sent against what the server has recorded. */
#include "demo/demo.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWAP_WINDOW_MS 2000

enum kind { KIND_STAFF, KIND_BARRED, KIND_JOINED, KIND_UNKNOWN, KIND_DAMAGED, N_KINDS };

static const char *const kind_texts[N_KINDS] = {"enrolled", "barred", "newly_enrolled", "unknown",
                                                "damaged"};

/* One frame: what was sent, what was decided. */
struct judged {
    const struct demo_person *person;
    bool is_damaged, is_decided;
};

struct decided {
    double latency_ms;
    int64_t time_ms, model_version;
};

struct report {
    struct demo *demo;
    json_t *frames; /**< "camera/frame" → index into judged. */
    struct judged *judged;
    size_t n_sent;
    struct decided *decided;
    size_t n_decided, n_unasked;
    int64_t right[N_KINDS], wrong[N_KINDS];
    json_t *confusion; /**< kind → verdict → count, of wrong ones. */
    int64_t first_time_ms;
};

static const struct demo_person *find_person(const struct demo *demo, const char *name)
{
    for (size_t i = 0; i < demo->n_people; i++) {
        if (strcmp(demo->people[i].name, name) == 0) {
            return &demo->people[i];
        }
    }
    return NULL;
}

static weir_status read_ledger(struct report *report, struct weir_error *err)
{
    FILE *file = fopen(report->demo->ledger_path, "re");
    char line[1024];
    size_t cap = 0;
    if (file == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "no frame was sent");
    }
    while (fgets(line, sizeof line, file) != NULL) {
        json_t *entry = json_loads(line, 0, NULL);
        if (report->n_sent == cap) {
            cap = WEIR_MAX(cap * 2, (size_t)4096);
            struct judged *grown = realloc(report->judged, cap * sizeof *grown);
            if (grown == NULL) {
                abort();
            }
            report->judged = grown;
        }
        char key[128];
        (void)snprintf(key, sizeof key, "%s/%lld",
                       json_string_value(json_object_get(entry, "camera")),
                       (long long)json_integer_value(json_object_get(entry, "frame")));
        report->judged[report->n_sent] = (struct judged){
            .person =
                find_person(report->demo, json_string_value(json_object_get(entry, "person"))),
            .is_damaged = json_is_true(json_object_get(entry, "damaged")),
        };
        json_object_set_new(report->frames, key, json_integer((json_int_t)report->n_sent++));
        json_decref(entry);
    }
    (void)fclose(file);
    return WEIR_OK;
}

/* What should have been decided, by the gallery and lists that the decision says it used. */
static enum kind expected_kind(const struct judged *frame, const json_t *decision)
{
    int64_t gallery = json_integer_value(json_object_get(decision, "gallery_version"));
    int64_t lists = json_integer_value(json_object_get(decision, "list_revision"));
    int64_t enrolled = atomic_load(&frame->person->enrolled_version);
    int64_t barred = atomic_load(&frame->person->barred_revision);
    if (frame->is_damaged) {
        return KIND_DAMAGED;
    }
    if (enrolled == 0 || gallery < enrolled) {
        return KIND_UNKNOWN;
    }
    if (barred != 0 && lists >= barred) {
        return KIND_BARRED;
    }
    return frame->person->part == DEMO_JOINER ? KIND_JOINED : KIND_STAFF;
}

static bool is_right(enum kind kind, const struct judged *frame, const json_t *decision)
{
    static const char *const wanted[N_KINDS] = {"grant", "deny", "grant", "unknown", "error"};
    const char *verdict = json_string_value(json_object_get(decision, "verdict"));
    const char *person = json_string_value(json_object_get(decision, "person"));
    if (verdict == NULL || strcmp(verdict, wanted[kind]) != 0) {
        return false;
    }
    bool is_named = kind == KIND_STAFF || kind == KIND_JOINED || kind == KIND_BARRED;
    return !is_named || (person != NULL && strcmp(person, frame->person->name) == 0);
}

static int64_t time_of(const json_t *decision)
{
    const char *text = json_string_value(json_object_get(decision, "time_ms"));
    int64_t time_ms = 0;
    return text != NULL && weir_time_parse(text, &time_ms) == WEIR_OK ? time_ms : 0;
}

static void judge(struct report *report, const json_t *decision)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%s/%lld",
                   json_string_value(json_object_get(decision, "camera")),
                   (long long)json_integer_value(json_object_get(decision, "frame")));
    const json_t *index = json_object_get(report->frames, key);
    if (index == NULL) {
        report->n_unasked++;
        return;
    }
    struct judged *frame = &report->judged[json_integer_value(index)];
    enum kind kind = expected_kind(frame, decision);
    frame->is_decided = true;
    if (is_right(kind, frame, decision)) {
        report->right[kind]++;
    } else {
        report->wrong[kind]++;
        const char *verdict = json_string_value(json_object_get(decision, "verdict"));
        json_t *row = json_object_get(report->confusion, kind_texts[kind]);
        if (row == NULL) {
            row = json_object();
            json_object_set_new(report->confusion, kind_texts[kind], row);
        }
        json_object_set_new(row, verdict,
                            json_integer(json_integer_value(json_object_get(row, verdict)) + 1));
    }
    struct decided *decided = &report->decided[report->n_decided++];
    decided->latency_ms =
        (double)json_integer_value(json_object_get(decision, "latency_us")) / 1000;
    decided->time_ms = time_of(decision);
    decided->model_version = json_integer_value(json_object_get(decision, "model_version"));
    if (report->first_time_ms == 0 || decided->time_ms < report->first_time_ms) {
        report->first_time_ms = decided->time_ms;
    }
}

static weir_status read_decisions(struct report *report, struct weir_error *err)
{
    struct demo *demo = report->demo;
    int64_t after = demo->first_seq;
    size_t cap = 0;
    for (;;) {
        json_t *page, *decision;
        size_t i;
        char *path =
            weir_arena_printf(demo->call->arena, "/api/v1/decisions?ion=%s&after=%lld&limit=1000",
                              demo->ion, (long long)after);
        WEIR_TRY(weir_client_call_retry(demo->call->client, "GET", path, NULL, 30000, &page, err));
        json_t *items = json_object_get(page, "items");
        cap += json_array_size(items);
        struct decided *grown = realloc(report->decided, (cap + 1) * sizeof *grown);
        if (grown == NULL) {
            abort();
        }
        report->decided = grown;
        json_array_foreach(items, i, decision)
        {
            judge(report, decision);
            after = json_integer_value(json_object_get(decision, "seq"));
        }
        bool is_last = json_array_size(items) == 0;
        json_decref(page);
        if (is_last) {
            return WEIR_OK;
        }
    }
}

/* Frames that the JSON-lines sink holds twice: there a doubled decision would show. */
static int64_t count_doubled(const struct report *report)
{
    char line[8192];
    int64_t n_doubled = 0;
    json_t *seen = json_object();
    FILE *file = fopen(report->demo->sink_path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char key[128];
        json_t *decision = json_loads(line, 0, NULL);
        const char *camera = json_string_value(json_object_get(decision, "camera"));
        (void)snprintf(key, sizeof key, "%s/%lld", camera != NULL ? camera : "",
                       (long long)json_integer_value(json_object_get(decision, "frame")));
        n_doubled += json_object_get(seen, key) != NULL;
        json_object_set_new(seen, key, json_true());
        json_decref(decision);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    json_decref(seen);
    return n_doubled;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
    const struct decided *x = a, *y = b;
    return (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
}

/* Nearest-rank quantile; sorts `values`. NaN if there are none. */
static double quantile(double *values, size_t n, double q)
{
    if (n == 0) {
        return NAN;
    }
    qsort(values, n, sizeof *values, by_value);
    size_t rank = (size_t)ceil(q * (double)n);
    return values[WEIR_MIN(WEIR_MAX(rank, (size_t)1), n) - 1];
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(round(value * 1000) / 1000) : json_null();
}

/* Swaps: changes of the model version from one decision to the next. Latencies near one against the
 * others. */
static void add_latencies(const struct report *report, json_t *out)
{
    size_t n = report->n_decided, n_near = 0, n_far = 0, n_all = 0;
    double *near = weir_xalloc(3 * (n + 1) * sizeof *near), *far = near + n + 1, *all = far + n + 1;
    int64_t swaps[1024];
    size_t n_swaps = 0;
    qsort(report->decided, n, sizeof *report->decided, by_time);
    for (size_t i = 1; i < n; i++) {
        if (report->decided[i].model_version > report->decided[i - 1].model_version &&
            n_swaps < WEIR_ARRAY_LEN(swaps)) {
            swaps[n_swaps++] = report->decided[i].time_ms;
        }
    }
    for (size_t i = 0; i < n; i++) {
        bool is_near = false;
        for (size_t k = 0; k < n_swaps && !is_near; k++) {
            is_near = llabs(report->decided[i].time_ms - swaps[k]) <= SWAP_WINDOW_MS;
        }
        all[n_all++] = report->decided[i].latency_ms;
        if (is_near) {
            near[n_near++] = report->decided[i].latency_ms;
        } else {
            far[n_far++] = report->decided[i].latency_ms;
        }
    }
    double near_p99 = quantile(near, n_near, 0.99), far_p99 = quantile(far, n_far, 0.99);
    json_object_set_new(out, "latency_ms",
                        json_pack("{s:o,s:o}", "p50", number(quantile(all, n_all, 0.5)), "p99",
                                  number(quantile(all, n_all, 0.99))));
    json_object_set_new(out, "swaps", json_integer((json_int_t)n_swaps));
    json_object_set_new(out, "swap_p99_ratio", number(near_p99 / far_p99));
    free(near);
}

/* The models that served, with their lineage. */
static weir_status add_models(const struct report *report, json_t *out, struct weir_error *err)
{
    static const char *const members[] = {"model",      "version",         "run",
                                          "dataset",    "dataset_version", "code_version",
                                          "parameters", "metrics",         "created_ms"};
    struct demo *demo = report->demo;
    json_t *answer, *version, *models = json_array();
    size_t i;
    char *path =
        weir_arena_printf(demo->call->arena, "/api/v1/models/%s.training/versions", demo->ion);
    WEIR_TRY(weir_client_call_retry(demo->call->client, "GET", path, NULL, 30000, &answer, err));
    json_array_foreach(json_object_get(answer, "items"), i, version)
    {
        json_t *row = json_object();
        for (size_t k = 0; k < WEIR_ARRAY_LEN(members); k++) {
            json_object_set(row, members[k], json_object_get(version, members[k]));
        }
        json_array_append_new(models, row);
    }
    json_decref(answer);
    json_object_set_new(out, "models", models);
    return WEIR_OK;
}

static int64_t count_lost(const struct report *report)
{
    int64_t n_lost = 0;
    for (size_t i = 0; i < report->n_sent; i++) {
        n_lost += !report->judged[i].is_decided;
    }
    return n_lost;
}

static weir_status print_report(struct report *report, struct weir_error *err)
{
    int64_t n_lost = count_lost(report), n_doubled = count_doubled(report);
    json_t *right = json_object(), *wrong = json_object();
    for (int kind = 0; kind < N_KINDS; kind++) {
        json_object_set_new(right, kind_texts[kind], json_integer(report->right[kind]));
        json_object_set_new(wrong, kind_texts[kind], json_integer(report->wrong[kind]));
    }
    json_t *out = json_pack("{s:I,s:I,s:I,s:I,s:o,s:o,s:O}", "frames_sent",
                            (json_int_t)report->n_sent, "decisions", (json_int_t)report->n_decided,
                            "lost", (json_int_t)n_lost, "doubled", (json_int_t)n_doubled, "right",
                            right, "wrong", wrong, "wrong_verdicts", report->confusion);
    add_latencies(report, out);
    double first_s = report->first_time_ms > 0
                         ? (double)(report->first_time_ms - report->demo->started_ms) / 1000
                         : NAN;
    json_object_set_new(out, "time_to_first_decision_s", number(first_s));
    /* With all their parameters: for programs. People have `weir get versions`. */
    weir_status status = cli_is_json(report->demo->call) ? add_models(report, out, err) : WEIR_OK;
    if (status == WEIR_OK) {
        cli_print_object(report->demo->call, out);
    }
    json_decref(out);
    if (status == WEIR_OK && (n_lost > 0 || n_doubled > 0)) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%lld frames were lost, %lld doubled",
                                (long long)n_lost, (long long)n_doubled);
    }
    return status;
}

weir_status demo_report(struct demo *demo, struct weir_error *err)
{
    struct report report = {.demo = demo, .frames = json_object(), .confusion = json_object()};
    weir_status status = read_ledger(&report, err);
    if (status == WEIR_OK) {
        status = read_decisions(&report, err);
    }
    if (status == WEIR_OK) {
        status = print_report(&report, err);
    }
    free(report.judged);
    free(report.decided);
    json_decref(report.frames);
    json_decref(report.confusion);
    return status;
}
