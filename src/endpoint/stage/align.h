/** Options of the stage "align". */
#ifndef WEIR_ENDPOINT_STAGE_ALIGN_H
#define WEIR_ENDPOINT_STAGE_ALIGN_H

struct weir_stage_align {
    char *by;                        /**< "points" or "box". */
    double left, top, right, bottom; /**< Where the box lies in the cut, by the box. */
};

#endif
