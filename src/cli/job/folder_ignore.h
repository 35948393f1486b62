/** One .gitignore among several: what it says of a path. */
#ifndef WEIR_CLI_FOLDER_IGNORE_H
#define WEIR_CLI_FOLDER_IGNORE_H

#include <stdbool.h>

enum folder_verdict { FOLDER_NOT_SAID, FOLDER_KEPT, FOLDER_IGNORED };

/** By the last of its lines that fits. `path` is as seen from the file's folder. */
enum folder_verdict folder_ignore_verdict(const char *lines, const char *path, bool is_dir);

#endif
