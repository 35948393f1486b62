/**
 * Least attained service in levels: of a queue's jobs of equal priority the one goes first that has
 * had less device time.
 *
 * How long a job will run is not known. Most jobs are short, and the longer one has run the longer
 * it is likely to go on. A job has level 0 until it has had the profile's service_base_ms of device
 * time, and a level more at each doubling, up to the last. Within a level, jobs go in order of
 * arrival; within the last one, the job goes first that has waited longest in all.
 *
 * A waiting job takes from a running one of a higher level, and within the last level from one that
 * has waited shorter by service_swap_ms. There is a price: what the victim has worked since its
 * checkpoint may be at most SERVICE_LOSS_MS and half of what the job waits for this time. If the
 * victim holds more devices than the job asks for, that half counts only as far as the job has
 * waited with its own devices. So mostly jobs go that have just saved their work.
 *
 * Sources: discretised least attained service, Gu et al., Tiresias, NSDI 2019;
 * foreground-background scheduling, Nuyens and Wierman, Performance Evaluation 65 (2008). Levels
 * that double instead of two, the last level's order, and the price are ours.
 */
#ifndef WEIR_SCHED_SERVICE_H
#define WEIR_SCHED_SERVICE_H

#include "sched/model/cluster.h"

#define SERVICE_LOSS_MS 180000

/**
 * The level of a job that has had so much device time: 0 to service_levels - 1. Always 0 if the
 * profile's service_base_ms is 0.
 */
int service_level_of(const struct cluster *cluster, int64_t served_ms);

/** A job's own level. */
int service_level(const struct cluster *cluster, int32_t job);

/** Negative if waiting job l goes before r because of service and waiting; 0: no difference. */
int service_compare(const struct cluster *cluster, int32_t l, int32_t r);

/**
 * Whether a waiting job that asks for so many thousandths of a device may take from a running one
 * of its queue and priority. Cost: the victim's tasks.
 */
bool service_may_take(const struct cluster *cluster, int32_t job, int64_t asks_milli,
                      int32_t victim);

/** Whether a job is still in the first of several levels. Most jobs end there. */
bool service_is_new(const struct cluster *cluster, int32_t job);

/** Whether `than` may take from every victim from which `job` may, if it asks for as much. */
bool service_is_no_easier(const struct cluster *cluster, int32_t than, int32_t job);

#endif
