#include "sim/import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return import_fuzz(&weir_sim_csv, data, size);
}
