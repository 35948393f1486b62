/** Kept: folders in AGENT/state that outlive the tasks that use them, until nobody has used them for a while. Beside each
 *  lies FOLDER.used, locked by its users (agent/supervise/carry_lock.h); its time says when a use last began. */
#ifndef WEIR_AGENT_KEPT_H
#define WEIR_AGENT_KEPT_H

#include "base/status.h"

#include <stdint.h>

/** Use it until this process ends. Its parent is there, itself it need not be. @return IO. */
weir_status kept_use(const char *folder, struct weir_error *err) WEIR_MUST_CHECK;

/** Remove the folders in `parent` that nobody uses, if their last use began, and the last thing in them was written, longer
 *  ago than that. */
void kept_sweep(const char *parent, int64_t unused_s);

#endif
