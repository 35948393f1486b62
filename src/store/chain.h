/**
 * Chain: what admins did, and who used what, as two chains of hashes (trails), so that a row that was
 * altered, taken out or put in later is found.
 *
 * A *trail* is the events of topic "audit" that are kept by one rule: acts, and accesses, which anybody
 * can have written by asking. A row of a trail has its number in it, 1, 2, 3 … without gaps, and
 *
 *     hash = SHA-256(hash of the row before, "\n", canonical text)
 *
 * in hexadecimal; before the first row stand 64 zeros. The canonical text has one line for each of chain,
 * seq, time_ms, topic, kind, subject, actor, message, data, in this order: "name=LENGTH:VALUE\n", with the
 * value's bytes counted, or "name=-\n" if it is absent. The severity follows from the kind. Whoever can
 * write the database can write the whole chain anew: note its end elsewhere, and compare (struct
 * weir_chain_pin).
 *
 * Retention cuts the old end (weir_chain_cut): number, hash, range and times of what went stay in the
 * chain's row of audit_chains, and the rest verifies from there; a row within the range was put in later. Events of before there were chains are
 * in none; each chain says behind which number it begins.
 *
 * Threads: as transactions. The one writer appends, so numbers have no gaps.
 */
#ifndef WEIR_STORE_CHAIN_H
#define WEIR_STORE_CHAIN_H

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "store/event.h"

#include "base/view_struct.h"

#include "store/chain_views.def"

#include "base/view_end.h"

enum weir_trail { WEIR_TRAIL_NONE, WEIR_TRAIL_ACTS, WEIR_TRAIL_ACCESSES, WEIR_N_TRAILS };

#define WEIR_AUDIT_TOPIC "audit"

/** The trail of an event in SQL, as the index events_by_trail has it. */
#define WEIR_TRAIL_SQL                                                                             \
    "CASE WHEN topic <> 'audit' THEN 0"                                                            \
    " WHEN kind IN ('token_used', 'login_link_made', 'session_begun', 'session_ended',"            \
    " 'login_refused', 'access_refused', 'people_shown') THEN 2 ELSE 1 END"

enum weir_trail weir_trail_of(const char *topic, const char *kind);

/** "acts", "accesses". */
const char *weir_trail_text(enum weir_trail trail);

/** The row with this number must have this hash: what was noted elsewhere. */
struct weir_chain_pin {
    int64_t number;
    const char *hash;
};

/**
 * Read what people noted of a chain's end: "NUMBER:HASH", as `weir audit verify` prints it.
 * @param what  What the text was given as, for the error: "--acts".
 * @param out   Its hash is borrowed from the text.
 * @return INVALID.
 */
weir_status weir_chain_pin_parse(const char *what, const char *text, struct weir_chain_pin *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

struct weir_chain_report {
    enum weir_trail trail;
    bool is_whole;
    int64_t n_rows;                    /**< That were looked at. */
    int64_t n_before;                  /**< Of before there was a chain. */
    int64_t begins_after;              /**< The last number of those. */
    int64_t number;                    /**< Of the last row. */
    char hash[WEIR_SHA256_TEXT_BYTES]; /**< Its hash: the chain's end. */
    int64_t n_cut, cut_first_seq, cut_last_seq, cut_first_ms, cut_last_ms; /**< By retention. */
    int64_t bad_seq;    /**< The first row with a finding; of one that is missing: where it was. */
    int64_t bad_number; /**< Its number in the chain. */
    const char
        *finding;      /**< "altered", "missing", "inserted", "not the noted one"; NULL if whole. */
    char message[320]; /**< A sentence. */
};

/**
 * Number and hash an event of a trail that is about to be inserted, and move the chain's end: for
 * weir_event_append. An event of no trail gets 0 and NULL.
 */
weir_status weir_chain_extend(struct weir_txn *txn, struct weir_event *event,
                              char hash[WEIR_SHA256_TEXT_BYTES],
                              struct weir_error *err) WEIR_MUST_CHECK;

/** In the transaction that deletes the rows of a trail up to number `seq`, and before it does. */
weir_status weir_chain_cut(struct weir_txn *txn, enum weir_trail trail, int64_t seq,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Recompute a chain, from its cut on. What is found is in *out; the status is about reading alone.
 * @param pin  NULL: none. One of what was cut since is a finding, unless it is the cut's own row.
 * Cost: some microseconds a row; memory does not grow.
 */
weir_status weir_chain_verify(struct weir_txn *txn, enum weir_trail trail,
                              const struct weir_chain_pin *pin, struct weir_chain_report *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The same for the database file `path`, beside whoever has it open. No row is written; SQLite makes its
 * -wal and -shm files beside it if they are missing, and takes in the log that a killed server left.
 * @param out  WEIR_N_TRAILS reports; the first is not used.
 * @param pins By trail; NULL: none.
 * @return NOT_FOUND; UNSUPPORTED if it has no chains (its Weir knew none, or it is another program's), or
 *         if a newer Weir than this one wrote it; CORRUPT; IO, DENIED as the file is.
 */
weir_status weir_chain_verify_file(const char *path, const struct weir_chain_pin *const *pins,
                                   struct weir_chain_report *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** WEIR_N_TRAILS reports, the first not used, as the API shows them: the view weir_verified_audit. */
json_t *weir_chain_reports_json(const struct weir_chain_report *reports);

#endif
