#include "base/base64.h"

#include <sodium.h>
#include <string.h>

char *weir_base64_encode(const void *bytes, size_t len, char *out)
{
    return sodium_bin2base64(out, WEIR_BASE64_TEXT_BYTES(len), bytes, len,
                             sodium_base64_VARIANT_ORIGINAL);
}

weir_status weir_base64_decode(const char *text, void *out, size_t size, size_t *out_len)
{
    size_t len;
    if (sodium_base642bin(out, size, text, strlen(text), NULL, &len, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0) {
        return WEIR_ERR_INVALID;
    }
    *out_len = len;
    return WEIR_OK;
}
