/**
 * Guesses: how often passwords may be tried, and who is made to wait.
 *
 * Who tries is a claimed user from an address (base/peers.h: an IPv6 /64 is one). Each such pair, and
 * each address for all that it claims to be, has some wrong tries for nothing; then every further one
 * has to wait, twice as long each time. A pair, or an address, from which a right password came is
 * known: it waits a few seconds at most, and does not wait for others. So guessing ends at some tries
 * an hour from each address, and no stranger keeps a user from logging in where they have before, nor a
 * new one from an address that does not guess.
 *
 *      wrong tries for nothing   then                         forgotten
 *      pair      5               1 s, 2 s … 15 min            an hour after the last
 *      address   20              1 s, 2 s … 30 s              an hour after the last
 *      known     10              1 s, 2 s, 4 s, 8 s           an hour after the last
 *
 * What it cannot tell apart is two people at one address who claim to be the same user.
 *
 * Memory is fixed: tables in which the entry that was not used for longest makes room, within its own
 * bucket; what is known is never displaced by guesses. Keys are hashed with a secret of the process.
 * Threads: none; the caller has a lock. Times are the caller's, in ms.
 */
#ifndef WEIR_STORE_GUESSES_H
#define WEIR_STORE_GUESSES_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_GUESSES_PAIR_FREE      5
#define WEIR_GUESSES_PAIR_MAX_MS    (15 * 60 * 1000)
#define WEIR_GUESSES_ADDRESS_FREE   20
#define WEIR_GUESSES_ADDRESS_MAX_MS 30000
#define WEIR_GUESSES_KNOWN_FREE     10
#define WEIR_GUESSES_KNOWN_MAX_MS   8000
#define WEIR_GUESSES_FORGET_MS      ((int64_t)3600 * 1000)

struct weir_guesses;

struct weir_guesses *weir_guesses_create(void);
void weir_guesses_destroy(struct weir_guesses *guesses);

/** A try, and what became of it. */
struct weir_guess {
    const char *user;    /**< As claimed. */
    const char *address; /**< "127.0.0.1" */
    bool is_known;       /**< Out of _try: a right password came from there before. */
    int64_t n_wrong; /**< Out of _try: how many wrong ones came for this user from anywhere since it
                              was last left alone for an hour, with this one. */
};

/**
 * May the password be looked at? It counts as a wrong one until _right or _undo is called.
 * @return 0: it may; else in so many ms, and nothing was counted.
 */
int64_t weir_guesses_try(struct weir_guesses *guesses, struct weir_guess *guess, int64_t now_ms);

/** It was right: the pair is known from now on. */
void weir_guesses_right(struct weir_guesses *guesses, const struct weir_guess *guess,
                        int64_t now_ms);

/** It was not looked at. */
void weir_guesses_undo(struct weir_guesses *guesses, const struct weir_guess *guess);

#endif
