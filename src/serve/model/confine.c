#include "confine.h"

#include "base/privileges.h"
#include "base/syscall_filter.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOBODY 65534

static void tell(const char *what, int errno_value)
{
    if (errno_value != 0) {
        (void)fprintf(stderr, CONFINE_LACKS "%s: %s\n", what, strerror(errno_value));
    }
}

/* Root makes them as it is; another user in a namespace of users, in which it is somebody. */
static int leave_network(void)
{
    const int spaces = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    return unshare(geteuid() == 0 ? spaces : spaces | CLONE_NEWUSER) == 0 ? 0 : errno;
}

/* Into a folder that is there no more: nothing can be opened in it, nor made. */
static int leave_folders(void)
{
    char folder[] = "/tmp/weir-inspect-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        return errno;
    }
    int reason = chdir(folder) == 0 && rmdir(folder) == 0 && chroot(".") == 0 ? 0 : errno;
    return reason;
}

void confine_enter(void)
{
    tell("network and mounts", leave_network());
    tell("folders", leave_folders());
    tell("user and capabilities", weir_privileges_drop(geteuid() == 0 ? NOBODY : 0, NOBODY));
    tell("system calls", weir_syscall_filter_enter(false));
    (void)prctl(PR_SET_DUMPABLE, 0);
}
