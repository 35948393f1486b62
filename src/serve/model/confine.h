/**
 * Confine: what a process gives up before it reads a stranger's model file. A fault in a parser, or in a
 * library that runs models, then reaches nothing: no file by name, no network, no right of root.
 */
#ifndef WEIR_SERVE_CONFINE_H
#define WEIR_SERVE_CONFINE_H

/**
 * Leaves the network, the mounts and the folders of the machine; becomes a user whom nothing belongs to,
 * without any capability; and denies itself the system calls that tasks are denied. For the rest of the
 * process's life: what it needs must be open. Call it while there is one thread.
 *
 * What cannot be had here (a kernel without such a filter, a user who may make no namespaces) is said on
 * stderr, in a line that begins with CONFINE_LACKS, and the process goes on.
 */
void confine_enter(void);

#define CONFINE_LACKS "not confined: "

#endif
