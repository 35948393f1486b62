/* The sandbox, attacked from inside: a process that has entered it tries what a hostile stream would, and each attempt fails. */
#include "sandbox.h"

#include "base/test_main.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int pair[2];
static pid_t parent;

static bool open_file(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 || syscall(SYS_open, "/etc/passwd", O_RDONLY) >= 0 ||
           syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0) >= 0;
}

static bool make_file(void)
{
    return creat("/tmp/weir-sandbox-test", 0600) >= 0 || memfd_create("x", 0) >= 0 ||
           mkdir("/tmp/weir-sandbox-dir", 0700) == 0 || unlink("/tmp/weir-sandbox-no") == 0 ||
           errno != EPERM;
}

static bool make_socket(void)
{
    int fds[2];
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 ||
           socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0;
}

/* Through a socket that it was given. */
static bool name_an_address(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct iovec bytes = {"x", 1};
    const struct msghdr header = {
        .msg_name = (void *)&to, .msg_namelen = sizeof to, .msg_iov = &bytes, .msg_iovlen = 1};
    return connect(pair[1], (const struct sockaddr *)&to, sizeof to) == 0 || errno != EPERM ||
           bind(pair[1], (const struct sockaddr *)&to, sizeof to) == 0 || errno != EPERM ||
           sendto(pair[1], "x", 1, 0, (const struct sockaddr *)&to, sizeof to) >= 0 ||
           errno != EPERM || sendmsg(pair[1], &header, 0) >= 0 || errno != EPERM;
}

static bool touch_a_process(void)
{
    return ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0 || kill(parent, 0) == 0 ||
           syscall(SYS_tgkill, parent, parent, 0) == 0 || syscall(SYS_pidfd_open, parent, 0) >= 0 ||
           syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0) >= 0;
}

static bool start_a_program(void)
{
    char name[] = "/bin/true";
    char *const argv[] = {name, NULL};
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        _exit(0);
    }
    return child > 0 || syscall(SYS_fork) > 0 || execve(name, argv, NULL) == 0 || errno != EPERM;
}

static bool run_made_code(void)
{
    void *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return bytes == MAP_FAILED || mprotect(bytes, 4096, PROT_READ | PROT_EXEC) == 0 ||
           mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

static bool gain_rights(void)
{
    return syscall(SYS_setuid, 0) == 0 || syscall(SYS_unshare, 0x10000000) == 0 ||
           syscall(SYS_mount, "x", "/mnt", "tmpfs", 0, NULL) == 0 ||
           syscall(SYS_bpf, 0, NULL, 0) >= 0 || syscall(SYS_io_uring_setup, 1, NULL) >= 0 ||
           ioctl(pair[1], FIONBIO, &(int){1}) == 0;
}

static bool use_more_memory(void)
{
    return mmap(NULL, (size_t)2 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

/* And what it needs, it may. */
static bool cannot_work(void)
{
    char byte;
    void *bytes = malloc((size_t)64 << 20);
    bool can = bytes != NULL && send(pair[1], "x", 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1;
    free(bytes);
    return !can;
}

static const struct {
    const char *name;
    bool (*succeeds)(void);
} attacks[] = {{"open", open_file},          {"make a file", make_file},
               {"socket", make_socket},      {"address", name_an_address},
               {"process", touch_a_process}, {"program", start_a_program},
               {"code", run_made_code},      {"rights", gain_rights},
               {"memory", use_more_memory},  {"nothing to do", cannot_work}};

START_TEST(an_attack_from_inside_reaches_nothing)
{
    int status;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    ck_assert_int_eq(send(pair[0], "x", 1, 0), 1);
    parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        struct weir_error err;
        if (camera_sandbox_enter((uint64_t)1 << 30, &err) != WEIR_OK) {
            (void)fprintf(stderr, "%s\n", err.message);
            _exit(2);
        }
        _exit(attacks[_i].succeeds() ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x", attacks[_i].name,
                  (unsigned)status);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("camera_sandbox",
                     {an_attack_from_inside_reaches_nothing, WEIR_ARRAY_LEN(attacks)})
