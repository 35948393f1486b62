/** Lists of a table's records (records.c), for routes that add to them. */
#ifndef WEIR_API_RECORDS_H
#define WEIR_API_RECORDS_H

#include "api/core/call.h"
#include "store/table.h"

/** The records of one page. */
struct api_rows {
    void *items; /**< Of the route's `out`, in the call's arena. */
    size_t n;
    const char *next; /**< Cursor of the page after it; NULL: it is the last. */
};

/**
 * Read the page of the route's records that the call asks for: those that fit `of` and the call's filters (ROUTE_FILTERS), in
 * the order of `of`, from the call's cursor on, as many as `of` says or else the call's limit. For lists that show more
 * than the record. All lists of records are read by this.
 * @return INVALID: a word that a field cannot be (api/core/word.h), too many filters, no cursor.
 */
weir_status api_rows_read(struct api_call *call, struct weir_txn *txn, const struct weir_query *of,
                          struct api_rows *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Does a record that is not stored fit the call's filters? The same errors. */
weir_status api_row_fits(const struct api_call *call, const void *record, bool *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Read such a page, and answer with it. */
weir_status api_list_of(struct api_call *call, struct weir_txn *txn, const struct weir_query *of,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** The same of numbered records by their time `time`, within the call's `since` and `until`, newest first; with `after` those of
 *  greater numbers, in their order. @param of  Its filters, 2 at most, and its condition hold, too. */
weir_status api_list_timed(struct api_call *call, struct weir_txn *txn, const char *time,
                           const struct weir_query *of, struct weir_error *err) WEIR_MUST_CHECK;

/** The same of those whose `field` is the first parameter of the path. */
weir_status api_list_of_path(struct api_call *call, struct weir_txn *txn, const char *field,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** api_list with one more condition; NULL: none. */
weir_status api_list_where(struct api_call *call, struct weir_txn *txn,
                           const struct weir_filter *more, struct weir_error *err) WEIR_MUST_CHECK;

/** api_list_numbered with more conditions. */
weir_status api_list_numbered_where(struct api_call *call, struct weir_txn *txn,
                                    const struct weir_filter *more, size_t n_more,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
