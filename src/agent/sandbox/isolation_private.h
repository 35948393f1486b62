/** Isolation: the small files of control groups. */
#ifndef WEIR_AGENT_ISOLATION_PRIVATE_H
#define WEIR_AGENT_ISOLATION_PRIVATE_H

#include <stddef.h>

/** Write a whole small file of a control group; errno on failure, else 0. */
int isolation_write(const char *dir, const char *name, const char *text);

/** Read a small file, cut to fit; "" if it cannot be read. Returns `out`. */
char *isolation_read_path(const char *path, char *out, size_t size);

/** The same for the file `name` of a control group. */
char *isolation_read(const char *dir, const char *name, char *out, size_t size);

#endif
