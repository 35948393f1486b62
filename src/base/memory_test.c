#include "base/arena.h"
#include "base/buf.h"
#include "base/rng.h"
#include "base/rss.h"
#include "base/test_main.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static bool is_filled(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

START_TEST(arena_memory_is_zeroed_aligned_and_never_overlaps)
{
    const uint64_t seed = 20260131;
    printf("seed %llu\n", (unsigned long long)seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);

    enum { N = 400 };

    unsigned char *blocks[N];
    size_t sizes[N];
    for (int i = 0; i < N; i++) {
        sizes[i] = 1 + (size_t)weir_rng_below(&rng, i % 10 == 0 ? 60000 : 200);
        blocks[i] = weir_arena_alloc(&arena, sizes[i]);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
        ck_assert(is_filled(blocks[i], sizes[i], 0));
        memset(blocks[i], i & 0xff, sizes[i]);
    }
    for (int i = 0; i < N; i++) {
        ck_assert(is_filled(blocks[i], sizes[i], (unsigned char)i));
    }
    ck_assert_str_eq(weir_arena_printf(&arena, "%d-%s", 7, "abc"), "7-abc");
    ck_assert_ptr_null(weir_arena_strdup(&arena, NULL));
    weir_arena_fini(&arena);
    ck_assert_uint_eq(arena.used_bytes, 0);
}

END_TEST

START_TEST(an_arena_is_not_much_larger_than_what_it_holds)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    for (size_t n = 16; n <= 1 << 20; n += 16) {
        (void)weir_arena_alloc(&arena, 16);
        ck_assert_uint_ge(arena.used_bytes, n);
        ck_assert_uint_le(arena.used_bytes, WEIR_MAX((size_t)1024, n + WEIR_MIN(n, (size_t)16384)));
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(an_arena_over_its_maximum_says_so_and_goes_on)
{
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 1 << 20);
    char *first = weir_arena_strdup(&arena, "kept");
    ck_assert_int_eq(weir_arena_check(&arena, "job", &err), WEIR_OK);
    memset(weir_arena_alloc(&arena, 3 << 20), 7, 3 << 20);
    ck_assert_int_eq(weir_arena_check(&arena, "job", &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "job"));
    ck_assert_ptr_nonnull(strstr(err.message, "1 MiB"));
    ck_assert_str_eq(first, "kept");
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_arena_check(&arena, "job", &err), WEIR_OK);
}

END_TEST

START_TEST(buffer_equals_a_plain_string_until_its_limit)
{
    char expected[301] = "";
    struct weir_buf buf;
    weir_buf_init(&buf, 300);
    for (int i = 0; i < 30; i++) {
        (void)snprintf(expected + (size_t)i * 10, 11, "%010u", (unsigned)i);
        ck_assert_int_eq(weir_buf_printf(&buf, "%010u", (unsigned)i), WEIR_OK);
        ck_assert_str_eq(buf.data, expected);
    }
    ck_assert_int_eq(weir_buf_puts(&buf, "x"), WEIR_ERR_LIMIT);
    ck_assert_str_eq(buf.data, expected);                      /* unchanged */
    ck_assert_int_eq(weir_buf_puts(&buf, ""), WEIR_ERR_LIMIT); /* the failure stays */
    weir_buf_reset(&buf);
    ck_assert_int_eq(weir_buf_puts(&buf, "abcdef"), WEIR_OK);
    weir_buf_consume(&buf, 4);
    ck_assert_str_eq(buf.data, "ef");
    weir_buf_consume(&buf, 99);
    ck_assert_uint_eq(buf.len, 0);
    size_t len = 7;
    char *empty = weir_buf_detach(&buf, &len);
    ck_assert_str_eq(empty, "");
    ck_assert_uint_eq(len, 0);
    free(empty);
    weir_buf_fini(&buf);
}

END_TEST

START_TEST(the_peak_is_what_was_touched_at_once_and_stays)
{
    size_t size = (size_t)weir_peak_rss_bytes() + (16 << 20); /* More than there ever was. */
    ck_assert_uint_gt(size, 16 << 20);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_uint_lt((size_t)weir_peak_rss_bytes(), size);
    memset(memory, 1, size);
    ck_assert_int_eq(munmap(memory, size), 0);
    size_t peak = (size_t)weir_peak_rss_bytes();
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    ck_assert_uint_ge(peak, size - (1 << 20)); /* The kernel adds up some pages late. */
    ck_assert_uint_le(peak, (size_t)usage.ru_maxrss * 1024);
}

END_TEST

WEIR_TEST_MAIN("memory", arena_memory_is_zeroed_aligned_and_never_overlaps,
               an_arena_is_not_much_larger_than_what_it_holds,
               an_arena_over_its_maximum_says_so_and_goes_on,
               buffer_equals_a_plain_string_until_its_limit,
               the_peak_is_what_was_touched_at_once_and_stays)
