/** Options of the stage "classify". */
#ifndef WEIR_ENDPOINT_STAGE_CLASSIFY_H
#define WEIR_ENDPOINT_STAGE_CLASSIFY_H

#include <stdint.h>

#define WEIR_STAGE_CLASSIFY_TOP_MAX 20

struct weir_stage_classify {
    int64_t top; /**< Labels recorded; 1: the likeliest alone. */
    double threshold;
    char *reject; /**< NULL: no label stands for "none". */
};

#endif
