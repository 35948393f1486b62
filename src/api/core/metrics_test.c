/* GET /metrics: the text follows Prometheus' grammar, read by a parser of its own here, and its
 * figures are those of the lists. */
#include "api/caller_fixture.h"

#include "api/core/metrics.h"
#include "base/test_main.h"

#include <ctype.h>

/** A sample as the parser found it. */
struct sample {
    char name[128], labels[512], type[16];
    double value;
};

#define SAMPLES_MAX 4096

static struct sample samples[SAMPLES_MAX];
static size_t n_samples;

/** [a-zA-Z_:][a-zA-Z0-9_:]* */
static size_t take_name(const char *at, char *out, size_t size)
{
    size_t n = 0;
    ck_assert(isalpha((unsigned char)at[0]) || at[0] == '_');
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == ':') {
        ck_assert_uint_lt(n + 1, size);
        out[n] = at[n];
        n++;
    }
    out[n] = '\0';
    return n;
}

/** {name="value",…}; values are kept as they are escaped. @return Behind the brace. */
static const char *take_labels(const char *at, char *out, size_t size)
{
    const char *begin = at++;
    while (*at != '}') {
        char name[64];
        at += take_name(at, name, sizeof name);
        ck_assert(at[0] == '=' && at[1] == '"');
        for (at += 2; *at != '"'; at++) {
            ck_assert(*at != '\n' && *at != '\0');
            if (*at == '\\') {
                at++;
                ck_assert(*at == '\\' || *at == '"' || *at == 'n');
            }
        }
        at++;
        ck_assert(*at == ',' || *at == '}');
        at += *at == ',';
    }
    at++;
    ck_assert_uint_lt((size_t)(at - begin), size);
    (void)snprintf(out, size, "%.*s", (int)(at - begin), begin);
    return at;
}

/** One family: HELP, TYPE, samples of that name, each with labels of its own. */
static const char *take_family(const char *at)
{
    char name[128], type[16], line[160];
    size_t first = n_samples;
    ck_assert(strncmp(at, "# HELP ", 7) == 0);
    size_t len = take_name(at + 7, name, sizeof name);
    ck_assert(at[7 + len] == ' ' && at[8 + len] != '\n'); /* there is a help text */
    at = strchr(at, '\n') + 1;
    (void)snprintf(line, sizeof line, "# TYPE %s ", name);
    ck_assert_msg(strncmp(at, line, strlen(line)) == 0, "%.100s", at);
    at += strlen(line);
    at += take_name(at, type, sizeof type);
    ck_assert(strcmp(type, "gauge") == 0 || strcmp(type, "counter") == 0);
    ck_assert_int_eq(*at++, '\n');
    const char *total = strlen(name) > 6 ? name + strlen(name) - 6 : "";
    ck_assert_int_eq(strcmp(type, "counter") == 0, strcmp(total, "_total") == 0);
    while (*at != '#' && *at != '\0') {
        ck_assert_uint_lt(n_samples, SAMPLES_MAX);
        struct sample *sample = &samples[n_samples++];
        char *end;
        memset(sample, 0, sizeof *sample);
        at += take_name(at, sample->name, sizeof sample->name);
        ck_assert_str_eq(sample->name, name);
        (void)snprintf(sample->type, sizeof sample->type, "%s", type);
        at = *at == '{' ? take_labels(at, sample->labels, sizeof sample->labels) : at;
        ck_assert_int_eq(*at, ' ');
        sample->value = strtod(at + 1, &end);
        ck_assert(end > at + 1 && *end == '\n');
        at = end + 1;
        for (size_t i = first; i + 1 < n_samples; i++) {
            ck_assert_msg(strcmp(samples[i].labels, sample->labels) != 0, "%s%s twice", name,
                          sample->labels);
        }
    }
    return at;
}

static void scrape(void)
{
    EXPECT(200, "GET /metrics");
    n_samples = 0;
    char *text = strndup(callers.x->response.body, callers.x->response.body_len);
    size_t n_families = 0;
    for (const char *at = text; *at != '\0'; n_families++) {
        at = take_family(at);
    }
    ck_assert_uint_eq(n_families, api_n_metrics);
    free(text);
}

static double value_of(const char *name, const char *labels)
{
    for (size_t i = 0; i < n_samples; i++) {
        if (strcmp(samples[i].name, name) == 0 && strcmp(samples[i].labels, labels) == 0) {
            return samples[i].value;
        }
    }
    ck_abort_msg("no sample %s%s", name, labels);
    return 0;
}

