/* A card whose every text is hostile: what is read out of the Markdown again is the text, and nothing of
 * it is markup. */
#include "api/model/card.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const hostile[] = {
    "plain",
    "a | b",
    "[click](javascript:alert(1))",
    "\\[click\\](javascript:alert(1)) \\\\[x](y)",
    "<script>alert(1)</script>",
    "![x](http://evil.example/x.png)",
    "line one\n# Heading\n| a | b |",
    "back\\slash \\| pipe",
    "`code` *bold* _under_ ~~gone~~",
    "www.evil.example and http://evil.example",
    "a@b.example $x$ #1 &lt;",
    "\x01\x02 bell\x07",
    "http:/\\/x",
};

static struct weir_rng rng;

static const char *any(void)
{
    return hostile[weir_rng_below(&rng, WEIR_ARRAY_LEN(hostile))];
}

static char *markdown(const json_t *card)
{
    struct weir_buf text;
    weir_buf_init(&text, 1 << 20);
    card_markdown(card, &text);
    ck_assert_int_eq(text.status, WEIR_OK);
    return weir_buf_detach(&text, NULL);
}

/* What a reader of Markdown makes of a backslash and a sign. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\' && c[1] != '\0' && strchr("\\`*_[]<>|#~&@$:.", c[1]) != NULL) {
            c++;
        }
        *to++ = *c;
    }
    *to = '\0';
}

/* The text in one line, as a card says it. */
static char *in_line(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x20 ? ' ' : *c;
    }
    return copy;
}

static size_t n_unescaped(const char *line, char sign)
{
    size_t n = 0;
    for (const char *c = line; *c != '\0'; c++) {
        if (*c == '\\' && c[1] != '\0') {
            c++;
        } else {
            n += *c == sign;
        }
    }
    return n;
}

START_TEST(an_escaped_text_is_read_as_it_was)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(hostile); i++) {
        struct weir_buf out;
        weir_buf_init(&out, 1 << 16);
        card_escape(hostile[i], &out);
        ck_assert_uint_eq(n_unescaped(out.data, '|'), 0);
        ck_assert_uint_eq(n_unescaped(out.data, '['), 0);
        ck_assert_uint_eq(n_unescaped(out.data, '<'), 0);
        ck_assert_uint_eq(n_unescaped(out.data, '`'), 0);
        ck_assert_ptr_null(strstr(out.data, "http://"));
        ck_assert_ptr_null(strstr(out.data, "www."));
        ck_assert_ptr_null(strchr(out.data, '\n'));
        unescape(out.data);
        char *expected = in_line(hostile[i]);
        ck_assert_str_eq(out.data, expected);
        free(expected);
        weir_buf_fini(&out);
    }
}

END_TEST

static json_t *a_card(void)
{
    json_t *policy =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "time_ms", "2026-01-01T00:00:00Z", "policy", any(),
                  "verdict", "promote", "actor", any(), "rule", any(), "note", any());
    json_t *place =
        json_pack("{s:s,s:s,s:s,s:n,s:{s:i,s:n},s:[o]}", "ion", any(), "link", any(), "state",
                  "SERVING", "served_ms", "decisions", "n_made", 3, "why", "policies", policy);
    json_t *run =
        json_pack("{s:s,s:s,s:s,s:{s:s,s:s},s:{s:s}}", "name", any(), "id", any(), "trigger", any(),
                  "parameters", any(), any(), "epochs", any(), "code", "commit", any());
    json_t *dataset =
        json_pack("{s:s,s:i,s:b,s:i,s:i,s:s,s:s,s:s,s:[{s:s,s:i}]}", "dataset", any(), "version", 3,
                  "is_there", 1, "n_files", 9, "n_classes", 2, "created_by", any(), "created_ms",
                  any(), "digest", any(), "forgotten", "person", "anna", "n_files", 4);
    json_t *version = json_pack("{s:s,s:i,s:s,s:s,s:{s:f},s:{s:s},s:[s]}", "model", any(),
                                "version", 2, "description", any(), "created_by", any(), "metrics",
                                any(), 0.93, "tags", any(), any(), "aliases", any());
    return json_pack("{s:s,s:{s:s,s:s},s:o,s:s,s:{s:[o],s:[o],s:[o],s:[s]},s:{s:[{s:s,s:i}],s:i},"
                     "s:[s],s:[],s:[],s:[s]}",
                     "made_ms", "2026-01-01T00:00:00Z", "model", "project", any(), "description",
                     any(), "version", version, "architecture", any(), "lineage", "runs", run,
                     "datasets", dataset, "places", place, "deployments", any(), "data", "classes",
                     "name", any(), "n_files", 5, "n_others", 0, "baseline", any(), "evaluations",
                     "live", "limits", any());
}

