#include "comm/core/host.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long long namespace_id(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (unsigned long long)info.st_ino : 0;
}

void comm_host_id(char out[COMM_HOST_ID_BYTES])
{
    char boot_id[BOOT_ID_BYTES];
    address_boot_id(boot_id);
    (void)snprintf(out, COMM_HOST_ID_BYTES, "%s user:%llu pid:%llu uid:%u", boot_id,
                   namespace_id("/proc/self/ns/user"), namespace_id("/proc/self/ns/pid"),
                   (unsigned)geteuid());
}

int comm_n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
