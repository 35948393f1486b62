/** Any bytes into the picture decoder; what decodes must survive use. */
#include "data/image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_image image, small;
    struct weir_error err;
    weir_status status = weir_image_decode(data, size, &image, &err);
    if (status != WEIR_OK) {
        if (err.message[0] == '\0' || err.status != status) {
            abort();
        }
        return 0;
    }
    static const struct weir_input input = {
        .c = 3, .h = 5, .w = 7, .std = {1, 1, 1}, .mean = {0, 0, 0}};
    float tensor[3 * 5 * 7];
    if (weir_image_to_tensor(&image, &input, tensor, NULL) != WEIR_OK) {
        abort();
    }
    for (size_t i = 0; i < sizeof tensor / sizeof tensor[0]; i++) {
        if (!(tensor[i] >= 0 && tensor[i] <= 1.001f)) {
            abort();
        }
    }
    if (weir_image_crop(&image, 0, 0, (image.width + 1) / 2, 1, &small, NULL) == WEIR_OK) {
        weir_image_fini(&small);
    }
    weir_image_fini(&image);
    return 0;
}
