/**
 * Small tasks: those that ask for less than one CPU have room of their own on each node, beside its CPUs.
 *
 * The planner knows one amount for each node. It gets the room only as far as no task that is not small could take
 * it: tasks of whole CPUs never can, others (1.25 CPUs) where their parts add up.
 */
#ifndef WEIR_CONTROL_SMALL_H
#define WEIR_CONTROL_SMALL_H

#include <stddef.h>
#include <stdint.h>

/** A task that asks for less of a CPU is small. */
#define CONTROL_SMALL_MILLIS 1000

/** What a node has for small tasks beside its CPUs. Less than one: no task of whole CPUs gets it. */
#define CONTROL_SMALL_ROOM_MILLIS 500

/** One node, in thousandths of a CPU. */
struct small_node {
    int64_t own;   /**< Its CPUs. */
    int64_t small; /**< What its small tasks have. */
    int64_t large; /**< What its others have. */
};

/** What waits for a node. */
struct small_waits {
    int64_t small; /**< What small tasks ask for together. */
    /** What each of the others asks for, the least first; equal ones once. */
    const int64_t *large;
    size_t n_large;
};

/**
 * The room that the node has now beside its CPUs: never more than CONTROL_SMALL_ROOM_MILLIS, never less than what
 * of it small tasks have. Whatever of what waits is placed within own + room, what is not small stays within
 * own. Where a task that waits and is no multiple of a CPU could go on the node, small ones do with what is free of
 * its own until it is there. Pure.
 */
int64_t control_small_room(const struct small_node *node, const struct small_waits *waits);

#endif
