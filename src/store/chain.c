#include "store/chain.h"

#include "store/store_private.h"

#include "base/buf.h"

#include "base/view_table.h"

#include "store/chain_views.def"

#include "base/view_end.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)64 << 20) /* of one row's canonical text */
#define ROWS_PER_ARENA 512                /* rows read before the memory is given back */

enum weir_trail weir_trail_of(const char *topic, const char *kind)
{
    static const char *const accesses[] = {"token_used",    "login_link_made", "session_begun",
                                           "session_ended", "login_refused",   "access_refused",
                                           "people_shown"};
    if (topic == NULL || strcmp(topic, WEIR_AUDIT_TOPIC) != 0) {
        return WEIR_TRAIL_NONE;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(accesses); i++) {
        if (strcmp(kind, accesses[i]) == 0) {
            return WEIR_TRAIL_ACCESSES;
        }
    }
    return WEIR_TRAIL_ACTS;
}

const char *weir_trail_text(enum weir_trail trail)
{
    static const char *const texts[WEIR_N_TRAILS] = {"none", "acts", "accesses"};
    return texts[trail];
}

weir_status weir_chain_pin_parse(const char *what, const char *text, struct weir_chain_pin *out,
                                 struct weir_error *err)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != ':' || number <= 0 ||
        strspn(end + 1, "0123456789abcdef") != WEIR_SHA256_TEXT_BYTES - 1 ||
        strlen(end + 1) != WEIR_SHA256_TEXT_BYTES - 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected NUMBER:HASH as `weir audit verify` prints it, got "
                              "\"%.90s\"",
                              what, text);
    }
    *out = (struct weir_chain_pin){.number = number, .hash = end + 1};
    return WEIR_OK;
}

/* ---- the hash -------------------------------------------------------------------------------- */

static void add_text(struct weir_buf *buf, const char *name, const char *value)
{
    if (value == NULL) {
        (void)weir_buf_printf(buf, "%s=-\n", name);
        return;
    }
    (void)weir_buf_printf(buf, "%s=%zu:", name, strlen(value));
    (void)weir_buf_puts(buf, value);
    (void)weir_buf_puts(buf, "\n");
}

static void add_int(struct weir_buf *buf, const char *name, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    add_text(buf, name, text);
}

static weir_status hash_row(struct weir_buf *buf, const char *before,
                            const struct weir_event *event, char out[WEIR_SHA256_TEXT_BYTES],
                            struct weir_error *err)
{
    weir_buf_reset(buf);
    (void)weir_buf_puts(buf, before);
    (void)weir_buf_puts(buf, "\n");
    add_int(buf, "chain", event->chain);
    add_int(buf, "seq", event->seq);
    add_int(buf, "time_ms", event->time_ms);
    add_text(buf, "topic", event->topic);
    add_text(buf, "kind", event->kind);
    add_text(buf, "subject", event->subject);
    add_text(buf, "actor", event->actor);
    add_text(buf, "message", event->message);
    add_text(buf, "data", event->data);
    if (buf->status != WEIR_OK) {
        return weir_error_set(err, buf->status, "event %" PRId64 " is too long for the chain",
                              event->seq);
    }
    weir_sha256(buf->data, buf->len, out);
    return WEIR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char sql_end[] = "SELECT number, hash FROM audit_chains WHERE trail = :trail";
static const char sql_move_end[] =
    "UPDATE audit_chains SET number = :number, hash = :hash WHERE trail = :trail";

static weir_status no_chain(enum weir_trail trail, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT, "the chain of the audit's %s has lost its end",
                          weir_trail_text(trail));
}

