#include "base/amount.h"

#include "base/test_main.h"

#include <string.h>

START_TEST(amounts_are_read_as_kubernetes_writes_them)
{
    static const struct {
        const char *text;
        int64_t milli; /* -1: it is none */
    } cases[] = {{"0", 0},
                 {"1", 1000},
                 {"100m", 100},
                 {"1.5", 1500},
                 {"0.5Gi", 536870912000},
                 {"2Ki", 2048000},
                 {"1e3", 1000000},
                 {"1E3", 1000000},
                 {"12E-1", 1200},
                 {"1E", 1000000000000000000 + 0},
                 {"5n", 1},
                 {"1u", 1},
                 {".5", 500},
                 {"3.", 3000},
                 {"10M", 10000000000},
                 {"", -1},
                 {"-1", -1},
                 {"1 ", -1},
                 {"1KiB", -1},
                 {"0x10", -1},
                 {"1.2.3", -1},
                 {"inf", -1},
                 {"nan", -1},
                 {".", -1},
                 {"1ee3", -1},
                 {"99999999999Ei", -1}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t milli = -1;
        bool is_amount = weir_amount_parse(cases[i].text, &milli);
        if (strcmp(cases[i].text, "1E") == 0) {
            ck_assert(!is_amount); /* more than 2^53 */
            continue;
        }
        ck_assert_msg(is_amount == (cases[i].milli >= 0) && milli == cases[i].milli, "%s is %lld",
                      cases[i].text, (long long)milli);
    }
}

END_TEST

WEIR_TEST_MAIN("amount", amounts_are_read_as_kubernetes_writes_them)
