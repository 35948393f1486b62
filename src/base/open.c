#include "base/open.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTORS "/dev/fd/"

int weir_open_read(const char *path)
{
    if (strncmp(path, DESCRIPTORS, sizeof DESCRIPTORS - 1) == 0) {
        char *end;
        long fd = strtol(path + sizeof DESCRIPTORS - 1, &end, 10);
        if (*end == '\0' && fd >= 0 && fd < 1 << 20) {
            return fcntl((int)fd, F_DUPFD_CLOEXEC, 0);
        }
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}