START_TEST(figures_are_those_of_the_lists)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"labs\"}");
    for (int i = 0; i < 3; i++) {
        EXPECT(200,
               "POST " API "/jobs\n\n{\"name\":\"a%d\",\"kind\":\"command\",\"project\":\"labs\","
               "\"spec\":{\"argv\":[\"/bin/true\"]}}",
               i);
    }
    callers.now_ms = weir_time_ms() + 90000;
    EXPECT(204, "PUT " API "/nodes/n1\n\n{\"cpu_slots\":12,\"memory_bytes\":1073741824,"
                "\"disk_bytes\":1000,\"disk_free_bytes\":250}");
    scrape();
    ck_assert_double_eq(
        value_of("weir_jobs", "{project=\"labs\",kind=\"command\",state=\"PENDING\"}"), 3);
    double waits = value_of("weir_jobs_waiting_seconds", "{project=\"labs\"}");
    ck_assert(waits > 80 && waits < 200);
    ck_assert_double_eq(value_of("weir_node_state", "{node=\"n1\",state=\"ready\"}"), 1);
    ck_assert_double_eq(value_of("weir_node_state", "{node=\"n1\",state=\"lost\"}"), 0);
    ck_assert_double_eq(value_of("weir_node_cpu_slots", "{node=\"n1\"}"), 12);
    ck_assert_double_eq(value_of("weir_node_memory_bytes", "{node=\"n1\"}"), 1073741824);
    ck_assert_double_eq(value_of("weir_node_disk_free_bytes", "{node=\"n1\"}"), 250);
    ck_assert_double_eq(value_of("weir_node_draining", "{node=\"n1\"}"), 0);
    ck_assert_double_eq(value_of("weir_health", "{status=\"ok\"}") +
                            value_of("weir_health", "{status=\"waiting\"}") +
                            value_of("weir_health", "{status=\"degraded\"}") +
                            value_of("weir_health", "{status=\"down\"}"),
                        1);
    ck_assert_double_gt(value_of("weir_store_database_bytes", ""), 4096);
    ck_assert_double_eq(value_of("weir_metrics_left_out", ""), 0);
    callers.now_ms += 3600000;
    scrape();
    ck_assert_double_eq(value_of("weir_node_state", "{node=\"n1\",state=\"lost\"}"), 1);
    callers.now_ms = 0;
}

END_TEST

START_TEST(whoever_is_nobody_gets_nothing)
{
    EXPECT_STATUS(401, ask_as("Bearer wrong", "GET /metrics"));
    EXPECT_STATUS(405, ask("POST /metrics\n\n{}"));
}

END_TEST

START_TEST(labels_are_escaped_and_families_have_a_bound)
{
    struct exposition x;
    exposition_begin(&x, 1 << 20);
    exposition_family(&x, "a", "gauge", "A");
    exposition_sample(&x, "one two", (const char *[]){"q\"b\\n\nl", NULL}, 0.5);
    exposition_sample(&x, "", NULL, 1e15);
    ck_assert_str_eq(x.buf.data, "# HELP a A\n# TYPE a gauge\n"
                                 "a{one=\"q\\\"b\\\\n\\nl\",two=\"\"} 0.5\na 1e+15\n");
    exposition_family(&x, "b", "gauge", "B");
    for (size_t i = 0; i < EXPOSITION_SAMPLES_MAX + 3; i++) {
        exposition_sample(&x, "", NULL, 1);
    }
    ck_assert_uint_eq(x.n_left_out, 3);
    weir_buf_fini(&x.buf);
}

END_TEST

/** promtool's rules for names, as its documentation states them. */
START_TEST(names_follow_the_conventions)
{
    for (size_t i = 0; i < api_n_metrics; i++) {
        const struct api_metric *metric = &api_metrics[i];
        ck_assert_msg(strncmp(metric->name, "weir_", 5) == 0, "%s", metric->name);
        ck_assert_msg(metric->help[0] != '\0' && strchr(metric->help, '\n') == NULL, "%s",
                      metric->name);
        ck_assert_msg(metric->collect != NULL, "%s", metric->name);
        for (size_t k = 0; k < i; k++) {
            ck_assert_str_ne(metric->name, api_metrics[k].name);
        }
    }
}

END_TEST
WEIR_TEST_MAIN_WITH("metrics", callers_open, callers_close, figures_are_those_of_the_lists,
                    whoever_is_nobody_gets_nothing, labels_are_escaped_and_families_have_a_bound,
                    names_follow_the_conventions)
