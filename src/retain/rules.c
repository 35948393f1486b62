#include "retain/retain.h"

#include "store/event.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND ((int64_t)1000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define MB     ((int64_t)1000000)
#define GB     (1000 * MB)

#define SETTING   "retention"
#define WORDS_MAX 128

// clang-format off
const struct weir_retain_rule weir_retain_rules[WEIR_RETAIN_N] = {
    [WEIR_RETAIN_DECISIONS] = {"decisions", "What replicas decided about frames, one row each",
        "The oldest go first.",
        {30 * DAY, 1200 * MB}, 570},
    [WEIR_RETAIN_EVENTS] = {"events", "What happened, in sentences",
        "The oldest go first.",
        {90 * DAY, 100 * MB}, 400},
    [WEIR_RETAIN_AUDIT] = {"audit", "What admins did to users and tokens",
        "The oldest go first.",
        {730 * DAY, 30 * MB}, 400},
    [WEIR_RETAIN_ACCESSES] = {"accesses", "Sessions, first uses of tokens, who was refused",
        "The oldest go first.",
        {90 * DAY, 20 * MB}, 400},
    [WEIR_RETAIN_ALERTS] = {"alerts", "Alerts that are resolved",
        "Those resolved longest ago go first; one that is not resolved stays.",
        {90 * DAY, 20 * MB}, 600},
    [WEIR_RETAIN_DELIVERIES] = {"deliveries", "Messages about alerts that were sent or given up",
        "Those done longest ago go first; one that waits stays.",
        {90 * DAY, 5 * MB}, 1500},
    [WEIR_RETAIN_SILENCES] = {"silences", "Silences of alerts that have ended",
        "Those that ended longest ago go first; one that holds stays.",
        {730 * DAY, 1 * MB}, 400},
    [WEIR_RETAIN_HEALTH] = {"health-reports", "What the replicas' monitors found",
        "The oldest go first.",
        {30 * DAY, 100 * MB}, 1200},
    [WEIR_RETAIN_KPIS] = {"kpis", "Business figures of IONs",
        "The oldest go first.",
        {730 * DAY, 10 * MB}, 180},
    [WEIR_RETAIN_FEEDBACK] = {"feedback", "What decisions turned out to be",
        "The oldest go first.",
        {365 * DAY, 30 * MB}, 400},
    [WEIR_RETAIN_OUTCOMES] = {"outcomes", "What came of requests of deployments",
        "Those of the requests answered longest ago go first; those of the last 7 days stay, so that "
        "what is told again is counted once.",
        {90 * DAY, 40 * MB}, 600},
    [WEIR_RETAIN_STATISTICS] = {"statistics", "What programs of IONs told about themselves",
        "The oldest go first.",
        {90 * DAY, 20 * MB}, 1000},
    [WEIR_RETAIN_POLICY_DECISIONS] = {"policy-decisions", "What policies decided about models",
        "The oldest go first, but none about a model that serves or waits.",
        {730 * DAY, 50 * MB}, 900},
    [WEIR_RETAIN_METRICS] = {"metrics", "The curves of runs",
        "Those of runs that ended longest ago go first; those of models that serve or wait stay.",
        {365 * DAY, 200 * MB}, 130},
    [WEIR_RETAIN_JOBS] = {"jobs", "Jobs that are over, their tasks and runs",
        "Those that ended longest ago go first; one that made a model or dataset version stays with its run.",
        {90 * DAY, 100 * MB}, 6000},
    [WEIR_RETAIN_SWEEPS] = {"sweeps", "Sweeps that are over, with what their trials tried",
        "Those that ended longest ago go first.",
        {365 * DAY, 10 * MB}, 60000},
    [WEIR_RETAIN_ATTEMPTS] = {"attempts", "Where the starts of tasks of jobs that are over ran",
        "Those of jobs that ended longest ago go first; an agent cannot report them any more.",
        {7 * DAY, 15 * MB}, 180},
    [WEIR_RETAIN_REPLICA_REPORTS] = {"replica-reports", "Last reports of replicas that are gone",
        "The oldest go first; that of a replica of a pipeline's job stays.",
        {DAY, 5 * MB}, 600},
    [WEIR_RETAIN_ACTIONS] = {"actions", "Actions of the server that are done or failed",
        "Those done longest ago go first.",
        {7 * DAY, 20 * MB}, 400},
    [WEIR_RETAIN_USAGE] = {"usage", "Who had how much of the cluster, by hour and job",
        "The oldest hours go first: they become days without the job.",
        {60 * DAY, 80 * MB}, 400},
    [WEIR_RETAIN_USAGE_DAYS] = {"usage-days", "The same by day, without the job",
        "The oldest days go first.",
        {3650 * DAY, 60 * MB}, 300},
    [WEIR_RETAIN_QUEUE_HISTORY] = {"queue-history", "What queues had and waited for, by 5 min",
        "The oldest go first.",
        {90 * DAY, 60 * MB}, 250},
    [WEIR_RETAIN_SENT_BLOBS] = {"sent-blobs", "Which project has sent which file of its jobs' code",
        "What was sent longest ago goes first; it is sent again with the next job that brings it along.",
        {90 * DAY, 60 * MB}, 300},
    [WEIR_RETAIN_CHECKPOINTS] = {"checkpoints", "Checkpoints of trainings that are over",
        "An hour after a training succeeded; else those that ended longest ago first; "
        "the last by its age alone.",
        {7 * DAY, 600 * MB}, 0},
    [WEIR_RETAIN_RENDEZVOUS] = {"rendezvous", "Where the workers of a job met",
        "When the job is over.",
        {HOUR, 10 * MB}, 0},
    [WEIR_RETAIN_PARTS] = {"parts", "Parts of artifacts that did not become whole",
        "Those whose last part came longest ago go first; within an hour of it they stay.",
        {7 * DAY, WEIR_RETAIN_ANY}, 0},
    [WEIR_RETAIN_RESULTS] = {"results", "Files of batch predictions that the server keeps",
        "Those of jobs that ended longest ago go first; of a job that runs all stay.",
        {90 * DAY, WEIR_RETAIN_ANY}, 0},
    [WEIR_RETAIN_REPLICAS] = {"replicas", "Folders of replicas: cache and outbox",
        "When the job is over and every decision was shipped; what was not is kept as long as decisions are.",
        {DAY, 250 * MB}, 0},
    [WEIR_RETAIN_SANDBOXES] = {"sandboxes", "Decisions of IONs that were tried, in files",
        "Those of jobs that ended longest ago go first; of a job that runs all stay.",
        {7 * DAY, WEIR_RETAIN_ANY}, 0},
    [WEIR_RETAIN_SERVICES] = {"services", "Folders of services and notebooks",
        "When the service was deleted; of one that is there it stays.",
        {HOUR, WEIR_RETAIN_ANY}, 0},
    [WEIR_RETAIN_LOGS] = {"logs", "What tasks wrote",
        "Those written longest ago go first; the log of a task that runs stays.",
        {30 * DAY, 250 * MB}, 0},
    [WEIR_RETAIN_PICTURES] = {"pictures", "Pictures of decisions, in packs of 4 MiB or an hour",
        "The pack that was written longest ago goes first, whole; one whose decisions have gone, too.",
        {7 * DAY, 630 * MB}, 0},
    [WEIR_RETAIN_BLOBS] = {"blobs", "Models, photos of dataset versions, manifests",
        "What no record names, once nobody has stored or asked for it that long.",
        {DAY, WEIR_RETAIN_ANY}, 0},
};