static bool is_own_heading(const char *line)
{
    static const char *const own[] = {"## What it is",
                                      "## Who made it",
                                      "## Data",
                                      "## Training",
                                      "## Code",
                                      "## Measured",
                                      "## Where it serves and served",
                                      "## Live, of the last 7 days",
                                      "## Known limits: what is not known"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (strcmp(line, own[i]) == 0) {
            return true;
        }
    }
    return strncmp(line, "# ", 2) == 0 || strncmp(line, "### ", 4) == 0;
}

/* One line of the file; *n_bars: of the table that it stands in, 0 outside. */
static void check_line(const char *line, size_t *n_bars)
{
    size_t n = n_unescaped(line, '|');
    if (strncmp(line, "> ", 2) == 0) {
        static const char *const signs[] = {"[", "]", "<", "@", "//", "www."};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(signs); i++) {
            ck_assert_ptr_null(strstr(line, signs[i])); /* whatever stands in front */
        }
        return;
    }
    ck_assert_uint_eq(n_unescaped(line, '['), 0);
    ck_assert_uint_eq(n_unescaped(line, '<'), 0);
    ck_assert_uint_eq(n_unescaped(line, '>'), 0);
    ck_assert_uint_eq(n_unescaped(line, '`'), 0);
    ck_assert_uint_eq(n_unescaped(line, '*'), 0);
    ck_assert(line[0] != '#' || is_own_heading(line));
    if (line[0] == '|') {
        ck_assert_msg(*n_bars == 0 || *n_bars == n, "%s", line);
    }
    *n_bars = line[0] == '|' ? n : 0;
}

START_TEST(nothing_that_people_say_becomes_markup)
{
    uint64_t seed = (uint64_t)time(NULL);
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < 300; i++) {
        json_t *card = a_card();
        ck_assert_ptr_nonnull(card);
        char *text = markdown(card), *rest = text, *line;
        size_t n_bars = 0;
        while ((line = strsep(&rest, "\n")) != NULL) {
            check_line(line, &n_bars);
        }
        free(text);
        json_decref(card);
    }
}

END_TEST

START_TEST(what_is_missing_is_left_out_and_limits_are_said)
{
    json_t *card = json_pack("{s:{s:s,s:i},s:[s]}", "version", "model", "face", "version", 1,
                             "limits", "No validation was measured.");
    char *text = markdown(card);
    ck_assert_ptr_nonnull(strstr(text, "# face v1\n"));
    ck_assert_ptr_nonnull(strstr(text, "- No validation was measured.\n"));
    ck_assert_ptr_nonnull(strstr(text, "Nowhere.\n"));
    ck_assert_ptr_null(strstr(text, "Architecture"));
    ck_assert_ptr_null(strstr(text, "Live"));
    free(text);
    json_decref(card);
}

END_TEST

START_TEST(a_person_who_was_forgotten_is_counted_and_not_named)
{
    weir_rng_init(&rng, 1, 0);
    json_t *card = a_card();
    char *text = markdown(card);
    ck_assert_ptr_null(strstr(text, "anna"));
    ck_assert_ptr_nonnull(strstr(text, "1 people were forgotten: 4 of its files are gone"));
    free(text);
    json_decref(card);
}

END_TEST

WEIR_TEST_MAIN("card markdown", an_escaped_text_is_read_as_it_was,
               nothing_that_people_say_becomes_markup,
               what_is_missing_is_left_out_and_limits_are_said,
               a_person_who_was_forgotten_is_counted_and_not_named)
