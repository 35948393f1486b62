/**
 * User names and passwords that come with every request (RFC 7617), as programs send them that know no
 * tokens. Checking a password takes a tenth of a second by intent (store/password.h), so a pair that was
 * right is remembered for some minutes, as a keyed hash of name, password and what the user's row had
 * then: a password that is changed is asked for at once. Wrong ones are never remembered, and are held
 * back as those of the login are. A token may stand in the password's place.
 */
#include "identity/identity.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS               ((int64_t)5 * 60 * 1000)
#define KEPT_MAX              256
#define CREDENTIALS_MAX_BYTES 4096
#define ID_BYTES              32

struct basic {
    unsigned char key[crypto_generichash_KEYBYTES];
    pthread_mutex_t lock;

    struct {
        unsigned char id[ID_BYTES];
        int64_t until_ms; /**< 0: free. */
    } entries[KEPT_MAX];

    size_t next; /**< Which of them makes room. */
};

static void *open_basic(void)
{
    struct basic *basic = weir_xalloc(sizeof *basic);
    memset(basic, 0, sizeof *basic);
    crypto_generichash_keygen(basic->key);
    (void)pthread_mutex_init(&basic->lock, NULL);
    return basic;
}

static void close_basic(void *state)
{
    struct basic *basic = state;
    (void)pthread_mutex_destroy(&basic->lock);
    explicit_bzero(basic, sizeof *basic);
    free(basic);
}

static void make_id(const struct basic *basic, const struct weir_identity_ask *ask,
                    unsigned char out[ID_BYTES])
{
    const char *const texts[] = {ask->given[0], ask->given[1], ask->password_hash};
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, basic->key, sizeof basic->key, ID_BYTES);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) { /* with their ends: no two pairs are one */
        (void)crypto_generichash_update(&state, (const unsigned char *)texts[i],
                                        strlen(texts[i]) + 1);
    }
    (void)crypto_generichash_final(&state, out, ID_BYTES);
}

static bool is_remembered(struct basic *basic, const unsigned char id[ID_BYTES], int64_t now_ms)
{
    bool found = false;
    pthread_mutex_lock(&basic->lock);
    for (size_t i = 0; i < KEPT_MAX && !found; i++) {
        found = basic->entries[i].until_ms > now_ms &&
                sodium_memcmp(basic->entries[i].id, id, ID_BYTES) == 0;
    }
    pthread_mutex_unlock(&basic->lock);
    return found;
}

static void remember(struct basic *basic, const unsigned char id[ID_BYTES], int64_t now_ms)
{
    pthread_mutex_lock(&basic->lock);
    size_t i = basic->next++ % KEPT_MAX;
    memcpy(basic->entries[i].id, id, ID_BYTES);
    basic->entries[i].until_ms = now_ms + KEEP_MS;
    pthread_mutex_unlock(&basic->lock);
}

static weir_status prove(struct weir_identity_ask *ask, struct weir_identity_proven *proven,
                         struct weir_error *err)
{
    struct basic *basic = ask->way->state;
    unsigned char id[ID_BYTES];
    int64_t now_ms = weir_mono_ms();
    if (ask->password_hash != NULL) {
        make_id(basic, ask, id);
        if (is_remembered(basic, id, now_ms)) {
            return WEIR_OK;
        }
    }
    WEIR_TRY(identity_prove_password(ask, proven, err)); /* nobody has a right one without a hash */
    remember(basic, id, now_ms);
    return WEIR_OK;
}

/* "bm9ib2R5Og==" is "nobody:". False: it is no pair. */
static bool read_pair(struct weir_identity_ask *ask, const char *credentials)
{
    size_t len = strnlen(credentials, CREDENTIALS_MAX_BYTES + 1);
    unsigned char *bytes = weir_arena_alloc(ask->arena, len + 4);
    size_t n = 0;
    if (len > CREDENTIALS_MAX_BYTES ||
        weir_base64_decode(credentials, bytes, len + 3, &n) != WEIR_OK ||
        memchr(bytes, '\0', n) != NULL) {
        return false;
    }
    bytes[n] = '\0';
    char *user = (char *)bytes, *colon = strchr(user, ':');
    if (colon == NULL) {
        return false;
    }
    *colon = '\0';
    if (!weir_text_is_utf8(user)) {
        return false;
    }
    ask->given[0] = user;
    ask->given[1] = colon + 1;
    ask->token = strncmp(colon + 1, "weir_", 5) == 0 ? colon + 1 : NULL;
    return true;
}

static bool is_shown(struct weir_identity_ask *ask)
{
    static const char basic[] = "Basic ";
    const char *header = weir_http_request_header(ask->request, "Authorization");
    if (header == NULL || strncmp(header, basic, sizeof basic - 1) != 0) {
        return false;
    }
    if (!read_pair(ask, header + sizeof basic - 1)) {
        ask->given[0] = NULL;
    }
    return true;
}

static weir_status look(struct weir_txn *txn, struct weir_identity_ask *ask,
                        struct weir_identity_proven *out, struct weir_error *err)
{
    return ask->given[0] != NULL
               ? identity_look_person(txn, ask, out, err)
               : weir_error_set(err, WEIR_ERR_UNAUTH,
                                "Authorization: Basic is followed by base64 of \"user:password\"");
}

static const struct weir_identity_ops ops = {
    .words = "a password with each request",
    .is_default = true,
    .refused = "user and password do not fit",
    .reach = WEIR_IDENTITY_FOREIGN,
    .shown = is_shown,
    .look = look,
    .prove = prove,
    .open = open_basic,
    .close = close_basic,
};

const struct weir_kind weir_identity_basic = {
    .name = "basic",
    .doc = "A user's name and password with each request (HTTP Basic), for programs that know no "
           "tokens: on "
           "the paths of MLflow's API. A token may stand in the password's place.",
    .ops = &ops,
};
