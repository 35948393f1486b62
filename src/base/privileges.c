#include "base/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bounding set, as far as this process may: what is not in it no program can gain. */
static int drop_bounding_set(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
            return errno == EPERM ? 0 : errno; /* not root: there is nothing to give up */
        }
    }
    return 0;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 ? 0 : errno;
}

int weir_privileges_freeze(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

/* By the bare calls: the C library's would tell other threads, and this process was made without
 * it (namespaces.h) from one that may have had some. */
int weir_privileges_set_group(gid_t group)
{
    return syscall(SYS_setgroups, 1, &group) == 0 ? 0 : errno;
}

static int become(uid_t user)
{
    return syscall(SYS_setresgid, user, user, user) == 0 &&
                   syscall(SYS_setresuid, user, user, user) == 0
               ? 0
               : errno;
}

int weir_privileges_drop(uid_t user, gid_t group)
{
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
    int errno_value = drop_bounding_set();
    if (errno_value == 0 && user != 0) {
        errno_value = weir_privileges_set_group(group);
        errno_value = errno_value != 0 ? errno_value : become(user);
    }
    errno_value = errno_value != 0 ? errno_value : drop_capabilities();
    return errno_value != 0 ? errno_value : weir_privileges_freeze();
}
