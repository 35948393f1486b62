/** The cases of the division of one resource. */
#ifndef SCHED_CASES_FAIRSHARE_H
#define SCHED_CASES_FAIRSHARE_H

#include "base/buf.h"
#include "base/json.h"

/** Divide as the case says and append a line per difference. @return How many there are. */
int fairshare_run(const json_t *document, struct weir_buf *out);

#endif
