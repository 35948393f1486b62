/** Open: a file to read, that may be given by a descriptor. */
#ifndef WEIR_BASE_OPEN_H
#define WEIR_BASE_OPEN_H

/**
 * Opens a file to read: closed on exec, and not blocking, so that a named pipe is not waited for. A path
 * /dev/fd/N gives that descriptor again: so a process that has given up its rights (serve/model/confine.h)
 * reads what it opened before. Its place in the file is shared.
 * @return The descriptor; -1 and errno.
 */
int weir_open_read(const char *path);

#endif
