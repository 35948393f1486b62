#include "base/model_format.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

static const struct {
    const char *bytes;
    size_t n;
    uint64_t file_bytes;
    enum weir_model_format format;
} files[] = {
    {"", 0, 0, WEIR_MODEL_FORMAT_UNKNOWN},
    {"hello", 5, 5, WEIR_MODEL_FORMAT_UNKNOWN},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, (uint64_t)2 << 30, WEIR_MODEL_FORMAT_UNKNOWN},
    {"\x08\x00\0\0\0\0\0\0\0\0", 10, 100, WEIR_MODEL_FORMAT_UNKNOWN}, /* ir_version 0 */
    {"\x08\x07\x12\x04test", 8, 100, WEIR_MODEL_FORMAT_ONNX},         /* ir_version 7 */
    {"\x3a\x10gggggggggggggg", 16, 100, WEIR_MODEL_FORMAT_ONNX},      /* the graph first */
    {"\x10\0\0\0\0\0\0\0{\"a\":1}", 15, 100, WEIR_MODEL_FORMAT_WEIR},
    {"\x10\0\0\0\0\0\0\0{\"a\":1}", 15, 23, WEIR_MODEL_FORMAT_UNKNOWN}, /* header over the end */
    {"\x50\x4b\x03\x04", 4, 100, WEIR_MODEL_FORMAT_UNKNOWN},            /* a zip, as PyTorch's */
};

START_TEST(a_file_is_known_by_its_first_bytes)
{
    struct weir_error err = {0};
    enum weir_model_format is =
        weir_model_format_sniff(files[_i].bytes, files[_i].n, files[_i].file_bytes);
    ck_assert_msg(is == files[_i].format, "%d: %s", _i, weir_model_format_text(is));
    weir_status status =
        weir_model_format_check(files[_i].bytes, files[_i].n, files[_i].file_bytes, "m.bin", &err);
    ck_assert_int_eq(status == WEIR_OK, is != WEIR_MODEL_FORMAT_UNKNOWN);
    ck_assert(status == WEIR_OK || strncmp(err.message, "m.bin: neither", 14) == 0);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("model format", {a_file_is_known_by_its_first_bytes, WEIR_ARRAY_LEN(files)})
