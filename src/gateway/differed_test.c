/* What is kept of requests that two versions answered differently. */
#include "gateway/differed.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

struct seen {
    int n;
    int64_t first_ms, last_ms, live_version;
    char id[DIFFERED_ID_BYTES + 1];
    char answer[DIFFERED_ANSWER_BYTES + 1], live_answer[DIFFERED_ANSWER_BYTES + 1];
};

static void see(void *context, const struct weir_gateway_differed *one)
{
    struct seen *seen = context;
    ck_assert_int_eq(one->version, 2);
    if (seen->n++ == 0) {
        seen->first_ms = one->time_ms;
        (void)snprintf(seen->id, sizeof seen->id, "%s", one->id != NULL ? one->id : "none");
        (void)snprintf(seen->answer, sizeof seen->answer, "%s", one->answer);
        (void)snprintf(seen->live_answer, sizeof seen->live_answer, "%s", one->live_answer);
        seen->live_version = one->live_version;
    }
    seen->last_ms = one->time_ms;
}

static struct agree_answer answer_of(const char *body, size_t len, int64_t header_bytes)
{
    return (struct agree_answer){200, body, len, header_bytes};
}

static struct seen after(const struct agree_answer *live, const struct agree_answer *answer, int n)
{
    struct differed differed;
    struct seen seen = {0};
    differed_init(&differed);
    for (int i = 1; i <= n; i++) {
        differed_add(&differed, i, 1, live, answer);
    }
    differed_each(&differed, 2, see, &seen);
    differed_fini(&differed);
    return seen;
}

START_TEST(the_newest_stay_and_come_first)
{
    static const char live[] = "{\"id\":\"r-7\",\"y\":1}", answer[] = "{\"id\":\"r-7\",\"y\":2}";
    struct agree_answer a = answer_of(live, strlen(live), -1),
                        b = answer_of(answer, strlen(answer), -1);
    struct seen seen = after(&a, &b, DIFFERED_MAX + 7);
    ck_assert_int_eq(seen.n, DIFFERED_MAX);
    ck_assert_int_eq(seen.first_ms, DIFFERED_MAX + 7);
    ck_assert_int_eq(seen.last_ms, 8);
    ck_assert_int_eq(seen.live_version, 1);
    ck_assert_str_eq(seen.id, "r-7");
    ck_assert_str_eq(seen.live_answer, live);
    ck_assert_str_eq(seen.answer, answer);
    ck_assert_int_eq(after(&a, &b, 0).n, 0);
}

END_TEST

START_TEST(long_answers_are_cut_at_a_character_and_bytes_are_named)
{
    char text[2 * DIFFERED_ANSWER_BYTES];
    memset(text, 'a', sizeof text);
    memcpy(text + DIFFERED_ANSWER_BYTES - 1, "\xC3\xA9", 2); /* the cut would be in it */
    struct agree_answer a = answer_of(text, sizeof text, -1), b = answer_of("\xFF\x00\x01", 3, -1);
    struct seen seen = after(&a, &b, 1);
    ck_assert_uint_eq(strlen(seen.live_answer), DIFFERED_ANSWER_BYTES - 1);
    ck_assert_str_eq(seen.answer, "(3 bytes that are no text)");
    ck_assert_str_eq(seen.id, "none");
}

END_TEST

START_TEST(of_binary_tensors_the_json_before_them_is_kept)
{
    static const char body[] = "{\"id\":\"q\"}\x00\x01\x02";
    struct agree_answer a = answer_of(body, sizeof body - 1, 10);
    struct seen seen = after(&a, &a, 1);
    ck_assert_str_eq(seen.answer, "{\"id\":\"q\"}");
    ck_assert_str_eq(seen.id, "q");
}

END_TEST

WEIR_TEST_MAIN("differed", the_newest_stay_and_come_first,
               long_answers_are_cut_at_a_character_and_bytes_are_named,
               of_binary_tensors_the_json_before_them_is_kept)
