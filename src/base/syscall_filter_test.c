/* Each call is made by a child behind the filter. What answers is the kernel: a call that is let
 * through fails of its empty arguments with something else than EPERM. */
#include "base/syscall_filter.h"

#include "base/base64.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The errno of the call in a filtered child; 0: it succeeded. */
static int errno_of(bool is_alone, long call, long a, long b, long c, long d)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            weir_syscall_filter_enter(is_alone) != 0) {
            _exit(255);
        }
        errno = 0;
        long rc = syscall(call, a, b, c, d, 0L, 0L);
        _exit(rc < 0 ? errno : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_ne(WEXITSTATUS(status), 255);
    return WEXITSTATUS(status);
}

START_TEST(every_call_of_the_list_is_refused)
{
    static const long calls[] = {
#define DENY(name) SYS_##name,
#include "base/denied_calls.def"
#undef DENY
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(calls); i++) {
        ck_assert_msg(errno_of(true, calls[i], -1, -1, -1, -1) == EPERM, "call %ld", calls[i]);
    }
}

END_TEST

/* The filter as the kernel runs it, read again: what it answers to a call. */
static uint32_t run_filter(const struct sock_filter *code, size_t n,
                           const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sock_filter *at = &code[i];
        switch (at->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)data + at->k, sizeof a);
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += a == at->k ? at->jt : at->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            i += a >= at->k ? at->jt : at->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            i += (a & at->k) != 0 ? at->jt : at->jf;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= at->k;
            break;
        case BPF_RET | BPF_K:
            return at->k;
        default:
            ck_abort_msg("instruction %zu is none that is known here", i);
        }
    }
    ck_abort_msg("the filter ends without an answer");
}

/* May a call of this number be made at all, with some arguments? By the tables of the kernel's calls. */
static bool is_known_number(uint32_t number)
{
#ifdef __x86_64__
    bool is_old = number <= 334;
#else
    bool is_old = number <= 294;
#endif
    return is_old || (number >= 424 && number <= 456) || number == 462;
}

/* Every number up to 2048, and random ones, with random arguments. */
START_TEST(a_number_that_is_not_known_is_refused)
{
    struct weir_rng rng;
    struct weir_arena arena;
    struct sock_filter code[512];
    size_t bytes;
    (void)test_seed(&rng);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(
        weir_base64_decode(weir_syscall_filter_text(true, &arena), code, sizeof code, &bytes),
        WEIR_OK);
    uint32_t arch = code[1].k;
    for (uint32_t i = 0; i < 100000; i++) {
        struct seccomp_data data = {.arch = arch};
        data.nr = (int)(i < 2048 ? i : weir_rng_u32(&rng) >> weir_rng_below(&rng, 24));
        for (int k = 0; k < 6; k++) {
            data.args[k] = weir_rng_u64(&rng) & (weir_rng_below(&rng, 2) == 0 ? 0xff : UINT64_MAX);
        }
        uint32_t answer = run_filter(code, bytes / sizeof code[0], &data);
        ck_assert_msg(is_known_number((uint32_t)data.nr) ||
                          (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO,
                      "call %u is let through", (unsigned)data.nr);
        data.arch ^= 1;
        ck_assert_int_eq(run_filter(code, bytes / sizeof code[0], &data) & SECCOMP_RET_ACTION_FULL,
                         SECCOMP_RET_ERRNO);
    }
    weir_arena_fini(&arena);
}

END_TEST

/* On this kernel, whichever it is: statmount, listmount, open_tree_attr, file_getattr, file_setattr. */
START_TEST(new_calls_are_said_to_be_missing)
{
    static const long calls[] = {457, 458, 467, 468, 469, 500, 1000};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(calls); i++) {
        ck_assert_int_eq(errno_of(true, calls[i], -1, 0, 0, 0), ENOSYS);
    }
    ck_assert_int_eq(errno_of(true, SYS_ioctl, -1, FS_IOC_SETFLAGS, 0, 0), EPERM);
    ck_assert_int_eq(errno_of(true, SYS_ioctl, -1, FS_IOC_FSSETXATTR, 0, 0), EPERM);
    ck_assert_int_eq(errno_of(true, SYS_ioctl, -1, FS_IOC_GETFLAGS, 0, 0), EBADF);
}

