/** From what a replay has counted to its report. */
#ifndef WEIR_SIM_MEASURE_H
#define WEIR_SIM_MEASURE_H

#include "sim/timeline.h"

/** Fill all of a report but what the driver adds. The texts live in the report's arena. */
void measure(const struct timeline *timeline, const struct weir_sched_queue *queues,
             int32_t n_queues, struct weir_sim_report *report);

#endif
