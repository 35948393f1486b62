#include "base/syscall_filter.h"

#include "base/base64.h"
#include "base/macros.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers that no call had when this was written: GAP_FIRST to those that all architectures share. */
#define SHARED_FIRST 424
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define GAP_FIRST    335
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define GAP_FIRST    295
#endif

#define X32_BIT          0x40000000U /* x86-64's calls under other numbers */
#define PROGRAM_MAX      256
#define TIOCLINUX_NUMBER 0x541CU
#define NAMESPACE_FLAGS                                                                            \
    ((uint32_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET |         \
                CLONE_NEWUTS | CLONE_NEWCGROUP))

static const uint16_t denied[] = {
#define DENY(name) SYS_##name,
#include "base/denied_calls.def"
#undef DENY
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_sysfs,
    SYS_uselib,
    SYS_ustat,
#endif
};

/* Of processes of the same user. */
static const uint16_t denied_to_neighbours[] = {SYS_ptrace, SYS_process_vm_readv,
                                                SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp};

/* Numbers behind the last that was looked at, SYS_set_mempolicy_home_node, are not known: what a kernel
 * of tomorrow does by them nobody has judged. But for these, which C libraries use and which reach nothing
 * new: cachestat, fchmodat2, map_shadow_stack, futex_wake, futex_wait, futex_requeue, mseal. */
#define UNKNOWN_FIRST 451
static const uint16_t known_later[] = {451, 452, 453, 454, 455, 456, 462};

struct program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short n;
};

static void add(struct program *p, struct sock_filter instruction)
{
    if (p->n < PROGRAM_MAX) {
        p->code[p->n++] = instruction;
    }
}

static void load(struct program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void refuse(struct program *p, int errno_value)
{
    answer(p, SECCOMP_RET_ERRNO | (uint32_t)errno_value);
}

/* If what was loaded equals `value`, the next `n` instructions; else they are skipped. */
static void when(struct program *p, uint32_t value, uint8_t n)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n));
}

static void unless(struct program *p, uint32_t value, uint8_t n)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, n, 0));
}

/* The next `n` instructions if it is `value` or more; else they are skipped. */
static void when_at_least(struct program *p, uint32_t value, uint8_t n)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, n));
}

static void when_any_bit(struct program *p, uint32_t bits, uint8_t n)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, n));
}

/* The low half of an argument: both architectures are little-endian. */
static size_t argument(int i)
{
    return offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t);
}

static void deny_all(struct program *p, const uint16_t calls[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        when(p, calls[i], 1);
        refuse(p, EPERM);
    }
}

/* clone(flags), unshare(flags): no namespaces. The call's number is loaded again behind it. */
static void deny_namespaces(struct program *p, uint32_t call)
{
    when(p, call, 4);
    load(p, argument(0));
    when_any_bit(p, NAMESPACE_FLAGS, 1);
    refuse(p, EPERM);
    answer(p, SECCOMP_RET_ALLOW);
}

/* mknod(…, mode): files and FIFOs, no devices. */
static void deny_devices(struct program *p, uint32_t call, int i_mode)
{
    when(p, call, 7);
    load(p, argument(i_mode));
    add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, S_IFMT));
    when(p, S_IFBLK, 1);
    refuse(p, EPERM);
    when(p, S_IFCHR, 1);
    refuse(p, EPERM);
    answer(p, SECCOMP_RET_ALLOW);
}

/* Pushing input into a terminal; leaving the project of a folder, and with it its disk quota: by its
 * number, or by the flag that what is made in it is of it. */
static void deny_ioctls(struct program *p)
{
    static const uint32_t requests[] = {TIOCSTI, TIOCLINUX_NUMBER, (uint32_t)FS_IOC_FSSETXATTR,
                                        (uint32_t)FS_IOC_SETFLAGS, (uint32_t)FS_IOC32_SETFLAGS};
    uint8_t n = WEIR_ARRAY_LEN(requests);
    when(p, SYS_ioctl, (uint8_t)(2 * n + 2));
    load(p, argument(1));
    for (uint8_t i = 0; i < n; i++) {
        when(p, requests[i], 1);
        refuse(p, EPERM);
    }
    answer(p, SECCOMP_RET_ALLOW);
}

