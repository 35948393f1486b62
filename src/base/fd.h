/** A descriptor that closes itself at the end of its scope: WEIR_AUTO(weir_fd_auto_close) int fd = open(…). */
#ifndef WEIR_BASE_FD_H
#define WEIR_BASE_FD_H

#include <unistd.h>

/** Close it, unless it is negative. */
static inline void weir_fd_auto_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
}

#endif
