/** Lists of a table's records (records.c), for routes that add to them. */
#ifndef WEIR_API_RECORDS_H
#define WEIR_API_RECORDS_H

#include "api/call.h"
#include "store/table.h"

/** api_list with one more condition; NULL: none. */
weir_status api_list_where(struct api_call *call, struct weir_txn *txn,
                           const struct weir_filter *more, struct weir_error *err) WEIR_MUST_CHECK;

/** api_list_numbered with one more condition; NULL: none. */
weir_status api_list_numbered_where(struct api_call *call, struct weir_txn *txn,
                                    const struct weir_filter *more, size_t n_more,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Query parameters that are names of text fields of the answer filter by them.
 *  @param out_n  How many, at most max. @return INVALID: a word that the field cannot be (api/word.h). */
weir_status api_query_filters(const struct api_call *call, struct weir_filter *filters, size_t max,
                              size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
