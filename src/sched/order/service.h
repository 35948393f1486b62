/**
 * Who has had how much: least attained service in levels. Nobody knows how long a job will run, but
 * most are short, and the longer one has run the longer it is likely to go on. So of a queue's jobs
 * of equal priority the one goes first that has had less: level 0 until it has had the profile's
 * service_base_ms of device time, then a level more at each doubling, up to the last. Within a
 * level order is that of arrival; within the last one, whoever has waited longest in all.
 *
 * A waiting job takes from a running one of a higher level, and within the last level from one that
 * has waited shorter by service_swap_ms. It does not do so at any price: what the victim has worked
 * since its checkpoint may be at most SERVICE_LOSS_MS and half of what the job waits for this time;
 * of that half, if the victim holds more devices than the job asks for, only as much of their time
 * as the job has waited with its own. So mostly they go who have just saved their work.
 *
 * Sources: discretised least attained service, Gu et al., Tiresias, NSDI 2019;
 * foreground-background scheduling, Nuyens and Wierman, Performance Evaluation 65 (2008). Levels
 * that double instead of two, the last level's order and the price are ours.
 */
#ifndef WEIR_SCHED_SERVICE_H
#define WEIR_SCHED_SERVICE_H

#include "sched/model/cluster.h"

#define SERVICE_LOSS_MS 180000

/** The level of a job that has had so much device time: 0 up to service_levels - 1; always 0 if the
 *  profile's service_base_ms is 0. */
int service_level_of(const struct cluster *cluster, int64_t served_ms);

/** A job's own level. */
int service_level(const struct cluster *cluster, int32_t job);

/** Negative if waiting job l goes before r for what they have had and waited; 0: no difference. */
int service_compare(const struct cluster *cluster, int32_t l, int32_t r);

/** Whether a waiting job that asks for so many thousandths of a device may take from a running one
 *  of its queue and priority. Cost: the victim's tasks. */
bool service_may_take(const struct cluster *cluster, int32_t job, int64_t asks_milli,
                      int32_t victim);

/** Whether a job is still in the first level, where there are others: most end there. */
bool service_is_new(const struct cluster *cluster, int32_t job);

/** Whether what `job` may take from anyone, `than` may take as well, if it asks for as much. */
bool service_is_no_easier(const struct cluster *cluster, int32_t than, int32_t job);

#endif
