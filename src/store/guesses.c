#include "store/guesses.h"

#include "base/arena.h"
#include "base/macros.h"
#include "base/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define WAYS       8
#define N_TRIES    ((size_t)8192) /* pairs, addresses and users */
#define N_KNOWN    ((size_t)2048)
#define TEXT_BYTES 128 /* of a name that is told apart: longer ones are no users' */

struct entry {
    uint64_t key;    /* 0: free */
    int64_t last_ms; /* of the last try, or use */
    int64_t n;       /* wrong tries */
};

struct weir_guesses {
    unsigned char secret[crypto_shorthash_KEYBYTES];
    struct entry tries[N_TRIES], known[N_KNOWN];
};

struct weir_guesses *weir_guesses_create(void)
{
    struct weir_guesses *guesses = weir_xalloc(sizeof *guesses);
    memset(guesses, 0, sizeof *guesses);
    crypto_shorthash_keygen(guesses->secret);
    return guesses;
}

void weir_guesses_destroy(struct weir_guesses *guesses)
{
    free(guesses);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void address_key(const char *text, unsigned char out[WEIR_PEER_KEY_BYTES])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};

    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
        address.any.sa_family = AF_INET;
    } else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1) {
        address.any.sa_family = AF_INET6;
    }
    weir_peer_key(&address.any, out);
}

enum which { PAIR = 'p', ADDRESS = 'a', USER = 'u' };

static uint64_t key_of(const struct weir_guesses *guesses, enum which which,
                       const struct weir_guess *guess)
{
    unsigned char text[1 + WEIR_PEER_KEY_BYTES + TEXT_BYTES] = {(unsigned char)which};
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t key;
    if (which != USER) {
        address_key(guess->address, text + 1);
    }
    if (which != ADDRESS) {
        memcpy(text + 1 + WEIR_PEER_KEY_BYTES, guess->user, strnlen(guess->user, TEXT_BYTES));
    }
    (void)crypto_shorthash(hash, text, sizeof text, guesses->secret);
    memcpy(&key, hash, sizeof key);
    return key != 0 ? key : 1;
}

/* The entry of the key; without one, the one to be replaced, or NULL if it is only looked for. */
static struct entry *find(struct entry *table, size_t n, uint64_t key, bool makes)
{
    struct entry *bucket = table + key % (n / WAYS) * WAYS, *oldest = bucket;
    for (size_t i = 0; i < WAYS; i++) {
        if (bucket[i].key == key) {
            return &bucket[i];
        }
        bool is_older =
            bucket[i].key == 0 || (oldest->key != 0 && bucket[i].last_ms < oldest->last_ms);
        oldest = is_older ? &bucket[i] : oldest;
    }
    if (!makes) {
        return NULL;
    }
    *oldest = (struct entry){.key = key};
    return oldest;
}

static struct entry *tries_of(struct weir_guesses *guesses, enum which which,
                              const struct weir_guess *guess, int64_t now_ms)
{
    struct entry *entry = find(guesses->tries, N_TRIES, key_of(guesses, which, guess), true);
    /* A clock that was set back makes nobody wait for longer. */
    entry->last_ms = WEIR_MIN(entry->last_ms, now_ms);
    if (now_ms - entry->last_ms >= WEIR_GUESSES_FORGET_MS) {
        entry->n = 0;
    }
    return entry;
}

/* ---- tries ------------------------------------------------------------------------------------ */

static int64_t wait_of(const struct entry *entry, int64_t n_free, int64_t max_ms, int64_t now_ms)
{
    if (entry->n < n_free) {
        return 0;
    }
    int64_t n_doubled = WEIR_MIN(entry->n - n_free, (int64_t)30);
    int64_t wait_ms = WEIR_MIN((int64_t)1000 << n_doubled, max_ms);
    return WEIR_MAX((int64_t)0, entry->last_ms + wait_ms - now_ms);
}

static bool is_known(struct weir_guesses *guesses, enum which which, const struct weir_guess *guess)
{
    return find(guesses->known, N_KNOWN, key_of(guesses, which, guess), false) != NULL;
}

static void count(struct entry *entry, int64_t now_ms)
{
    entry->n++;
    entry->last_ms = now_ms;
}

int64_t weir_guesses_try(struct weir_guesses *guesses, struct weir_guess *guess, int64_t now_ms)
{
    bool is_known_pair = is_known(guesses, PAIR, guess);
    bool is_known_address = is_known(guesses, ADDRESS, guess);
    /* one after the other: what makes room for one of them is not another of them */
    struct entry *pair = tries_of(guesses, PAIR, guess, now_ms);
    int64_t wait_ms =
        is_known_pair ? wait_of(pair, WEIR_GUESSES_KNOWN_FREE, WEIR_GUESSES_KNOWN_MAX_MS, now_ms)
                      : wait_of(pair, WEIR_GUESSES_PAIR_FREE, WEIR_GUESSES_PAIR_MAX_MS, now_ms);
    struct entry *address = tries_of(guesses, ADDRESS, guess, now_ms);
    if (!is_known_pair) {
        wait_ms = WEIR_MAX(wait_ms, wait_of(address, WEIR_GUESSES_ADDRESS_FREE,
                                            WEIR_GUESSES_ADDRESS_MAX_MS, now_ms));
    }
    if (wait_ms > 0) {
        return wait_ms;
    }
    count(address, now_ms);
    count(tries_of(guesses, PAIR, guess, now_ms), now_ms);
    struct entry *user = tries_of(guesses, USER, guess, now_ms);
    count(user, now_ms);
    guess->n_wrong = user->n;
    guess->is_known = is_known_pair || is_known_address;
    return 0;
}

static void know(struct weir_guesses *guesses, enum which which, const struct weir_guess *guess,
                 int64_t now_ms)
{
    find(guesses->known, N_KNOWN, key_of(guesses, which, guess), true)->last_ms = now_ms;
}

void weir_guesses_undo(struct weir_guesses *guesses, const struct weir_guess *guess)
{
    static const enum which all[] = {PAIR, ADDRESS, USER};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        struct entry *entry = find(guesses->tries, N_TRIES, key_of(guesses, all[i], guess), false);
        if (entry != NULL && entry->n > 0) {
            entry->n--;
        }
    }
}

void weir_guesses_right(struct weir_guesses *guesses, const struct weir_guess *guess,
                        int64_t now_ms)
{
    weir_guesses_undo(guesses, guess);
    struct entry *pair = find(guesses->tries, N_TRIES, key_of(guesses, PAIR, guess), false);
    if (pair != NULL) {
        pair->n = 0;
    }
    know(guesses, PAIR, guess, now_ms);
    know(guesses, ADDRESS, guess, now_ms);
}