static weir_status read_end(struct weir_txn *txn, enum weir_trail trail, int64_t *out_number,
                            char out_hash[WEIR_SHA256_TEXT_BYTES], struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_arena arena;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_end, WEIR_BINDS(WEIR_BIND_INT("trail", trail)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (!has_row) {
        return no_chain(trail, err);
    }
    weir_arena_init(&arena, 0);
    const char *hash = weir_stmt_text(stmt, 1, &arena);
    *out_number = weir_stmt_int(stmt, 0);
    (void)snprintf(out_hash, WEIR_SHA256_TEXT_BYTES, "%s", hash != NULL ? hash : "");
    weir_arena_fini(&arena);
    return WEIR_OK;
}

weir_status weir_chain_extend(struct weir_txn *txn, struct weir_event *event,
                              char hash[WEIR_SHA256_TEXT_BYTES], struct weir_error *err)
{
    enum weir_trail trail = weir_trail_of(event->topic, event->kind);
    char before[WEIR_SHA256_TEXT_BYTES];
    struct weir_buf buf;
    event->chain = 0;
    event->hash = NULL;
    if (trail == WEIR_TRAIL_NONE) {
        return WEIR_OK;
    }
    WEIR_TRY(read_end(txn, trail, &event->chain, before, err));
    event->chain++;
    weir_buf_init(&buf, TEXT_MAX_BYTES);
    weir_status status = hash_row(&buf, before, event, hash, err);
    weir_buf_fini(&buf);
    WEIR_TRY(status);
    event->hash = hash;
    return weir_txn_exec(txn, sql_move_end,
                         WEIR_BINDS(WEIR_BIND_INT("trail", trail),
                                    WEIR_BIND_INT("number", event->chain),
                                    WEIR_BIND_TEXT("hash", hash)),
                         NULL, err);
}

/* Rows of before the chain have no number: they leave nothing behind. */
#define CUT_ROWS " FROM events WHERE " WEIR_TRAIL_SQL " = :trail AND chain > 0 AND seq <= :seq"
static const char sql_cut_last[] =
    "UPDATE audit_chains SET (cut_number, cut_hash, cut_last_seq, cut_last_ms) ="
    " (SELECT chain, hash, seq, time_ms" CUT_ROWS " ORDER BY seq DESC LIMIT 1)"
    " WHERE trail = :trail AND EXISTS (SELECT 1" CUT_ROWS ")";
static const char sql_cut_first[] =
    "UPDATE audit_chains SET (cut_first_seq, cut_first_ms) ="
    " (SELECT seq, time_ms" CUT_ROWS " ORDER BY seq LIMIT 1)"
    " WHERE trail = :trail AND cut_number = 0 AND EXISTS (SELECT 1" CUT_ROWS ")";

weir_status weir_chain_cut(struct weir_txn *txn, enum weir_trail trail, int64_t seq,
                           struct weir_error *err)
{
    const struct weir_bind binds[] = {WEIR_BIND_INT("trail", trail), WEIR_BIND_INT("seq", seq)};
    WEIR_TRY(weir_txn_exec(txn, sql_cut_first, binds, 2, NULL, err));
    return weir_txn_exec(txn, sql_cut_last, binds, 2, NULL, err);
}

/* ---- verifying ------------------------------------------------------------------------------- */

static const char sql_chain[] =
    "SELECT begins_after, number, hash, cut_number, cut_hash, cut_first_seq, cut_last_seq,"
    " cut_first_ms, cut_last_ms FROM audit_chains WHERE trail = :trail";
static const char sql_n_before[] =
    "SELECT count(*) FROM events WHERE " WEIR_TRAIL_SQL " = :trail AND seq <= :begins_after";
static const char sql_in_cut[] = "SELECT seq FROM events WHERE " WEIR_TRAIL_SQL
                                 " = :trail AND seq <= :last ORDER BY seq LIMIT 1";
static const char sql_rows[] =
    "SELECT seq, time_ms, topic, kind, subject, actor, message, data, chain, hash FROM events"
    " WHERE " WEIR_TRAIL_SQL " = :trail AND seq > :after ORDER BY seq LIMIT :n";

/** A walk along a chain. */
struct walk {
    const struct weir_chain_pin *pin;
    struct weir_chain_report *report;
    struct weir_buf buf;
    int64_t end_number; /**< As the chain's row has it. */
    char end_hash[WEIR_SHA256_TEXT_BYTES];
    int64_t seq, number; /**< Of the last row that was good. */
    char hash[WEIR_SHA256_TEXT_BYTES];
};

static void find(struct walk *walk, const char *finding, int64_t seq, int64_t number,
                 const char *message)
{
    struct weir_chain_report *report = walk->report;
    report->is_whole = false;
    report->finding = finding;
    report->bad_seq = seq;
    report->bad_number = number;
    (void)snprintf(report->message, sizeof report->message, "%s", message);
}

static weir_status read_chain(struct weir_txn *txn, struct walk *walk, struct weir_arena *arena,
                              struct weir_error *err)
{
    struct weir_chain_report *report = walk->report;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_chain, WEIR_BINDS(WEIR_BIND_INT("trail", report->trail)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (!has_row) {
        return no_chain(report->trail, err);
    }
    const char *end_hash = weir_stmt_text(stmt, 2, arena);
    const char *cut_hash = weir_stmt_text(stmt, 4, arena);
    report->begins_after = weir_stmt_int(stmt, 0);
    walk->end_number = weir_stmt_int(stmt, 1);
    (void)snprintf(walk->end_hash, sizeof walk->end_hash, "%s", end_hash != NULL ? end_hash : "");
    report->n_cut = walk->number = weir_stmt_int(stmt, 3);
    (void)snprintf(walk->hash, sizeof walk->hash, "%s", cut_hash != NULL ? cut_hash : "");
    report->cut_first_seq = weir_stmt_int(stmt, 5);
    report->cut_last_seq = weir_stmt_int(stmt, 6);
    report->cut_first_ms = weir_stmt_int(stmt, 7);
    report->cut_last_ms = weir_stmt_int(stmt, 8);
    walk->seq = WEIR_MAX(report->begins_after, report->cut_last_seq);
    return WEIR_OK;
}

static bool pin_differs(const struct walk *walk, int64_t number, const char *hash)
{
    return walk->pin != NULL && walk->pin->number == number && strcmp(walk->pin->hash, hash) != 0;
}

/* Retention left no row of the trail up to the cut: what stands there was put in. */
static weir_status check_cut(struct weir_txn *txn, struct walk *walk, struct weir_error *err)
{
    const struct weir_chain_report *report = walk->report;
    int64_t seq;
    char text[320];
    if (report->n_cut == 0 || !report->is_whole) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_query_int(txn, sql_in_cut,
                                WEIR_BINDS(WEIR_BIND_INT("trail", report->trail),
                                           WEIR_BIND_INT("last", report->cut_last_seq)),
                                0, &seq, err));
    if (seq != 0) {
        (void)snprintf(text, sizeof text,
                       "Event %" PRId64 " was put in: retention cut all rows of the chain up to "
                       "event %" PRId64 ".",
                       seq, report->cut_last_seq);
        find(walk, "inserted", seq, 0, text);
    }
    return WEIR_OK;
}

/* Does the row follow from the one before? If not, say how it differs. */
static weir_status check_row(struct walk *walk, const struct weir_event *event,
                             struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES], text[320];
    int64_t expected = walk->number + 1;
    walk->report->n_rows++;
    if (event->chain < expected) {
        (void)snprintf(text, sizeof text,
                       "Event %" PRId64 " was put in: the chain has no row between its numbers "
                       "%" PRId64 " and %" PRId64 ".",
                       event->seq, walk->number, expected);
        find(walk, "inserted", event->seq, event->chain, text);
        return WEIR_OK;
    }
    if (event->chain > expected) {
        (void)snprintf(text, sizeof text,
                       "%" PRId64 " of the chain's rows are missing, number %" PRId64
                       " first: between the events %" PRId64 " and %" PRId64 ".",
                       event->chain - expected, expected, walk->seq, event->seq);
        find(walk, "missing", walk->seq + 1, expected, text);
        return WEIR_OK;
    }
    WEIR_TRY(hash_row(&walk->buf, walk->hash, event, hash, err));
    if (event->hash == NULL || strcmp(hash, event->hash) != 0) {
        (void)snprintf(text, sizeof text,
                       "Event %" PRId64 " (number %" PRId64 ", %.60s) was altered: its hash is not "
                       "that of what it says behind the row before.",
                       event->seq, event->chain, event->kind);
        find(walk, "altered", event->seq, event->chain, text);
        return WEIR_OK;
    }
    if (pin_differs(walk, event->chain, hash)) {
        (void)snprintf(text, sizeof text,
                       "Number %" PRId64 " (event %" PRId64 ") has another hash than the one that "
                       "was noted: the chain was written anew.",
                       event->chain, event->seq);
        find(walk, "not the noted one", event->seq, event->chain, text);
        return WEIR_OK;
    }
    walk->seq = event->seq;
    walk->number = event->chain;
    memcpy(walk->hash, hash, sizeof hash);
    return WEIR_OK;
}

