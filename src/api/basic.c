#include "api/basic.h"

#include "api/dispatch.h"
#include "api/guard.h"
#include "store/table.h"

#include "base/base64.h"
#include "base/clock.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define CREDENTIALS_MAX_BYTES 4096
#define ID_BYTES              32

struct basic {
    unsigned char key[crypto_generichash_KEYBYTES];
    pthread_mutex_t lock;

    struct {
        unsigned char id[ID_BYTES];
        int64_t until_ms; /**< 0: free. */
    } entries[BASIC_KEPT_MAX];

    size_t next; /**< Which of them makes room. */
};

struct basic *basic_create(void)
{
    struct basic *basic = weir_xalloc(sizeof *basic);
    memset(basic, 0, sizeof *basic);
    crypto_generichash_keygen(basic->key);
    (void)pthread_mutex_init(&basic->lock, NULL);
    return basic;
}

void basic_destroy(struct basic *basic)
{
    if (basic != NULL) {
        (void)pthread_mutex_destroy(&basic->lock);
        explicit_bzero(basic, sizeof *basic);
        free(basic);
    }
}

/** Who says to be whom. */
struct claim {
    struct api_call *call;
    char *user, *password;
    struct weir_user found; /**< password_hash NULL: nobody, or without a password. */
    struct weir_identity identity;
    unsigned char id[ID_BYTES];
};

static weir_status load(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct claim *claim = context;
    struct api_call *call = claim->call;
    claim->found = (struct weir_user){0};
    weir_status status = weir_user_identify(txn, claim->user, call->arena, &claim->identity, err);
    if (status == WEIR_OK) {
        status =
            weir_txn_get(txn, &weir_user_resource, claim->user, call->arena, &claim->found, err);
    }
    return status == WEIR_ERR_UNAUTH || status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

static void make_id(const struct basic *basic, struct claim *claim)
{
    const char *const texts[] = {claim->user, claim->password, claim->found.password_hash};
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, basic->key, sizeof basic->key, ID_BYTES);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) { /* with their ends: no two pairs are one */
        (void)crypto_generichash_update(&state, (const unsigned char *)texts[i],
                                        strlen(texts[i]) + 1);
    }
    (void)crypto_generichash_final(&state, claim->id, ID_BYTES);
}

static bool is_remembered(struct basic *basic, const struct claim *claim, int64_t now_ms)
{
    bool found = false;
    pthread_mutex_lock(&basic->lock);
    for (size_t i = 0; i < BASIC_KEPT_MAX && !found; i++) {
        found = basic->entries[i].until_ms > now_ms &&
                sodium_memcmp(basic->entries[i].id, claim->id, ID_BYTES) == 0;
    }
    pthread_mutex_unlock(&basic->lock);
    return found;
}

static void remember(struct basic *basic, const struct claim *claim, int64_t now_ms)
{
    pthread_mutex_lock(&basic->lock);
    size_t i = basic->next++ % BASIC_KEPT_MAX;
    memcpy(basic->entries[i].id, claim->id, ID_BYTES);
    basic->entries[i].until_ms = now_ms + BASIC_KEEP_MS;
    pthread_mutex_unlock(&basic->lock);
}

static weir_status check(struct claim *claim, struct weir_error *err)
{
    struct basic *basic = claim->call->api->basic;
    int64_t now_ms = weir_mono_ms();
    if (claim->found.password_hash != NULL) {
        make_id(basic, claim);
        if (is_remembered(basic, claim, now_ms)) {
            return WEIR_OK;
        }
    }
    WEIR_TRY(
        guard_check(claim->call, claim->user, claim->password, claim->found.password_hash, err));
    remember(basic, claim, now_ms);
    return WEIR_OK;
}

/* "bm9ib2R5Og==" is "nobody:". */
static weir_status read_pair(struct claim *claim, const char *credentials, struct weir_error *err)
{
    size_t len = strnlen(credentials, CREDENTIALS_MAX_BYTES + 1);
    unsigned char *bytes = weir_arena_alloc(claim->call->arena, len + 4);
    size_t n = 0;
    bool is_good = len <= CREDENTIALS_MAX_BYTES &&
                   weir_base64_decode(credentials, bytes, len + 3, &n) == WEIR_OK &&
                   memchr(bytes, '\0', n) == NULL;
    if (is_good) {
        bytes[n] = '\0';
        claim->user = (char *)bytes;
        claim->password = strchr(claim->user, ':');
    }
    if (!is_good || claim->password == NULL || !weir_text_is_utf8(claim->user)) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "Authorization: Basic is followed by base64 of \"user:password\"");
    }
    *claim->password++ = '\0';
    return WEIR_OK;
}

weir_status basic_identify(struct api_call *call, const char *credentials, struct weir_error *err)
{
    struct claim claim = {.call = call};
    WEIR_TRY(read_pair(&claim, credentials, err));
    if (strncmp(claim.password, "weir_", 5) == 0) {
        return api_identify_by(call, claim.password, NULL, err);
    }
    WEIR_TRY(weir_store_read(call->api->store, load, &claim, err));
    WEIR_TRY(check(&claim, err));
    call->identity = claim.identity;
    call->actor = call->identity.user.name;
    return WEIR_OK;
}
