#include "predict/source.h"

#include "base/hash.h"
#include "predict/kinds.h"

#include <stdlib.h>
#include <string.h>

bool source_is_ours(const struct predict_spec *spec, const char *camera)
{
    const struct source_ops *ops = predict_ops_of(spec->source.kind);
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, camera);
    return ops->shares_itself || (hash >> 32) % (uint64_t)spec->n_replicas == (uint64_t)spec->rank;
}

bool source_frame_number(const char *file_name, int64_t *out)
{
    size_t n = strspn(file_name, "0123456789");
    if (n == 0 || n > 18 || (file_name[n] != '\0' && file_name[n] != '.')) {
        return false;
    }
    *out = strtoll(file_name, NULL, 10);
    return true;
}
