#include "store/password.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

static struct {
    pthread_mutex_t one_at_a_time;
    atomic_int n; /* worked on, or waiting */
    int most;
} lanes[] = {
    [WEIR_PASSWORD_KNOWN] = {PTHREAD_MUTEX_INITIALIZER, 0, 1 + WEIR_PASSWORDS_WAITING},
    [WEIR_PASSWORD_UNKNOWN] = {PTHREAD_MUTEX_INITIALIZER, 0, 1 + WEIR_PASSWORDS_STRANGERS},
};

/* Of a password that nobody has: made once, so that a name that is unknown costs the same. */
static char nobodys_hash[crypto_pwhash_STRBYTES];
static pthread_once_t nobodys_once = PTHREAD_ONCE_INIT;

static int hash_into(char out[crypto_pwhash_STRBYTES], const char *password, size_t len)
{
    return crypto_pwhash_str(out, password, len, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                             crypto_pwhash_MEMLIMIT_INTERACTIVE);
}

static weir_status begin(enum weir_password_lane lane, struct weir_error *err)
{
    if (atomic_fetch_add(&lanes[lane].n, 1) >= lanes[lane].most) {
        atomic_fetch_sub(&lanes[lane].n, 1);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "too many passwords are being checked: try again in a second");
    }
    pthread_mutex_lock(&lanes[lane].one_at_a_time);
    return WEIR_OK;
}

static void end(enum weir_password_lane lane)
{
    pthread_mutex_unlock(&lanes[lane].one_at_a_time);
    atomic_fetch_sub(&lanes[lane].n, 1);
}

weir_status weir_password_hash(const char *password, struct weir_arena *arena, char **out,
                               struct weir_error *err)
{
    char hash[crypto_pwhash_STRBYTES];
    size_t len = strlen(password);
    if (len < WEIR_PASSWORD_MIN_BYTES || len > WEIR_PASSWORD_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a password has %d to %d bytes",
                              WEIR_PASSWORD_MIN_BYTES, WEIR_PASSWORD_MAX_BYTES);
    }
    WEIR_TRY(begin(WEIR_PASSWORD_KNOWN, err));
    int rc = sodium_init() >= 0 ? hash_into(hash, password, len) : -1;
    end(WEIR_PASSWORD_KNOWN);
    if (rc != 0) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to hash a password");
    }
    *out = weir_arena_strdup(arena, hash);
    return WEIR_OK;
}

static void make_nobodys_hash(void)
{
    char unknown[32];
    randombytes_buf(unknown, sizeof unknown);
    (void)hash_into(nobodys_hash, unknown, sizeof unknown);
}

static bool verify(const char *password, size_t len, const char *hash)
{
    if (sodium_init() < 0) {
        return false;
    }
    (void)pthread_once(&nobodys_once, make_nobodys_hash);
    int rc = crypto_pwhash_str_verify(hash != NULL ? hash : nobodys_hash, password, len);
    return rc == 0 && hash != NULL;
}

weir_status weir_password_check(const char *password, const char *hash,
                                enum weir_password_lane lane, struct weir_error *err)
{
    size_t len = strnlen(password, WEIR_PASSWORD_MAX_BYTES + 1);
    bool is_right = false;
    if (len <= WEIR_PASSWORD_MAX_BYTES) {
        WEIR_TRY(begin(lane, err));
        is_right = verify(password, len, hash);
        end(lane);
    }
    return is_right ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_UNAUTH, "user and password do not fit");
}