// clang-format on

int weir_retain_kind_from_text(const char *name)
{
    for (int i = 0; i < WEIR_RETAIN_N; i++) {
        if (strcmp(weir_retain_rules[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- limits as text -------------------------------------------------------------------------- */

struct unit {
    const char *text;
    int64_t factor;
};

/* Largest first: the first that fits without a rest is the one to print. */
static const struct unit age_units[] = {{"d", DAY}, {"h", HOUR}, {"m", 60 * SECOND}, {"s", SECOND}};
static const struct unit size_units[] = {
    {"TB", 1000 * GB},
    {"GB", GB},
    {"MB", MB},
    {"kB", 1000},
    {"TiB", (int64_t)1 << 40},
    {"GiB", (int64_t)1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"B", 1},
};

static bool in_units(const char *number_end, double number, const struct unit *units, size_t n,
                     int64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        double value = number * (double)units[i].factor;
        if (strcmp(number_end, units[i].text) == 0 && value < 9e18) {
            *out = (int64_t)llround(value);
            return true;
        }
    }
    return false;
}

static bool read_word(const char *word, enum weir_retain_kind kind, struct weir_retain_limit *limit)
{
    char *end;
    if (strcmp(word, "default") == 0) {
        *limit = weir_retain_rules[kind].limit;
        return true;
    }
    if (strcmp(word, "forever") == 0) {
        limit->keep_ms = WEIR_RETAIN_ANY;
        return true;
    }
    if (strcmp(word, "unbounded") == 0) {
        limit->max_bytes = WEIR_RETAIN_ANY;
        return true;
    }
    double number = strtod(word, &end);
    if (end == word || !(number >= 0) || strchr("0123456789.", *word) == NULL) {
        return false;
    }
    return in_units(end, number, age_units, WEIR_ARRAY_LEN(age_units), &limit->keep_ms) ||
           in_units(end, number, size_units, WEIR_ARRAY_LEN(size_units), &limit->max_bytes);
}

weir_status weir_retain_limit_parse(const char *text, enum weir_retain_kind kind,
                                    struct weir_retain_limit *limit, struct weir_error *err)
{
    char words[WORDS_MAX];
    struct weir_retain_limit read = *limit;
    int len = snprintf(words, sizeof words, "%s", text);
    bool is_good = len > 0 && (size_t)len < sizeof words;
    for (char *word = words; is_good && word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        is_good = read_word(word, kind, &read);
        word = comma;
    }
    if (!is_good) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "\"%.80s\": expected an age (30d, 12h, forever), a size (10GB, 500MB, "
            "unbounded), both with a comma between, or default",
            text);
    }
    *limit = read;
    return WEIR_OK;
}

static int print_in_units(char *out, size_t size, int64_t value, const struct unit *units, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && (value == 0 || value % units[i].factor != 0)) {
        i++;
    }
    return snprintf(out, size, "%" PRId64 "%s", value / units[i].factor, units[i].text);
}

const char *weir_retain_limit_text(const struct weir_retain_limit *limit,
                                   char out[WEIR_RETAIN_LIMIT_TEXT_BYTES])
{
    const size_t size = WEIR_RETAIN_LIMIT_TEXT_BYTES;
    int len = limit->keep_ms < 0
                  ? snprintf(out, size, "forever")
                  : print_in_units(out, size, limit->keep_ms, age_units, WEIR_ARRAY_LEN(age_units));
    len += snprintf(out + len, size - (size_t)len, ",");
    if (limit->max_bytes < 0) {
        (void)snprintf(out + len, size - (size_t)len, "unbounded");
    } else {
        (void)print_in_units(out + len, size - (size_t)len, limit->max_bytes, size_units,
                             WEIR_ARRAY_LEN(size_units));
    }
    return out;
}

/* ---- the setting ----------------------------------------------------------------------------- */

weir_status weir_retain_policy_load(struct weir_txn *txn, struct weir_arena *arena,
                                    struct weir_retain_policy *out, struct weir_error *err)
{
    struct weir_retain_policy policy;
    struct weir_error missing;
    char *text;
    json_t *changes;
    const char *name;
    const json_t *value;
    for (int i = 0; i < WEIR_RETAIN_N; i++) {
        policy.limits[i] = weir_retain_rules[i].limit;
    }
    weir_status status = weir_setting_get(txn, SETTING, arena, &text, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        *out = policy;
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), "the setting \"" SETTING "\"", &changes, err));
    json_object_foreach(changes, name, value)
    {
        int kind = weir_retain_kind_from_text(name);
        if (kind >= 0 && json_is_string(value) && status == WEIR_OK) { /* others: of a newer Weir */
            status =
                weir_retain_limit_parse(json_string_value(value), kind, &policy.limits[kind], err);
        }
    }
    json_decref(changes);
    WEIR_TRY(status);
    *out = policy;
    return WEIR_OK;
}

weir_status weir_retain_policy_save(struct weir_txn *txn, const struct weir_retain_policy *policy,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_error *err)
{
    json_t *changes = json_object();
    for (int i = 0; i < WEIR_RETAIN_N; i++) {
        const struct weir_retain_limit *limit = &policy->limits[i];
        const struct weir_retain_limit *fallback = &weir_retain_rules[i].limit;
        char text[WEIR_RETAIN_LIMIT_TEXT_BYTES];
        if (limit->keep_ms != fallback->keep_ms || limit->max_bytes != fallback->max_bytes) {
            json_object_set_new(changes, weir_retain_rules[i].name,
                                json_string(weir_retain_limit_text(limit, text)));
        }
    }
    char *text = weir_json_text(changes, arena);
    json_decref(changes);
    return weir_setting_put(txn, SETTING, text, now_ms, err);
}
