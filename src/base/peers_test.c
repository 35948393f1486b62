#include "base/peers.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        out.ss_family = AF_INET;
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        out.ss_family = AF_INET6;
    }
    return out;
}

static bool is_one(const char *a, const char *b)
{
    unsigned char keys[2][WEIR_PEER_KEY_BYTES];
    const char *const texts[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_storage address = address_of(texts[i]);
        weir_peer_key((const struct sockaddr *)&address, keys[i]);
    }
    return memcmp(keys[0], keys[1], sizeof keys[0]) == 0;
}

START_TEST(a_host_is_one_address)
{
    ck_assert(is_one("10.0.0.1", "::ffff:10.0.0.1"));
    ck_assert(is_one("2001:db8::1", "2001:db8::ffff:2"));
    ck_assert(!is_one("10.0.0.1", "10.0.0.2"));
    ck_assert(!is_one("2001:db8::1", "2001:db8:0:1::1"));
}

END_TEST

enum { N_PEERS = 5, MOST = 1000 };

/* Random takes and gives, against sums in an array: what is held is never over the bound of all nor over
 * half of it for one, and room that is there is given. */
START_TEST(no_address_holds_more_than_half)
{
    struct weir_rng rng;
    struct weir_peers peers = {0};
    struct weir_peer *entries[N_PEERS];
    uint64_t held[N_PEERS] = {0}, all = 0;
    (void)test_seed(&rng);
    for (int i = 0; i < N_PEERS; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "10.0.0.%d", i);
        struct sockaddr_storage address = address_of(text);
        entries[i] =
            weir_peers_enter(&peers, (const struct sockaddr *)&address, sizeof *entries[i]);
        ck_assert_ptr_eq(weir_peers_find(&peers, (const struct sockaddr *)&address), entries[i]);
    }
    for (int step = 0; step < 20000; step++) {
        size_t i = weir_rng_below(&rng, N_PEERS);
        uint64_t n = weir_rng_below(&rng, MOST * 2 / 3);
        if (weir_rng_below(&rng, 2) == 0) {
            bool fits = all + n <= MOST && held[i] + n <= MOST / 2;
            ck_assert(weir_held_take(&peers.held, &entries[i]->held, n, MOST) == fits);
            held[i] += fits ? n : 0;
            all += fits ? n : 0;
        } else {
            n = WEIR_MIN(n, held[i]);
            weir_held_give(&peers.held, &entries[i]->held, n);
            held[i] -= n;
            all -= n;
        }
    }
    ck_assert(!weir_held_take(&peers.held, NULL, UINT64_MAX, MOST));
    weir_peers_leave(&peers, entries[0]);
    weir_peers_fini(&peers);
}

END_TEST

/* A sender of a steady rate, looked at every second: it is let go on just if it is no slower than asked. */
START_TEST(who_is_slower_than_asked_is_found_within_two_windows)
{
    for (uint64_t rate = 0; rate < 200; rate++) {
        struct weir_pace pace = {.since_ms = 5000};
        bool holds = true;
        for (int64_t now_ms = 6000; now_ms <= 5000 + 62000 && holds; now_ms += 1000) {
            pace.n_bytes += rate;
            holds = weir_pace_holds(&pace, now_ms, 30000, 100);
        }
        ck_assert_msg(holds == (rate >= 100), "%d bytes/s", (int)rate);
    }
}

END_TEST

WEIR_TEST_MAIN("peers", a_host_is_one_address, no_address_holds_more_than_half,
               who_is_slower_than_asked_is_found_within_two_windows)
