/* Lists of hosts against the hosts they were made of. */
#include "base/hosts.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 65536

struct text {
    char bytes[TEXT_BYTES];
    size_t len;
};

WEIR_PRINTF(2, 3) static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text->len += (size_t)vsnprintf(text->bytes + text->len, TEXT_BYTES - text->len, format, args);
    va_end(args);
    ck_assert_uint_lt(text->len, TEXT_BYTES);
}

static weir_status see(void *context, const char *host, struct weir_error *err)
{
    struct text *seen = context;
    if (seen->len + strlen(host) + 2 > TEXT_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "too many hosts");
    }
    seen->len += (size_t)snprintf(seen->bytes + seen->len, TEXT_BYTES - seen->len, "%s\n", host);
    return WEIR_OK;
}

/* "[3-7]" or "[4]" or "[3-7,9]" in the list, and each number as a host. All have as many digits as the first, or more. */
static void add_ranges(struct weir_rng *rng, const char *prefix, struct text *list,
                       struct text *hosts)
{
    int n = (int)weir_rng_below(rng, 3) + 1;
    for (int i = 0; i < n; i++) {
        char first_text[16];
        int first = (int)weir_rng_below(rng, 1200), last = first + (int)weir_rng_below(rng, 12);
        int width =
            snprintf(first_text, sizeof first_text, "%0*d", (int)weir_rng_below(rng, 4) + 1, first);
        add(list, "%s%s", i == 0 ? "[" : ",", first_text);
        if (last > first) {
            add(list, "-%0*d", width, last);
        }
        for (int number = first; number <= last; number++) {
            add(hosts, "%s%0*d\n", prefix, width, number);
        }
    }
    add(list, "]");
}

START_TEST(a_list_is_the_hosts_it_was_made_of)
{
    static const char *const prefixes[] = {"n", "gpu-", "rack.a_"};
    static struct text list, hosts, seen;
    struct weir_rng rng;
    struct weir_error err;
    uint64_t seed = test_seed(&rng);
    for (int round = 0; round < WEIR_TEST_TIMES(500, 100); round++) {
        list.len = hosts.len = seen.len = 0;
        int n = (int)weir_rng_below(&rng, 5) + 1;
        for (int i = 0; i < n; i++) {
            const char *prefix = prefixes[weir_rng_below(&rng, WEIR_ARRAY_LEN(prefixes))];
            add(&list, "%s%s", i > 0 ? "," : "", prefix);
            if (weir_rng_below(&rng, 2) == 0) {
                int number = (int)weir_rng_below(&rng, 100000);
                add(&list, "%d", number);
                add(&hosts, "%s%d\n", prefix, number);
            } else {
                add_ranges(&rng, prefix, &list, &hosts);
            }
        }
        weir_status status = weir_hosts_read(list.bytes, see, &seen, &err);
        ck_assert_msg(status == WEIR_OK, "seed %llu: %s: %s", (unsigned long long)seed, list.bytes,
                      err.message);
        ck_assert_msg(strcmp(seen.bytes, hosts.bytes) == 0, "seed %llu: %s:\n%s",
                      (unsigned long long)seed, list.bytes, seen.bytes);
    }
}

END_TEST

START_TEST(a_range_without_end_ends_with_its_reader)
{
    static struct text seen;
    struct weir_error err;
    ck_assert_int_eq(weir_hosts_read("n[0-999999999]", see, &seen, &err), WEIR_ERR_LIMIT);
    ck_assert_str_eq(err.message, "too many hosts");
    static const char *const bad[] = {"",        ",",     "n[",  "n[]", "n[3-1]",
                                      "n[1-2]x", "n[1]2", "a b", "-o",  "n[9999999999]"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        seen.len = 0;
        ck_assert_msg(weir_hosts_read(bad[i], see, &seen, &err) == WEIR_ERR_INVALID, "%s", bad[i]);
    }
}

END_TEST

WEIR_TEST_MAIN("hosts", a_list_is_the_hosts_it_was_made_of,
               a_range_without_end_ends_with_its_reader)
