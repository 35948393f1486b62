/**
 * Sandbox: what weir-camera gives up before it reads a byte of a stranger's stream. A fault in a decoder then reaches nothing: no file by
 * name, no address, no other process. It keeps its memory, its clock, and the descriptors that it has or is given.
 */
#ifndef WEIR_CAMERA_SANDBOX_H
#define WEIR_CAMERA_SANDBOX_H

#include "base/status.h"

/**
 * Gives up every capability and the ways to get one, becomes nobody if it is root, bounds its memory, and allows itself no more than the system
 * calls of the list in sandbox.c: no open, socket, connect, bind, execve, fork, ptrace, kill. For the rest of the process's life. Call it
 * while there is one thread.
 *
 * @param memory_bytes  That it may have beyond what it has now.
 * @return IO, UNSUPPORTED: a step has failed; the process must not go on.
 */
weir_status camera_sandbox_enter(uint64_t memory_bytes, struct weir_error *err) WEIR_MUST_CHECK;

#endif
