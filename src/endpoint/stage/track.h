/** Options of the stage "track". */
#ifndef WEIR_ENDPOINT_STAGE_TRACK_H
#define WEIR_ENDPOINT_STAGE_TRACK_H

#include <stdbool.h>
#include <stdint.h>

struct weir_stage_track {
    int64_t gone_ms; /**< Not seen for so long, a passage is over. */
    int64_t n, m;
    double accept, deny;
    bool visitors; /**< Unknown people are remembered. */
};

#endif