/* Look at up to ROWS_PER_ARENA rows behind the last one. */
static weir_status check_some(struct weir_txn *txn, struct walk *walk, bool *out_has_more,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_arena arena;
    size_t n = 0;
    bool has_row = true;
    weir_status status = WEIR_OK;
    WEIR_TRY(weir_stmt_open(txn, sql_rows,
                            WEIR_BINDS(WEIR_BIND_INT("trail", walk->report->trail),
                                       WEIR_BIND_INT("after", walk->seq),
                                       WEIR_BIND_INT("n", ROWS_PER_ARENA)),
                            &stmt, err));
    weir_arena_init(&arena, 0);
    while (status == WEIR_OK && walk->report->is_whole &&
           (status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row) {
        const struct weir_event event = {.seq = weir_stmt_int(stmt, 0),
                                         .time_ms = weir_stmt_int(stmt, 1),
                                         .topic = weir_stmt_text(stmt, 2, &arena),
                                         .kind = weir_stmt_text(stmt, 3, &arena),
                                         .subject = weir_stmt_text(stmt, 4, &arena),
                                         .actor = weir_stmt_text(stmt, 5, &arena),
                                         .message = weir_stmt_text(stmt, 6, &arena),
                                         .data = weir_stmt_text(stmt, 7, &arena),
                                         .chain = weir_stmt_int(stmt, 8),
                                         .hash = weir_stmt_text(stmt, 9, &arena)};
        n++;
        status = check_row(walk, &event, err);
    }
    weir_arena_fini(&arena);
    *out_has_more = n == ROWS_PER_ARENA;
    return status;
}

/* What the chain's own row says of its end. */
static void check_end(struct walk *walk)
{
    char text[320];
    const struct weir_chain_pin *pin = walk->pin;
    if (walk->number < walk->end_number) {
        (void)snprintf(text, sizeof text,
                       "The chain's last %" PRId64 " rows are missing: it ends with number %" PRId64
                       " (event %" PRId64 ") and had %" PRId64 ".",
                       walk->end_number - walk->number, walk->number, walk->seq, walk->end_number);
        find(walk, "missing", walk->seq + 1, walk->number + 1, text);
    } else if (walk->number > walk->end_number || strcmp(walk->hash, walk->end_hash) != 0) {
        (void)snprintf(text, sizeof text,
                       "The chain's end says number %" PRId64 ", and its last row is %" PRId64
                       " (event %" PRId64 "): rows were put in, or the end was altered.",
                       walk->end_number, walk->number, walk->seq);
        find(walk, "altered", walk->seq, walk->number, text);
    } else if (pin != NULL && pin->number > walk->number) {
        (void)snprintf(text, sizeof text,
                       "The noted number %" PRId64 " is missing: the chain ends with %" PRId64 ".",
                       pin->number, walk->number);
        find(walk, "missing", walk->seq + 1, pin->number, text);
    } else if (pin != NULL && pin->number < walk->report->n_cut) {
        (void)snprintf(text, sizeof text,
                       "The noted number %" PRId64 " was cut by retention: note the chain's end "
                       "anew.",
                       pin->number);
        find(walk, "missing", 0, pin->number, text);
    }
}

weir_status weir_chain_verify(struct weir_txn *txn, enum weir_trail trail,
                              const struct weir_chain_pin *pin, struct weir_chain_report *out,
                              struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_chain_report report = {.trail = trail, .is_whole = true};
    struct walk walk = {.pin = pin, .report = &report};
    bool has_more = true;
    weir_arena_init(&arena, 0);
    weir_status status = read_chain(txn, &walk, &arena, err);
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    WEIR_TRY(weir_txn_query_int(txn, sql_n_before,
                                WEIR_BINDS(WEIR_BIND_INT("trail", trail),
                                           WEIR_BIND_INT("begins_after", report.begins_after)),
                                0, &report.n_before, err));
    if (report.n_cut > 0 && pin_differs(&walk, report.n_cut, walk.hash)) {
        find(&walk, "not the noted one", report.cut_last_seq, report.n_cut,
             "The row before the cut has another hash than the one that was noted.");
    }
    WEIR_TRY(check_cut(txn, &walk, err));
    weir_buf_init(&walk.buf, TEXT_MAX_BYTES);
    while (status == WEIR_OK && has_more && report.is_whole) {
        status = check_some(txn, &walk, &has_more, err);
    }
    weir_buf_fini(&walk.buf);
    WEIR_TRY(status);
    if (report.is_whole) {
        check_end(&walk);
    }
    report.number = walk.number;
    memcpy(report.hash, walk.hash, sizeof report.hash);
    *out = report;
    return WEIR_OK;
}

static const char sql_newest[] = "SELECT max(version) FROM schema_migrations";

static weir_status verify_all(struct weir_txn *txn, const struct weir_chain_pin *const *pins,
                              struct weir_chain_report *out, struct weir_error *err)
{
    int64_t newest;
    bool has_chains;
    size_t n_known;
    const struct migration *known = txn->connection->ops->migrations(&n_known);
    WEIR_TRY(txn_has_table(txn, "audit_chains", &has_chains, err));
    if (!has_chains) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the audit of this database is not chained yet: it gets its chain "
                              "when this Weir's server opens it");
    }
    WEIR_TRY(weir_txn_query_int(txn, sql_newest, WEIR_NO_BINDS, 0, &newest, err));
    if (newest > known[n_known - 1].version) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a newer Weir wrote this database: verify it with that one");
    }
    for (int trail = WEIR_TRAIL_ACTS; trail < WEIR_N_TRAILS; trail++) {
        WEIR_TRY(weir_chain_verify(txn, (enum weir_trail)trail, pins != NULL ? pins[trail] : NULL,
                                   &out[trail], err));
    }
    return WEIR_OK;
}

