/**
 * Paths as texts: what they say without a look at the disk. "//", "/./" and a "/" at the end mean
 * nothing, as to the kernel. Pure; links matter when the path is opened.
 */
#ifndef WEIR_BASE_PATH_H
#define WEIR_BASE_PATH_H

#include <stdbool.h>

/**
 * What of `path` lies below the folder `dir`: "" if it is that folder, NULL if it is neither that nor
 * below it. Points into `path`; does not begin with "/" or "./". Neither may have ".." as a part:
 * then the texts say nothing of where they lead.
 */
const char *weir_path_below(const char *path, const char *dir);

/** Is ".." a part of it? */
bool weir_path_has_parent(const char *path);

/** Is what is called so none of the files that people put into a folder? A name that begins with ".", or
 *  what Windows, macOS and network storages leave everywhere: Thumbs.db, desktop.ini, @eaDir and their like. */
bool weir_name_is_hidden(const char *name);

#endif
