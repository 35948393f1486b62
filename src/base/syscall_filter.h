/**
 * System-call filter of tasks (seccomp): calls that training programs, MPI and Python do without,
 * and that attacks on a kernel begin with, fail with EPERM. What is denied is in denied_calls.def.
 *
 * Beside that list: new namespaces (clone, unshare; clone3 is said to be missing, so that the C
 * library falls back to clone, whose flags can be looked at), device files, sockets other than of
 * IP, of the machine itself and of netlink, pushing input into a terminal, leaving the project of a
 * folder (disk_quota.h), and every call of another architecture. A number that no call had when this
 * was written (statmount, listmount, open_tree_attr, file_setattr and all later ones) fails with ENOSYS.
 */
#ifndef WEIR_BASE_SYSCALL_FILTER_H
#define WEIR_BASE_SYSCALL_FILTER_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Filter this process and all that it starts; it cannot be undone. After no_new_privs.
 * @param is_alone  It sees its own job alone (namespaces.h): it may trace its own processes, for
 *                  debuggers and MPI. Else that is denied, because others have the same user.
 * @return 0, or the errno: ENOSYS where the kernel or the architecture has no such filter.
 */
int weir_syscall_filter_enter(bool is_alone);

/** A call that stays allowed: always, or if an argument is right: (argument & mask) == value, in all its 64 bits. */
struct weir_syscall_allowed {
    uint16_t call;
    int8_t i_argument; /**< -1: whatever its arguments. */
    uint32_t mask, value;
};

/**
 * Filter this process to these calls alone: any other fails with EPERM. It cannot be undone. After no_new_privs.
 * @return 0, or the errno: E2BIG; ENOSYS where the kernel or the architecture has no such filter.
 */
int weir_syscall_filter_only(const struct weir_syscall_allowed *allowed, size_t n);

/** weir_syscall_filter_enter's as the kernel takes it (an array of struct sock_filter), in base64, for a program
 *  that enters it in a process of its own. In the arena; NULL where there is none. */
char *weir_syscall_filter_text(bool is_alone, struct weir_arena *arena);

/** Would it work here? Any process. */
bool weir_syscall_filter_is_here(void);

#endif