struct verifying {
    const struct weir_chain_pin *const *pins;
    struct weir_chain_report *out;
};

static weir_status verify_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct verifying *verifying = context;
    return verify_all(txn, verifying->pins, verifying->out, err);
}

weir_status weir_chain_verify_file(const char *path, const struct weir_chain_pin *const *pins,
                                   struct weir_chain_report *out, struct weir_error *err)
{
    struct verifying verifying = {pins, out};
    return weir_store_look(path, verify_in, &verifying, err);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

json_t *weir_chain_reports_json(const struct weir_chain_report *reports)
{
    struct weir_verified_chain chains[WEIR_N_TRAILS];
    struct weir_chain_cut cuts[WEIR_N_TRAILS];
    struct weir_chain_finding findings[WEIR_N_TRAILS];
    struct weir_verified_audit audit = {.is_whole = true, .chains = chains};
    for (int trail = WEIR_TRAIL_ACTS; trail < WEIR_N_TRAILS; trail++) {
        const struct weir_chain_report *of = &reports[trail];
        size_t i = audit.n_chains++;
        cuts[i] = (struct weir_chain_cut){of->n_cut, of->cut_first_seq, of->cut_last_seq,
                                          of->cut_first_ms, of->cut_last_ms};
        findings[i] =
            (struct weir_chain_finding){of->finding, of->bad_seq, of->bad_number, of->message};
        chains[i] = (struct weir_verified_chain){.chain = weir_trail_text(of->trail),
                                                 .is_whole = of->is_whole,
                                                 .number = of->number,
                                                 .hash = of->hash,
                                                 .n_rows = of->n_rows,
                                                 .n_before = of->n_before,
                                                 .begins_after = of->begins_after,
                                                 .cut = of->n_cut > 0 ? &cuts[i] : NULL,
                                                 .finding = of->is_whole ? NULL : &findings[i]};
        audit.is_whole = audit.is_whole && of->is_whole;
    }
    return weir_view_to_json(weir_verified_audit_view(), &audit);
}
