/** What is said of a file that is put. */
#ifndef WEIR_API_BLOB_H
#define WEIR_API_BLOB_H

/** What a file is, for PUT /blobs/{sha256}?as=model */
#define API_BLOB_AS_MODEL "model"
#define API_BLOB_AS_CODE  "code"

#endif
