/** weir store verify, and what backup and restore say of blobs. */
#ifndef WEIR_CLI_STORE_VERIFY_H
#define WEIR_CLI_STORE_VERIFY_H

#include "cli/command.h"
#include "server/verify.h"

/** A line for each that is damaged or missing; none if all are well, or for JSON. */
void cli_print_blobs(const struct cli_call *call, const struct verify *verify);

/** {checked, damaged, missing, mended, set_aside, items: [{blob, what, is, mended}]} */
json_t *cli_blobs_json(const struct verify *verify);

/** @return CORRUPT if something is damaged or missing, and was not mended. */
weir_status cli_store_verify(struct cli_call *call, bool mend, const char *from,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
