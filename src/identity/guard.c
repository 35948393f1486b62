#include "identity/guard.h"

#include "base/log.h"
#include "base/uuid.h"
#include "store/event.h"
#include "store/guesses.h"
#include "store/password.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALERT_KIND   "password_guessing"
#define ATTACKED_MAX 64 /* accounts whose alerts are watched over; of more, a person ends them */
#define NAME_BYTES   64

struct weir_guard {
    struct weir_store *store;
    pthread_mutex_t lock;
    struct weir_guesses *guesses;

    struct attacked {
        char user[NAME_BYTES];
        int64_t last_ms;
    } attacked[ATTACKED_MAX];

    size_t n_attacked;
    bool has_looked; /* for alerts of an earlier run; the tick's */
};

struct weir_guard *weir_guard_create(struct weir_store *store)
{
    struct weir_guard *guard = weir_xalloc(sizeof *guard);
    memset(guard, 0, sizeof *guard);
    guard->store = store;
    guard->guesses = weir_guesses_create();
    (void)pthread_mutex_init(&guard->lock, NULL);
    return guard;
}

void weir_guard_destroy(struct weir_guard *guard)
{
    if (guard != NULL) {
        weir_guesses_destroy(guard->guesses);
        (void)pthread_mutex_destroy(&guard->lock);
        free(guard);
    }
}

/* ---- who is told ------------------------------------------------------------------------------ */

/* The lock is held. */
static void note_attacked(struct weir_guard *guard, const char *user, int64_t now_ms)
{
    for (size_t i = 0; i < guard->n_attacked; i++) {
        if (strcmp(guard->attacked[i].user, user) == 0) {
            guard->attacked[i].last_ms = now_ms;
            return;
        }
    }
    if (guard->n_attacked < ATTACKED_MAX) {
        struct attacked *attacked = &guard->attacked[guard->n_attacked++];
        (void)snprintf(attacked->user, sizeof attacked->user, "%s", user);
        attacked->last_ms = now_ms;
    }
}

struct telling {
    const char *user;
    const char *message; /* NULL: it is over */
    int64_t now_ms;
};

static weir_status tell_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct telling *telling = context;
    char id[WEIR_UUID_BYTES], key[sizeof ALERT_KIND + NAME_BYTES], subject[NAME_BYTES + 8];
    (void)snprintf(key, sizeof key, ALERT_KIND ":%s", telling->user);
    if (telling->message == NULL) {
        return weir_alert_resolve(txn, key, telling->now_ms, err);
    }
    weir_uuid_make(id);
    (void)snprintf(subject, sizeof subject, "user/%s", telling->user);
    const struct weir_alert alert = {.id = id,
                                     .key = key,
                                     .kind = ALERT_KIND,
                                     .subject = subject,
                                     .message = (char *)telling->message};
    return weir_alert_raise(txn, &alert, telling->now_ms, NULL, err);
}

static void tell(struct weir_guard *guard, const struct telling *telling)
{
    struct weir_error err;
    if (weir_store_write(guard->store, tell_in, (void *)telling, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "password_guessing_not_told", WEIR_KV_STR("user", telling->user),
                 WEIR_KV_STR("error", err.message));
    }
}

/* At the twentieth, the fortieth, the eightieth …: the alert is brought up to date. */
static bool is_told(int64_t n_wrong)
{
    int64_t at = WEIR_GUARD_TELLS_AT;
    while (at < n_wrong) {
        at *= 2;
    }
    return at == n_wrong;
}

static void note_wrong(struct weir_guard *guard, const struct weir_guard_try *given,
                       const struct weir_guess *guess)
{
    if (guess->n_wrong < WEIR_GUARD_TELLS_AT) {
        return;
    }
    pthread_mutex_lock(&guard->lock);
    note_attacked(guard, guess->user, given->now_ms);
    pthread_mutex_unlock(&guard->lock);
    if (is_told(guess->n_wrong)) {
        const struct telling telling = {
            guess->user,
            weir_arena_printf(given->arena,
                              "%" PRId64 " wrong passwords were given for %s, the last from %s",
                              guess->n_wrong, guess->user, guess->address),
            given->now_ms};
        tell(guard, &telling);
    }
}

