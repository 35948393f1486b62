/**
 * Input: the pictures of a dataset version, by number, in the order of its manifest.
 *
 * In a dataset of the kind "folder" each file of the manifest is one; it is read from the dataset's
 * folder, or, if it is not there or is another by now, from the server, which keeps the files of
 * uploaded datasets. Of the kind "idx" each picture of the split is one.
 *
 * Everything about a file that cannot be shown is the file's own error and a row of the results
 * (batch_input_is_row). What another try may mend is not.
 *
 * Threads: one at a time.
 */
#ifndef WEIR_BATCH_INPUT_H
#define WEIR_BATCH_INPUT_H

#include "batch/spec.h"

#include "client/client.h"
#include "data/image.h"

#define BATCH_NAME_BYTES 1024

struct batch_input;

/**
 * @param client  For manifest and files; NULL: there is no server, and $.manifest is a file.
 * @return NOT_FOUND: the folder is not on this machine. CORRUPT: manifest, or an IDX file that is not
 *         the version's. Errors of the client.
 */
weir_status batch_input_open(const struct batch_spec *spec, struct weir_client *client,
                             struct batch_input **out, struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void batch_input_close(struct batch_input *input);

int64_t batch_input_n_files(const struct batch_input *input);

/** "ada/1.png", "t10k-images-idx3-ubyte.gz[17]"; cut if longer. Returns `out`. */
const char *batch_input_name(const struct batch_input *input, int64_t i,
                             char out[BATCH_NAME_BYTES]);

/** SHA-256 of the file in the dataset version; "" of a picture in an IDX file. The input's. */
const char *batch_input_digest(const struct batch_input *input, int64_t i);

/** Free the picture with weir_image_fini. */
weir_status batch_input_read(struct batch_input *input, int64_t i, struct weir_image *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Is this the error of the picture itself, which comes again whoever reads it? */
bool batch_input_is_row(weir_status status);

#endif
