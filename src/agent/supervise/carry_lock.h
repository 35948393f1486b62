/** Locks of a folder that is carried: files beside it, which the last user removes with it. */
#ifndef WEIR_AGENT_CARRY_LOCK_H
#define WEIR_AGENT_CARRY_LOCK_H

#include <stdbool.h>

#define CARRY_LOCK ".lock" /* while something is fetched or brought */
#define CARRY_USED ".used" /* shared by the supervisors of the tasks that use it */

/** Open FOLDER<name>, made if it is missing, and lock it: `how` as of flock(2). -1: errno, EWOULDBLOCK with LOCK_NB.
 *  What is locked is the file that has the name then. */
int carry_lock(const char *folder, const char *name, int how);

/** Is nobody but this descriptor's holder using the folder? Then it alone is, until carry_lock_share. */
bool carry_lock_is_alone(int used_fd);
void carry_lock_share(int used_fd);

#endif
