#include "api/core/feed.h"

#include "base/arena.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word)) {
        n++;
    }
    return n;
}

START_TEST(a_reader_gets_its_topics_once_and_in_order)
{
    struct feed *feed = feed_create();
    struct weir_buf out;
    weir_buf_init(&out, 1 << 20);
    feed_publish(feed, FEED_RUNS, "{\"before\":1}");
    uint64_t position = feed_position(feed);
    feed_publish(feed, FEED_RUNS, "{\"n\":1}");
    feed_publish(feed, FEED_JOBS, "{\"n\":2}");
    feed_publish(feed, FEED_RUNS, "{\"n\":3}");
    ck_assert_int_eq(feed_read(feed, &position, 1u << FEED_RUNS, 100, &out), WEIR_OK);
    ck_assert_str_eq(out.data, "event: runs\ndata: {\"n\":1}\n\nevent: runs\ndata: {\"n\":3}\n\n");
    weir_buf_reset(&out);
    ck_assert_int_eq(feed_read(feed, &position, ~0u, 100, &out), WEIR_OK);
    ck_assert_uint_eq(out.len, 0);
    weir_buf_fini(&out);
    feed_destroy(feed);
}

END_TEST

START_TEST(a_change_too_large_to_keep_is_a_resync_for_its_topic)
{
    struct feed *feed = feed_create();
    struct weir_buf out;
    weir_buf_init(&out, 1 << 20);
    uint64_t position = feed_position(feed), other = position;
    char *large = weir_xalloc(FEED_MAX_ENTRY_BYTES + 2);
    memset(large, 'x', FEED_MAX_ENTRY_BYTES + 1);
    feed_publish(feed, FEED_JOBS, large);
    free(large);
    ck_assert_int_eq(feed_read(feed, &position, 1u << FEED_JOBS, 100, &out), WEIR_OK);
    ck_assert_str_eq(out.data, "event: resync\ndata: {}\n\n");
    weir_buf_reset(&out);
    ck_assert_int_eq(feed_read(feed, &other, 1u << FEED_RUNS, 100, &out), WEIR_OK);
    ck_assert_uint_eq(out.len, 0);
    weir_buf_fini(&out);
    feed_destroy(feed);
}

END_TEST

START_TEST(a_reader_that_fell_behind_is_told_and_gets_the_newest)
{
    struct feed *feed = feed_create();
    struct weir_buf out;
    weir_buf_init(&out, 16 << 20);
    uint64_t position = feed_position(feed);
    for (int i = 0; i < FEED_MAX_ENTRIES + 10; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "{\"i\":%d}", i);
        feed_publish(feed, FEED_IONS, text);
    }
    ck_assert_int_eq(feed_read(feed, &position, ~0u, 50, &out), WEIR_OK);
    ck_assert_uint_eq(count(out.data, "event: resync"), 1);
    ck_assert_uint_eq(count(out.data, "event: ions"), 50);
    ck_assert_ptr_nonnull(strstr(out.data, "data: {\"i\":10}\n"));
    ck_assert_ptr_null(strstr(out.data, "data: {\"i\":9}\n"));
    weir_buf_reset(&out);
    ck_assert_int_eq(feed_read(feed, &position, ~0u, FEED_MAX_ENTRIES, &out), WEIR_OK);
    ck_assert_uint_eq(count(out.data, "event: ions"), FEED_MAX_ENTRIES - 50);
    ck_assert_uint_eq(count(out.data, "resync"), 0);
    weir_buf_fini(&out);
    feed_destroy(feed);
}

END_TEST

START_TEST(topics_survive_the_way_over_their_text)
{
    for (int i = 0; i < FEED_N_TOPICS; i++) {
        ck_assert_int_eq(feed_topic_from_text(feed_topic_text((enum feed_topic)i)), i);
    }
    ck_assert_int_eq(feed_topic_from_text("weather"), -1);
}

END_TEST

WEIR_TEST_MAIN("feed", a_reader_gets_its_topics_once_and_in_order,
               a_change_too_large_to_keep_is_a_resync_for_its_topic,
               a_reader_that_fell_behind_is_told_and_gets_the_newest,
               topics_survive_the_way_over_their_text)
