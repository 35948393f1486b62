/* A body that is a picture, as the model's input. */
#include "serve/protocol/protocol_private.h"

#include "serve/preprocess.h"

weir_status protocol_read_picture(const void *bytes, size_t len, struct infer *infer,
                                  struct weir_error *err)
{
    struct weir_tensor *tensor;
    if (!infer->signature->has_picture) {
        return weir_error_set(err, WEIR_ERR_INVALID, "model %.80s takes no pictures: send tensors",
                              infer->model);
    }
    weir_status status = weir_picture_tensor(infer->signature, bytes, len, &tensor, err);
    if (status != WEIR_OK) {
        /* The service can, but not with this body. */
        return status == WEIR_ERR_UNSUPPORTED
                   ? weir_error_set(err, WEIR_ERR_INVALID,
                                    "the picture is neither JPEG, PNG nor PNM")
                   : status;
    }
    infer->is_picture = true;
    return infer_set_input(infer, infer->signature->picture.i_input, tensor, err);
}
