/** Small tasks: those that ask for less than one CPU have room of their own on each node, beside its CPUs. */
#ifndef WEIR_CONTROL_SMALL_H
#define WEIR_CONTROL_SMALL_H

/** A task that asks for less of a CPU is small. */
#define CONTROL_SMALL_MILLIS 1000

/** What a node has for small tasks beside its CPUs. Less than one: no task of whole CPUs gets it. */
#define CONTROL_SMALL_ROOM_MILLIS 500

#endif
