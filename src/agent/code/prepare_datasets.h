/** Datasets on a node that does not see their folders. Supervisor only. */
#ifndef WEIR_AGENT_PREPARE_DATASETS_H
#define WEIR_AGENT_PREPARE_DATASETS_H

#include "agent/code/prepare.h"

/**
 * Have the files of a dataset's version in `folder`, and keep them there as long as this process lives. Those of other
 * versions that nobody has used for a week go.
 * @param list      SHA-256 of the list of its files, a blob of the server's: {"files": [{"class", "file", "sha256"}]}.
 * @param datasets  Where all of them lie; folder: datasets/LIST.
 * @return as weir_client_blob_get; CORRUPT for a list that cannot be read; CANCELLED, TIMEOUT.
 * Cost: a request for each file, the first time.
 */
weir_status prepare_dataset(struct prepare *prepare, const char *list, const char *datasets,
                            const char *folder, struct weir_error *err) WEIR_MUST_CHECK;

#endif
