/**
 * Privacy of the state folder: it holds faces, tokens and what jobs were told, so it is its owner's
 * alone. New files are private by the umask of their writer; this closes what was made
 * otherwise: by an earlier version, by cp, by a restore from elsewhere.
 *
 * The folder itself is closed before anything is read in it, which closes the way to all that is
 * below; then a thread of its own closes file by file, since there may be many.
 */
#ifndef WEIR_SERVER_PRIVACY_H
#define WEIR_SERVER_PRIVACY_H

#include "base/status.h"

struct privacy;

/**
 * Close the folder `path` to others (0700).
 * @return DENIED if it is another user's.
 */
weir_status privacy_close_folder(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Close all that is below `path`: what a mode grants to group and others is taken, links are not
 * followed; other file systems, what a group of its own was given, and the /tmp folders of jobs
 * (agent/jobs) are left alone. At the end one warning says how many files were
 * open to others, with an example. What lies in the folder itself is closed on return. Text is
 * copied.
 */
weir_status privacy_start(const char *path, struct privacy **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Wait for the end of it; no further file is looked at. NULL is accepted. */
void privacy_stop(struct privacy *privacy);

#endif
