#include "sandbox.h"

#include "base/privileges.h"
#include "base/syscall_filter.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY    65534
#define FILES_MAX 16

#define ALWAYS(name)                                                                               \
    {                                                                                              \
        SYS_##name, -1, 0, 0                                                                       \
    }

static const struct weir_syscall_allowed allowed[] = {
    ALWAYS(read),
    ALWAYS(write),
    ALWAYS(close),
    ALWAYS(lseek),
    ALWAYS(pread64),
#ifdef SYS_poll
    ALWAYS(poll),
#endif
    ALWAYS(ppoll),
    ALWAYS(recvfrom),
    ALWAYS(recvmsg),
    {SYS_sendto, 4, UINT32_MAX, 0}, /* no address may be named */
    ALWAYS(getsockopt),
    ALWAYS(setsockopt),
    ALWAYS(getsockname),
    ALWAYS(getpeername),
    ALWAYS(shutdown),
    {SYS_ioctl, 1, 0xff00, 'V' << 8}, /* cameras at the machine alone */
    {SYS_mmap, 2, PROT_EXEC, 0},
    {SYS_mprotect, 2, PROT_EXEC, 0},
    ALWAYS(munmap),
    ALWAYS(mremap),
    ALWAYS(madvise),
    ALWAYS(brk),
    ALWAYS(futex),
    ALWAYS(clock_gettime),
    ALWAYS(clock_nanosleep),
    ALWAYS(nanosleep),
    ALWAYS(getrandom),
    ALWAYS(getpid),
    ALWAYS(gettid),
    ALWAYS(getrusage),
    ALWAYS(sched_yield),
    ALWAYS(sched_getaffinity),
    ALWAYS(rt_sigaction),
    ALWAYS(rt_sigprocmask),
    ALWAYS(rt_sigreturn),
    ALWAYS(sigaltstack),
    ALWAYS(restart_syscall),
    ALWAYS(exit),
    ALWAYS(exit_group),
};

/* What the process has mapped: of which a sanitizer's part is larger than any machine. */
static uint64_t mapped_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%llu", &pages) != 1) { // NOLINT(cert-err34-c): the kernel's own number
            pages = 0;
        }
        (void)fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int limit(uint64_t memory_bytes)
{
    uint64_t all = mapped_bytes() + memory_bytes;
    const struct rlimit memory = {all, all}, files = {FILES_MAX, FILES_MAX}, none = {0, 0};
    return setrlimit(RLIMIT_AS, &memory) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0 &&
                   setrlimit(RLIMIT_CORE, &none) == 0
               ? 0
               : errno;
}

/* Root becomes nobody, unless it is root of a namespace in which there is nobody else: then it keeps its name, and no right. */
static int drop_rights(void)
{
    int why = weir_privileges_drop(geteuid() == 0 ? NOBODY : 0, NOBODY);
    return why == EINVAL || why == EPERM ? weir_privileges_drop(0, 0) : why;
}

weir_status camera_sandbox_enter(uint64_t memory_bytes, struct weir_error *err)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int why = limit(memory_bytes);
    why = why != 0 ? why : drop_rights();
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has lost it */
    why = why != 0 ? why : weir_syscall_filter_only(allowed, sizeof allowed / sizeof allowed[0]);
    return why == 0 ? WEIR_OK
                    : weir_error_set_errno(err, why,
                                           "weir-camera cannot give up its rights on this kernel");
}
