#include "agent/node/own_log.h"

#include "base/log.h"
#include "base/rotated_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void own_log_bound(const char *path, int64_t max_bytes)
{
    struct stat own, named;
    struct weir_error err;
    const struct rotated_file file = {.path = path, .max_bytes = max_bytes, .n_kept = OWN_LOG_KEPT};
    if (fstat(STDERR_FILENO, &own) != 0 || !S_ISREG(own.st_mode) || own.st_size < max_bytes ||
        stat(path, &named) != 0 || named.st_ino != own.st_ino || named.st_dev != own.st_dev) {
        return;
    }
    if (rotated_file_shift(&file, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "log_not_shifted", WEIR_KV_STR("error", err.message));
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        bool has_output = fstat(STDOUT_FILENO, &named) == 0 && named.st_ino == own.st_ino &&
                          named.st_dev == own.st_dev;
        (void)dup2(fd, STDERR_FILENO);
        if (has_output) {
            (void)dup2(fd, STDOUT_FILENO);
        }
        (void)close(fd);
    }
}
