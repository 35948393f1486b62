/** weir dataset get: the files of a version of a dataset. */
#ifndef WEIR_CLI_DATASET_GET_H
#define WEIR_CLI_DATASET_GET_H

#include "cli/command.h"

/**
 * Write the files of a version ("faces@v3", or the newest of "faces") into a folder, one folder per class. Each is
 * compared with its SHA-256; what is there and whole stays, so that a broken fetch goes on.
 */
weir_status dataset_get(struct cli_call *call, const char *word, const char *dir,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
