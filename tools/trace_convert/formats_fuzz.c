/* The first byte chooses the format, "0" the first. */
#include "sim/import_fuzz.h"
#include "trace_convert/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = size > 0 ? (size_t)(data[0] - '0') : convert_n_formats;
    return n < convert_n_formats ? import_fuzz(convert_formats[n], data + 1, size - 1) : 0;
}
