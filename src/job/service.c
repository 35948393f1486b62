#include "job/service.h"

#include "base/rng.h"
#include "job/job_step.h"
#include "store/stmt.h"
#include "store/table.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_service, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Its name in addresses"),
    WEIR_FIELD(weir_service, name,       TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Name in its project"),
    WEIR_FIELD(weir_service, project,    TEXT, WEIR_FIELD_COLUMN, "", "Whose it is"),
    WEIR_FIELD(weir_service, kind,       TEXT, WEIR_FIELD_COLUMN, "", "service, notebook or tensorboard"),
    WEIR_FIELD(weir_service, owner,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who has made it"),
    WEIR_FIELD(weir_service, is_shared,  BOOL, 0, "", "Others of the project may open it, not only its owner"),
    WEIR_FIELD_SIZED(weir_service, spec, JSON, WEIR_FIELD_SECRET, WEIR_SERVICE_SPEC_BYTES, "", "Specification of its jobs, of kind command"),
    WEIR_FIELD(weir_service, port,       INT,  0, "", "Port that its program listens on; 0: the one in WEIR_PORT"),
    WEIR_FIELD(weir_service, keeps_path, BOOL, 0, "", "Its program is asked for paths that begin with WEIR_SERVICE_PATH; else for those behind it"),
    WEIR_FIELD(weir_service, secret,     TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "What the tunnel to its task demands"),
    WEIR_FIELD(weir_service, credential, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "Authorization that its program demands"),
    WEIR_FIELD(weir_service, idle_after_ms, INT, 0, "ms", "Without a request for so long it is stopped; 0: as its queue says"),
    WEIR_FIELD(weir_service, job,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Its last job"),
    WEIR_FIELD(weir_service, address,    TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "Where its task is reached"),
    WEIR_FIELD(weir_service, address_attempt, INT, WEIR_FIELD_READ_ONLY, "", "The attempt that is reached there"),
    WEIR_FIELD(weir_service, reason,     TEXT, WEIR_FIELD_READ_ONLY, "", "Why it was stopped"),
    WEIR_FIELD(weir_service, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
    WEIR_FIELD(weir_service, started_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was started last"),
    WEIR_FIELD(weir_service, stopped_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was stopped last"),
    WEIR_FIELD(weir_service, used_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was used last"),
};
// clang-format on

const struct weir_resource weir_service_resource =
    WEIR_RESOURCE("service", "services", weir_service, fields);

static const char sql_job_of[] = "SELECT state, reason, is_held FROM jobs WHERE id = :job";
static const char sql_task_of[] =
    "SELECT attempt, state, node FROM tasks WHERE job = :job ORDER BY rank LIMIT 1";
static const char sql_find[] = "SELECT id FROM services WHERE project = :project AND name = :name";
static const char sql_address[] =
    "UPDATE services SET address = :address, address_attempt = :attempt"
    " WHERE job = :job AND address_attempt <= :attempt";
static const char sql_use[] =
    "UPDATE services SET used_ms = :now WHERE id = :id AND used_ms < :now";
static const char sql_expire[] = "DELETE FROM service_logins WHERE expires_ms <= :now";
static const char sql_n_logins[] = "SELECT count(*) FROM service_logins WHERE service = :service";
static const char sql_login_add[] =
    "INSERT INTO service_logins (hash, service, is_ticket, nonce, session, token, expires_ms)"
    " VALUES (:hash, :service, :is_ticket, :nonce, :session, :token, :expires)";
static const char sql_login_get[] =
    "SELECT nonce, session, token FROM service_logins WHERE hash = :hash AND service = :service"
    " AND is_ticket = :is_ticket AND expires_ms > :now";
static const char sql_login_delete[] = "DELETE FROM service_logins WHERE hash = :hash";

/* ---- names ----------------------------------------------------------------------------------------- */

#define ID_LETTERS "abcdefghijklmnopqrstuvwxyz234567"

void weir_service_id_make(char out[WEIR_SERVICE_ID_BYTES])
{
    unsigned char bytes[WEIR_SERVICE_ID_BYTES - 1];
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[i] = ID_LETTERS[bytes[i] % 32];
    }
    out[sizeof bytes] = '\0';
}

bool weir_service_id_is_valid(const char *id)
{
    return strlen(id) == WEIR_SERVICE_ID_BYTES - 1 && strspn(id, ID_LETTERS) == strlen(id);
}

bool weir_service_name_is_valid(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= WEIR_SERVICE_NAME_MAX && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool weir_service_address_is_valid(const char *address)
{
    char host[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    const char *colon = strrchr(address, ':');
    bool is_v6 = address[0] == '[';
    size_t len = colon != NULL ? (size_t)(colon - address) : 0;
    if (len == 0 || strlen(address) > WEIR_SERVICE_ADDRESS_MAX || (is_v6 && colon[-1] != ']')) {
        return false;
    }
    len -= is_v6 ? 2 : 0;
    size_t n_digits = strspn(colon + 1, "0123456789");
    if (len == 0 || len >= sizeof host || n_digits == 0 || n_digits > 5 ||
        colon[1 + n_digits] != '\0' || strtol(colon + 1, NULL, 10) > 65535) {
        return false;
    }
    memcpy(host, address + is_v6, len);
    host[len] = '\0';
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, host, bytes) == 1;
}

/* ---- looking ---------------------------------------------------------------------------------------- */

static const char *state_of(enum weir_job_phase phase)
{
    switch (phase) {
    case WEIR_JOB_RUNNING:
        return WEIR_SERVICE_RUNNING;
    case WEIR_JOB_STOPPING:
        return WEIR_SERVICE_STOPPING;
    case WEIR_JOB_FAILED:
        return WEIR_SERVICE_FAILED;
    case WEIR_JOB_SUCCEEDED:
    case WEIR_JOB_CANCELLED:
        return WEIR_SERVICE_STOPPED;
    case WEIR_JOB_PENDING:
    case WEIR_JOB_STARTING:
    case WEIR_JOB_RESTARTING:
        break;
    }
    return WEIR_SERVICE_STARTING;
}

/* The address is that of the attempt which runs, or none. */
static weir_status look_at_task(struct weir_txn *txn, struct weir_arena *arena,
                                struct weir_service_look *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    struct weir_service *service = &out->service;
    WEIR_TRY(weir_stmt_open(txn, sql_task_of, WEIR_BINDS(WEIR_BIND_TEXT("job", service->job)), &row,
                            err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    bool is_reached = has_row && weir_stmt_int(row, 0) == service->address_attempt &&
                      strcmp(weir_stmt_text(row, 1, arena), "RUNNING") == 0;
    out->node = has_row ? weir_stmt_text(row, 2, arena) : NULL;
    service->address = is_reached ? service->address : NULL;
    return WEIR_OK;
}

static weir_status look_at_job(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_service_look *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row = false;
    struct weir_service *service = &out->service;
    out->state = WEIR_SERVICE_STOPPED;
    out->why = service->reason;
    if (service->job != NULL) {
        WEIR_TRY(weir_stmt_open(txn, sql_job_of, WEIR_BINDS(WEIR_BIND_TEXT("job", service->job)),
                                &row, err));
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    if (!has_row) {
        service->address = NULL;
        return WEIR_OK;
    }
    int phase = weir_job_phase_from_text(weir_stmt_text(row, 0, arena));
    out->state = state_of(phase >= 0 ? (enum weir_job_phase)phase : WEIR_JOB_FAILED);
    const char *reason = weir_stmt_text(row, 1, arena);
    bool is_stopped = strcmp(out->state, WEIR_SERVICE_STOPPED) == 0;
    out->why = is_stopped && service->reason != NULL ? service->reason : reason;
    if (phase < 0 || weir_job_phase_is_final((enum weir_job_phase)phase)) {
        service->address = NULL;
        return WEIR_OK;
    }
    return look_at_task(txn, arena, out, err);
}

weir_status weir_service_look(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                              struct weir_service_look *out, struct weir_error *err)
{
    struct weir_service_look look = {0};
    WEIR_TRY(weir_txn_get(txn, &weir_service_resource, id, arena, &look.service, err));
    WEIR_TRY(look_at_job(txn, arena, &look, err));
    *out = look;
    return WEIR_OK;
}

weir_status weir_service_find(struct weir_txn *txn, const char *project, const char *name,
                              struct weir_arena *arena, char **out_id, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(
        txn, sql_find, WEIR_BINDS(WEIR_BIND_TEXT("project", project), WEIR_BIND_TEXT("name", name)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    *out_id = has_row ? weir_stmt_text(row, 0, arena) : NULL;
    return WEIR_OK;
}

weir_status weir_service_note_address(struct weir_txn *txn, const char *job, int64_t attempt,
                                      const char *address, struct weir_error *err)
{
    if (!weir_service_address_is_valid(address)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.door: expected an address and a port");
    }
    return weir_txn_exec(txn, sql_address,
                         WEIR_BINDS(WEIR_BIND_TEXT("address", address),
                                    WEIR_BIND_INT("attempt", attempt), WEIR_BIND_TEXT("job", job)),
                         NULL, err);
}

weir_status weir_service_note_use(struct weir_txn *txn, const char *id, int64_t now_ms,
                                  struct weir_error *err)
{
    return weir_txn_exec(txn, sql_use,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("id", id)), NULL,
                         err);
}

/* ---- logins ------------------------------------------------------------------------------------------ */

static weir_status add_login(struct weir_txn *txn, const char *id, bool is_ticket,
                             const char *nonce, const char *session, const char *token,
                             int64_t expires_ms, char secret[WEIR_SECRET_BYTES],
                             struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    return weir_txn_exec(
        txn, sql_login_add,
        WEIR_BINDS(WEIR_BIND_TEXT("hash", hash), WEIR_BIND_TEXT("service", id),
                   WEIR_BIND_INT("is_ticket", is_ticket), WEIR_BIND_TEXT("nonce", nonce),
                   WEIR_BIND_TEXT("session", session), WEIR_BIND_TEXT("token", token),
                   WEIR_BIND_INT("expires", expires_ms)),
        NULL, err);
}

weir_status weir_service_ticket_make(struct weir_txn *txn, const char *id,
                                     const struct weir_identity *who, const char *nonce,
                                     int64_t now_ms, char secret[WEIR_SECRET_BYTES],
                                     struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_exec(txn, sql_expire, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), NULL, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_n_logins, WEIR_BINDS(WEIR_BIND_TEXT("service", id)), 0, &n,
                                err));
    if (n >= WEIR_SERVICE_LOGINS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "this service has %d logins: no more before some have ended",
                              WEIR_SERVICE_LOGINS_MAX);
    }
    return add_login(txn, id, true, nonce, who->session, who->session == NULL ? who->token : NULL,
                     now_ms + WEIR_SERVICE_TICKET_MS, secret, err);
}

/* What was made with the secret: NULL for none. */
struct found_login {
    const char *nonce, *session, *token;
};

static weir_status find_login(struct weir_txn *txn, const char *id, bool is_ticket,
                              const char *hash, int64_t now_ms, struct weir_arena *arena,
                              struct found_login *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_login_get,
                            WEIR_BINDS(WEIR_BIND_TEXT("hash", hash), WEIR_BIND_TEXT("service", id),
                                       WEIR_BIND_INT("is_ticket", is_ticket),
                                       WEIR_BIND_INT("now", now_ms)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (!has_row) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              is_ticket ? "this ticket was used before, or is too old: open the "
                                          "service again from Weir's console"
                                        : "the login has ended: open the service again");
    }
    *out = (struct found_login){weir_stmt_text(row, 0, arena), weir_stmt_text(row, 1, arena),
                                weir_stmt_text(row, 2, arena)};
    return WEIR_OK;
}

weir_status weir_service_ticket_take(struct weir_txn *txn, const char *id, const char *ticket,
                                     const char *nonce, int64_t now_ms,
                                     char secret[WEIR_SECRET_BYTES], struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct found_login found;
    weir_arena_init(&arena, 0);
    weir_secret_hash(ticket, hash);
    WEIR_TRY(find_login(txn, id, true, hash, now_ms, &arena, &found, err));
    WEIR_TRY(
        weir_txn_exec(txn, sql_login_delete, WEIR_BINDS(WEIR_BIND_TEXT("hash", hash)), NULL, err));
    if (found.nonce[0] != '\0' && strcmp(found.nonce, nonce) != 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this ticket was made for another browser: open the service from "
                              "Weir's console");
    }
    return add_login(txn, id, false, "", found.session, found.token, now_ms + WEIR_SERVICE_LOGIN_MS,
                     secret, err);
}

weir_status weir_service_login_identify(struct weir_txn *txn, const char *id, const char *login,
                                        int64_t now_ms, struct weir_arena *arena,
                                        struct weir_identity *out, struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct found_login found;
    weir_secret_hash(login, hash);
    WEIR_TRY(find_login(txn, id, false, hash, now_ms, arena, &found, err));
    return weir_identity_by_id(txn, found.session, found.token, now_ms, arena, out, err);
}
