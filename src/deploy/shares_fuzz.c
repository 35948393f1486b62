/* Any text as --traffic: refused with a sentence, or shares that sum to all and are read again the
 * same. */
#include "deploy/shares.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t versions[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
static const struct weir_share_alias aliases[] = {{"stable", 3}, {"canary", 4}};
static const struct weir_share_model model = {"m", versions, 18, aliases, 2};

static void check(const struct weir_shares *shares)
{
    int64_t sum = 0;
    struct weir_shares again;
    for (size_t i = 0; i < shares->n; i++) {
        sum += shares->items[i].ppm;
        if (shares->items[i].ppm <= 0 ||
            (i > 0 && shares->items[i].version <= shares->items[i - 1].version)) {
            abort();
        }
    }
    json_t *json = weir_shares_to_json(shares);
    if (sum != WEIR_SHARES_PPM ||
        weir_shares_read(&model, json, "again", &again, NULL) != WEIR_OK || again.n != shares->n ||
        memcmp(again.items, shares->items, shares->n * sizeof *shares->items) != 0) {
        abort();
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error err = {0};
    struct weir_shares shares;
    json_t *value = size > 0 && data[0] == '[' ? json_loadb((const char *)data, size, 0, NULL)
                                               : json_stringn((const char *)data, size);
    if (value == NULL) {
        return 0;
    }
    if (weir_shares_read(&model, value, "$.traffic", &shares, &err) == WEIR_OK) {
        check(&shares);
    } else if (err.message[0] == '\0') {
        abort();
    }
    json_decref(value);
    return 0;
}
