/** The report: the ledger of what was sent against what the server has recorded. */
#include "demo/demo.h"

#include "base/clock.h"
#include "demo/film.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWAP_WINDOW_MS 2000

enum kind { KIND_STAFF, KIND_BARRED, KIND_JOINED, KIND_UNKNOWN, KIND_DAMAGED, N_KINDS };

static const char *const kind_texts[N_KINDS] = {"enrolled", "barred", "newly_enrolled", "unknown",
                                                "damaged"};

/* One frame, or one passage: what was sent, what was decided. */
struct judged {
    const struct demo_person *person;
    const char *camera; /**< Lives as long as the people. */
    int64_t time_ms;    /**< When a passage began. */
    bool is_damaged, is_decided;
};

/* How often it was right and wrong, of frames or of passages. */
struct tally {
    int64_t right[N_KINDS], wrong[N_KINDS];
    json_t *confusion; /**< kind → verdict → count, of wrong ones. */
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
    struct judged *passages; /**< In the order in which they began. */
    size_t n_passages, n_passages_decided, n_passages_doubled;
    /** Decisions about something that the detector took for a face, and that is none. */
    size_t n_no_faces;
    struct decided *decided;
    size_t n_decided, n_frames_decided, n_unasked;
    struct tally of_frames, of_passages;
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

/* A list that grows by doubling, and has room for one more. */
static struct judged *add(struct judged **list, size_t *n)
{
    if ((*n & (*n - 1)) == 0) {
        struct judged *grown = realloc(*list, WEIR_MAX(2 * *n, (size_t)1) * sizeof *grown);
        if (grown == NULL) {
            abort();
        }
        *list = grown;
    }
    return &(*list)[(*n)++];
}

static void read_line(struct report *report, const json_t *entry)
{
    char key[128];
    const char *camera = json_string_value(json_object_get(entry, "camera"));
    const json_t *frame = json_object_get(entry, "frame");
    const struct judged judged = {
        .person = find_person(report->demo, json_string_value(json_object_get(entry, "person"))),
        .camera = weir_arena_strdup(report->demo->call->arena, camera),
        .time_ms = json_integer_value(json_object_get(entry, "time_ms")),
        .is_damaged = json_is_true(json_object_get(entry, "damaged")),
    };
    if (frame == NULL) {
        *add(&report->passages, &report->n_passages) = judged;
        return;
    }
    (void)snprintf(key, sizeof key, "%s/%lld", camera, (long long)json_integer_value(frame));
    json_object_set_new(report->frames, key, json_integer((json_int_t)report->n_sent));
    *add(&report->judged, &report->n_sent) = judged;
}

static weir_status read_ledger(struct report *report, struct weir_error *err)
{
    FILE *file = fopen(report->demo->ledger_path, "re");
    char line[1024];
    if (file == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "no frame was sent");
    }
    while (fgets(line, sizeof line, file) != NULL) {
        json_t *entry = json_loads(line, 0, NULL);
        read_line(report, entry);
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

static int64_t time_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    int64_t time_ms = 0;
    return text != NULL && weir_time_parse(text, &time_ms) == WEIR_OK ? time_ms : 0;
}

static void count(struct tally *tally, const struct judged *sent, const json_t *decision)
{
    enum kind kind = expected_kind(sent, decision);
    if (is_right(kind, sent, decision)) {
        tally->right[kind]++;
        return;
    }
    const char *verdict = json_string_value(json_object_get(decision, "verdict"));
    json_t *row = json_object_get(tally->confusion, kind_texts[kind]);
    tally->wrong[kind]++;
    if (row == NULL) {
        row = json_object();
        json_object_set_new(tally->confusion, kind_texts[kind], row);
    }
    json_object_set_new(row, verdict,
                        json_integer(json_integer_value(json_object_get(row, verdict)) + 1));
}

/* The passage that a decision is about: the last one of its camera that had begun when its first frame was taken. */
static struct judged *passage_of(const struct report *report, const json_t *decision)
{
    const char *camera = json_string_value(json_object_get(decision, "camera"));
    int64_t first_ms = time_of(json_object_get(decision, "passage"), "first");
    struct judged *found = NULL;
    for (size_t i = 0; i < report->n_passages; i++) {
        struct judged *passage = &report->passages[i];
        if (passage->time_ms <= first_ms && strcmp(passage->camera, camera) == 0) {
            found = passage;
        }
    }
    return found;
}

/* Is what was found a face as large as those that are shown, at their height? Theirs are found 88 to 104 high of FILM_FACE_HEIGHT; a
 * part of one, such as eyes and nose, up to 62. */
static bool is_face(const json_t *decision)
{
    const json_t *box = json_object_get(decision, "box");
    double y = json_number_value(json_object_get(box, "y"));
    double height = json_number_value(json_object_get(box, "h"));
    return height > 0.75 * FILM_FACE_HEIGHT && height < 1.4 * FILM_FACE_HEIGHT &&
           fabs(y + height / 2 - FILM_FACE_Y) < 0.4 * FILM_FACE_HEIGHT;
}

/* What was sent that a decision is about; NULL: nothing. */
static struct judged *find_sent(struct report *report, const json_t *decision)
{
    char key[128];
    if (json_is_object(json_object_get(decision, "passage"))) {
        return passage_of(report, decision);
    }
    (void)snprintf(key, sizeof key, "%s/%lld",
                   json_string_value(json_object_get(decision, "camera")),
                   (long long)json_integer_value(json_object_get(decision, "frame")));
    const json_t *index = json_object_get(report->frames, key);
    return index != NULL ? &report->judged[json_integer_value(index)] : NULL;
}

static void say_doubled(const struct judged *sent, const json_t *decision)
{
    const json_t *passage = json_object_get(decision, "passage");
    char *box = json_dumps(json_object_get(decision, "box"), JSON_COMPACT | JSON_REAL_PRECISION(3));
    demo_say(
        "%s: who passed from %lld ms on is decided twice: %s %s from %lld to %lld, %lld frames, %s",
        sent->camera, (long long)sent->time_ms,
        json_string_value(json_object_get(decision, "verdict")),
        json_string_value(json_object_get(passage, "id")), (long long)time_of(passage, "first"),
        (long long)time_of(passage, "last"),
        (long long)json_integer_value(json_object_get(passage, "n_frames")), box);
    free(box);
}

static void judge(struct report *report, const json_t *decision)
{
    bool is_passage = json_is_object(json_object_get(decision, "passage"));
    struct judged *sent = find_sent(report, decision);
    if (is_passage && !is_face(decision)) {
        report->n_no_faces++;
        return;
    }
    if (sent == NULL) {
        report->n_unasked++;
        return;
    }
    report->n_frames_decided += !is_passage;
    report->n_passages_decided += is_passage;
    if (is_passage && sent->is_decided) {
        report->n_passages_doubled++;
        say_doubled(sent, decision);
    }
    sent->is_decided = true;
    count(is_passage ? &report->of_passages : &report->of_frames, sent, decision);
    struct decided *decided = &report->decided[report->n_decided++];
    decided->latency_ms =
        (double)json_integer_value(json_object_get(decision, "latency_us")) / 1000;
    decided->time_ms = time_of(decision, "time_ms");
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

/* Frames and passages that the JSON-lines sink holds twice: there a doubled decision would show. */
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
        const char *own = json_string_value(json_object_get(decision, "key"));
        (void)snprintf(key, sizeof key, "%s/%lld", camera != NULL ? camera : "",
                       (long long)json_integer_value(json_object_get(decision, "frame")));
        own = own != NULL ? own : key;
        n_doubled += json_object_get(seen, own) != NULL;
        json_object_set_new(seen, own, json_true());
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

static int64_t count_lost(const struct judged *sent, size_t n)
{
    int64_t n_lost = 0;
    for (size_t i = 0; i < n; i++) {
        n_lost += !sent[i].is_decided;
    }
    return n_lost;
}

static void put_tally(json_t *out, const struct tally *tally)
{
    json_t *right = json_object(), *wrong = json_object();
    for (int kind = 0; kind < N_KINDS; kind++) {
        json_object_set_new(right, kind_texts[kind], json_integer(tally->right[kind]));
        json_object_set_new(wrong, kind_texts[kind], json_integer(tally->wrong[kind]));
    }
    json_object_set_new(out, "right", right);
    json_object_set_new(out, "wrong", wrong);
    json_object_set(out, "wrong_verdicts", tally->confusion);
}

/* What became of the passages, each of which is one decision. */
static void put_passages(json_t *out, const struct report *report, int64_t n_lost)
{
    json_t *passages = json_pack(
        "{s:I,s:I,s:I,s:I,s:I}", "sent", (json_int_t)report->n_passages, "decisions",
        (json_int_t)report->n_passages_decided, "lost", (json_int_t)n_lost, "doubled",
        (json_int_t)report->n_passages_doubled, "no_faces", (json_int_t)report->n_no_faces);
    put_tally(passages, &report->of_passages);
    json_object_set_new(out, "passages", passages);
}

static weir_status print_report(struct report *report, struct weir_error *err)
{
    int64_t n_lost = count_lost(report->judged, report->n_sent);
    int64_t n_passages_lost = count_lost(report->passages, report->n_passages);
    int64_t n_doubled = count_doubled(report);
    json_t *out = json_pack("{s:I,s:I,s:I,s:I}", "frames_sent", (json_int_t)report->n_sent,
                            "decisions", (json_int_t)report->n_frames_decided, "lost",
                            (json_int_t)n_lost, "doubled", (json_int_t)n_doubled);
    put_tally(out, &report->of_frames);
    add_latencies(report, out);
    double first_s = report->first_time_ms > 0
                         ? (double)(report->first_time_ms - report->demo->started_ms) / 1000
                         : NAN;
    json_object_set_new(out, "time_to_first_decision_s", number(first_s));
    if (report->n_passages > 0) {
        put_passages(out, report, n_passages_lost);
    }
    /* With all their parameters: for programs. People have `weir get versions`. */
    weir_status status = cli_is_json(report->demo->call) ? add_models(report, out, err) : WEIR_OK;
    if (status == WEIR_OK) {
        cli_print_object(report->demo->call, out);
    }
    json_decref(out);
    n_lost += n_passages_lost;
    n_doubled += (int64_t)report->n_passages_doubled;
    if (status == WEIR_OK && (n_lost > 0 || n_doubled > 0)) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "%lld frames or passages were lost, %lld doubled",
                                (long long)n_lost, (long long)n_doubled);
    }
    return status;
}

weir_status demo_report(struct demo *demo, struct weir_error *err)
{
    struct report report = {.demo = demo, .frames = json_object()};
    report.of_frames.confusion = json_object();
    report.of_passages.confusion = json_object();
    weir_status status = read_ledger(&report, err);
    if (status == WEIR_OK) {
        status = read_decisions(&report, err);
    }
    if (status == WEIR_OK) {
        status = print_report(&report, err);
    }
    free(report.judged);
    free(report.passages);
    free(report.decided);
    json_decref(report.frames);
    json_decref(report.of_frames.confusion);
    json_decref(report.of_passages.confusion);
    return status;
}
