/** Parts of the SQL of a search for runs (track/run_search.h) that what counts and groups them has, too. */
#ifndef WEIR_TRACK_RUN_SEARCH_PRIVATE_H
#define WEIR_TRACK_RUN_SEARCH_PRIVATE_H

#include "track/run_search.h"

/** Append " WHERE …": which runs, wherever a page begins. The table is "r". */
void weir_run_search_conditions(struct weir_search_sql *sql, const struct weir_run_search *search);

#endif
