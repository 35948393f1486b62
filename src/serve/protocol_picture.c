#include "serve/protocol_private.h"

weir_status protocol_read_picture(const void *bytes, size_t len, struct infer *infer,
                                  struct weir_error *err)
{
    (void)bytes;
    (void)len;
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "model %.80s takes no pictures: send tensors",
                          infer->model);
}
