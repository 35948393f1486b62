/** Privileges: what a task must not keep of what its supervisor has. */
#ifndef WEIR_BASE_PRIVILEGES_H
#define WEIR_BASE_PRIVILEGES_H

#include <sys/types.h>

/**
 * Give up, in this process and for whatever it executes, every capability (of all five sets) and
 * the ways to get one: from here on no program gains privileges by being executed, whatever its
 * owner, mode or file capabilities (no_new_privs). Memory may still be locked without limit where
 * it could be before: network hardware wants that, and the control group counts it.
 *
 * @param user   Become this user, with the group of the same number and `group` beside it; 0: stay
 *               the same.
 * @return 0, or the errno of the step that failed: the process must not go on then. Call it between
 *         fork and exec.
 */
int weir_privileges_drop(uid_t user, gid_t group);

/** `group` alone beside the process's own group. 0 or errno. As root. */
int weir_privileges_set_group(gid_t group);

/** Only no_new_privs. 0 or errno. */
int weir_privileges_freeze(void);

#endif