/* ---- alerts that are over ---------------------------------------------------------------------- */

struct open_alerts {
    struct weir_arena arena;
    char **subjects;
    size_t n;
};

static weir_status find_open(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] =
        "SELECT subject FROM alerts WHERE kind = '" ALERT_KIND "' AND state <> 'resolved'";
    struct open_alerts *open = context;
    return weir_txn_query_texts(txn, sql, WEIR_NO_BINDS, &open->arena, &open->subjects, &open->n,
                                err);
}

/* Those that were raised before a restart end an hour after it. */
static void look_for_open(struct weir_guard *guard, int64_t now_ms)
{
    struct open_alerts open = {0};
    weir_arena_init(&open.arena, 0);
    guard->has_looked = weir_store_read(guard->store, find_open, &open, NULL) == WEIR_OK;
    for (size_t i = 0; guard->has_looked && i < open.n; i++) {
        if (strncmp(open.subjects[i], "user/", 5) == 0) {
            pthread_mutex_lock(&guard->lock);
            note_attacked(guard, open.subjects[i] + 5, now_ms);
            pthread_mutex_unlock(&guard->lock);
        }
    }
    weir_arena_fini(&open.arena);
}

/* Take one out that is left alone; false: there is none. */
static bool take_over(struct weir_guard *guard, int64_t now_ms, struct attacked *out)
{
    bool is_found = false;
    pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; i < guard->n_attacked && !is_found; i++) {
        if (now_ms - guard->attacked[i].last_ms >= WEIR_GUESSES_FORGET_MS) {
            *out = guard->attacked[i];
            guard->attacked[i] = guard->attacked[--guard->n_attacked];
            is_found = true;
        }
    }
    pthread_mutex_unlock(&guard->lock);
    return is_found;
}

void weir_guard_tick(struct weir_guard *guard, int64_t now_ms)
{
    struct attacked over;
    if (!guard->has_looked) {
        look_for_open(guard, now_ms);
    }
    while (take_over(guard, now_ms, &over)) {
        tell(guard, &(struct telling){.user = over.user, .now_ms = now_ms});
    }
}

/* ---- the check --------------------------------------------------------------------------------- */

static weir_status make_wait(int64_t wait_ms, struct weir_guard_note *note, struct weir_error *err)
{
    note->retry_after_s = (wait_ms + 999) / 1000;
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                          "too many wrong passwords came for this name, or from this address: try "
                          "again in %" PRId64 " s, or use a token, or a link of `weir login`",
                          note->retry_after_s);
}

weir_status weir_guard_check(struct weir_guard *guard, const struct weir_guard_try *given,
                             struct weir_guard_note *note, struct weir_error *err)
{
    struct weir_guess guess = {.user = given->user, .address = given->address};
    note->claimed = given->hash != NULL ? given->user : NULL;
    pthread_mutex_lock(&guard->lock);
    int64_t wait_ms = weir_guesses_try(guard->guesses, &guess, given->now_ms);
    pthread_mutex_unlock(&guard->lock);
    if (wait_ms > 0) {
        return make_wait(wait_ms, note, err);
    }
    weir_status status =
        weir_password_check(given->password, given->hash,
                            guess.is_known ? WEIR_PASSWORD_KNOWN : WEIR_PASSWORD_UNKNOWN, err);
    pthread_mutex_lock(&guard->lock);
    if (status == WEIR_OK) {
        note->claimed = NULL; /* it is them */
        weir_guesses_right(guard->guesses, &guess, given->now_ms);
    } else if (status != WEIR_ERR_UNAUTH) {
        weir_guesses_undo(guard->guesses, &guess);
    }
    pthread_mutex_unlock(&guard->lock);
    if (status == WEIR_ERR_UNAUTH && given->hash != NULL) {
        note_wrong(guard, given, &guess);
    }
    return status;
}