/* Said to be missing, so that C libraries fall back to what they did before. */
static void deny_unknown(struct program *p)
{
    uint8_t n = WEIR_ARRAY_LEN(known_later);
    when_at_least(p, GAP_FIRST, 2);
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SHARED_FIRST, 1, 0));
    refuse(p, ENOSYS);
    when_at_least(p, UNKNOWN_FIRST, (uint8_t)(n + 1));
    for (uint8_t i = 0; i < n; i++) {
        unless(p, known_later[i], (uint8_t)(n - i));
    }
    refuse(p, ENOSYS);
}

static void deny_sockets(struct program *p, uint32_t call)
{
    static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    uint8_t n = WEIR_ARRAY_LEN(families);
    when(p, call, (uint8_t)(n + 3));
    load(p, argument(0));
    for (uint8_t i = 0; i < n; i++) {
        unless(p, families[i], (uint8_t)(n - i)); /* to the last one below */
    }
    refuse(p, EAFNOSUPPORT);
    answer(p, SECCOMP_RET_ALLOW);
}

#ifdef ARCHITECTURE
static void assemble(struct program *p, bool is_alone)
{
    load(p, offsetof(struct seccomp_data, arch));
    unless(p, ARCHITECTURE, 1);
    refuse(p, EPERM);
    load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    refuse(p, EPERM);
#endif
    deny_unknown(p);
    deny_all(p, denied, WEIR_ARRAY_LEN(denied));
    if (!is_alone) {
        deny_all(p, denied_to_neighbours, WEIR_ARRAY_LEN(denied_to_neighbours));
    }
    when(p, SYS_clone3, 1);
    refuse(p, ENOSYS);
    deny_namespaces(p, SYS_clone);
    deny_namespaces(p, SYS_unshare);
#ifdef SYS_mknod
    deny_devices(p, SYS_mknod, 1);
#endif
    deny_devices(p, SYS_mknodat, 2);
    deny_ioctls(p);
    deny_sockets(p, SYS_socket);
    deny_sockets(p, SYS_socketpair);
    answer(p, SECCOMP_RET_ALLOW);
}
#endif

#ifdef ARCHITECTURE
static int install(struct program *program)
{
    struct sock_fprog filter = {.len = program->n, .filter = program->code};
    if (program->n == PROGRAM_MAX) {
        return E2BIG;
    }
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
}

/* The call's number is loaded; it is again where the call is another. */
static void allow(struct program *p, const struct weir_syscall_allowed *allowed)
{
    if (allowed->i_argument < 0) {
        when(p, allowed->call, 1);
        answer(p, SECCOMP_RET_ALLOW);
        return;
    }
    when(p, allowed->call, 7);
    load(p, argument(allowed->i_argument) + sizeof(uint32_t));
    when(p, 0, 4);
    load(p, argument(allowed->i_argument));
    add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, allowed->mask));
    when(p, allowed->value, 1);
    answer(p, SECCOMP_RET_ALLOW);
    refuse(p, EPERM);
}
#endif

int weir_syscall_filter_only(const struct weir_syscall_allowed *allowed, size_t n)
{
#ifdef ARCHITECTURE
    struct program program = {.n = 0};
    load(&program, offsetof(struct seccomp_data, arch));
    unless(&program, ARCHITECTURE, 1);
    refuse(&program, EPERM);
    load(&program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++) {
        allow(&program, &allowed[i]);
    }
    refuse(&program, EPERM); /* x86-64's calls under other numbers are among the others */
    return install(&program);
#else
    (void)allowed;
    (void)n;
    return ENOSYS;
#endif
}

int weir_syscall_filter_enter(bool is_alone)
{
#ifdef ARCHITECTURE
    struct program program = {.n = 0};
    assemble(&program, is_alone);
    return install(&program);
#else
    (void)is_alone;
    return ENOSYS;
#endif
}

char *weir_syscall_filter_text(bool is_alone, struct weir_arena *arena)
{
#ifdef ARCHITECTURE
    struct program program = {.n = 0};
    assemble(&program, is_alone);
    size_t len = program.n * sizeof program.code[0];
    return program.n < PROGRAM_MAX
               ? weir_base64_encode(program.code, len,
                                    weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(len)))
               : NULL;
#else
    (void)is_alone;
    (void)arena;
    return NULL;
#endif
}

bool weir_syscall_filter_is_here(void)
{
#ifdef ARCHITECTURE
    uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
#else
    return false;
#endif
}
