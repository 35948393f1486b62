#include "store/password.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* Of a password that nobody has: made once, so that a name that is unknown costs the same. */
static char nobodys_hash[crypto_pwhash_STRBYTES];

static int hash_into(char out[crypto_pwhash_STRBYTES], const char *password, size_t len)
{
    return crypto_pwhash_str(out, password, len, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                             crypto_pwhash_MEMLIMIT_INTERACTIVE);
}

static atomic_int n_waiting;

static weir_status begin(struct weir_error *err)
{
    if (atomic_fetch_add(&n_waiting, 1) > WEIR_PASSWORDS_WAITING_MAX) {
        atomic_fetch_sub(&n_waiting, 1);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "too many passwords are being checked: try again in a second");
    }
    pthread_mutex_lock(&one_at_a_time);
    return WEIR_OK;
}

static void end(void)
{
    pthread_mutex_unlock(&one_at_a_time);
    atomic_fetch_sub(&n_waiting, 1);
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
    WEIR_TRY(begin(err));
    int rc = sodium_init() >= 0 ? hash_into(hash, password, len) : -1;
    end();
    if (rc != 0) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to hash a password");
    }
    *out = weir_arena_strdup(arena, hash);
    return WEIR_OK;
}

static bool verify(const char *password, size_t len, const char *hash)
{
    if (sodium_init() < 0) {
        return false;
    }
    if (nobodys_hash[0] == '\0') {
        char unknown[32];
        randombytes_buf(unknown, sizeof unknown);
        (void)hash_into(nobodys_hash, unknown, sizeof unknown);
    }
    int rc = crypto_pwhash_str_verify(hash != NULL ? hash : nobodys_hash, password, len);
    return rc == 0 && hash != NULL;
}

weir_status weir_password_check(const char *password, const char *hash, struct weir_error *err)
{
    size_t len = strnlen(password, WEIR_PASSWORD_MAX_BYTES + 1);
    bool is_right = false;
    if (len <= WEIR_PASSWORD_MAX_BYTES) {
        WEIR_TRY(begin(err));
        is_right = verify(password, len, hash);
        end();
    }
    return is_right ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_UNAUTH, "user and password do not fit");
}