END_TEST

START_TEST(namespaces_are_refused_and_processes_and_threads_are_not)
{
    static const long flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWIPC,
                                 CLONE_NEWNET,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(flags); i++) {
        ck_assert_int_eq(errno_of(true, SYS_unshare, flags[i], 0, 0, 0), EPERM);
        ck_assert_int_eq(errno_of(true, SYS_clone, flags[i] | SIGCHLD, 0, 0, 0), EPERM);
    }
    ck_assert_int_eq(errno_of(true, SYS_clone3, 0, 0, 0, 0), ENOSYS);
    ck_assert_int_eq(errno_of(true, SYS_clone, SIGCHLD, 0, 0, 0), 0);
    ck_assert_int_eq(errno_of(true, SYS_unshare, CLONE_FILES, 0, 0, 0), 0);
}

END_TEST

START_TEST(sockets_of_ip_and_of_the_machine_are_all_there_are)
{
    static const int allowed[] = {AF_UNIX, AF_INET, AF_NETLINK};
    static const int refused[] = {AF_VSOCK, AF_ALG, AF_PACKET, AF_KEY, AF_TIPC, AF_BLUETOOTH};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(allowed); i++) {
        int type = allowed[i] == AF_NETLINK ? SOCK_RAW : SOCK_STREAM;
        ck_assert_int_eq(errno_of(true, SYS_socket, allowed[i], type, 0, 0), 0);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_int_eq(errno_of(true, SYS_socket, refused[i], SOCK_RAW, 0, 0), EAFNOSUPPORT);
    }
    ck_assert_int_eq(errno_of(true, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), EFAULT);
}

END_TEST

START_TEST(devices_are_not_made_and_terminals_not_typed_into)
{
    ck_assert_int_eq(
        errno_of(true, SYS_mknodat, AT_FDCWD, (long)"/nowhere/x", S_IFCHR | 0600, 0x103), EPERM);
    ck_assert_int_eq(
        errno_of(true, SYS_mknodat, AT_FDCWD, (long)"/nowhere/x", S_IFBLK | 0600, 0x103), EPERM);
    ck_assert_int_eq(errno_of(true, SYS_mknodat, AT_FDCWD, (long)"/nowhere/x", S_IFIFO | 0600, 0),
                     ENOENT);
    ck_assert_int_eq(errno_of(true, SYS_ioctl, 0, TIOCSTI, (long)"x", 0), EPERM);
    ck_assert_int_ne(errno_of(true, SYS_ioctl, -1, TCGETS, 0, 0), EPERM);
}

END_TEST

START_TEST(only_who_is_alone_may_trace)
{
    ck_assert_int_eq(errno_of(true, SYS_ptrace, 0x4206, 0x7ffffffe, 0, 0), ESRCH);
    ck_assert_int_eq(errno_of(false, SYS_ptrace, 0x4206, 0x7ffffffe, 0, 0), EPERM);
    ck_assert_int_ne(errno_of(true, SYS_process_vm_readv, 0x7ffffffe, 0, 0, 0), EPERM);
    ck_assert_int_eq(errno_of(false, SYS_process_vm_readv, 0x7ffffffe, 0, 0, 0), EPERM);
}

END_TEST

static void *nothing(void *argument)
{
    return argument;
}

START_TEST(threads_and_programs_start_behind_it)
{
    char *const argv[] = {"/bin/sh", "-c", "/bin/true && exit 7", NULL};
    int status, end = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pid_t child;
        bool is_good =
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && weir_syscall_filter_enter(true) == 0 &&
            pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0 &&
            posix_spawn(&child, argv[0], NULL, NULL, argv, NULL) == 0 &&
            waitpid(child, &end, 0) == child && WEXITSTATUS(end) == 7;
        _exit(is_good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

END_TEST

WEIR_TEST_MAIN("agent syscall filter", a_number_that_is_not_known_is_refused,
               new_calls_are_said_to_be_missing, every_call_of_the_list_is_refused,
               namespaces_are_refused_and_processes_and_threads_are_not,
               sockets_of_ip_and_of_the_machine_are_all_there_are,
               devices_are_not_made_and_terminals_not_typed_into, only_who_is_alone_may_trace,
               threads_and_programs_start_behind_it)
