/**
 * A /dev of a sandbox's own: null, zero, full, random, urandom, tty, terminals that nobody else sees,
 * network adapters (/dev/infiniband), and the device nodes that its task was given. All others of
 * the machine are not there, and none can be made.
 *
 * A task to which nobody gave devices by name has the machine's accelerators, all of them: then
 * nothing but its program's manners keeps it from using them.
 */
#ifndef WEIR_AGENT_SANDBOX_DEV_H
#define WEIR_AGENT_SANDBOX_DEV_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Build it and mount it on /dev of this process's mount namespace.
 * @param devices  n paths "/dev/…"; NULL: all accelerators.
 * @return 0, or the errno of the step that failed. A node that is not on this machine is left out.
 */
int sandbox_dev_mount(const char *const devices[], size_t n);

/** Make /sys read-only in this process's mount namespace, because where the agent is not root its
 *  control groups are its tasks' user's. @return 0 or the errno. */
int sandbox_dev_close_sys(void);

/** Is it a path below /dev, without ".." and of at most 64 bytes? */
bool sandbox_dev_is_node(const char *path);

#endif
