/**
 * Given: the devices that the server gave a task, as its definition says them, and what the task is
 * told of them.
 *
 *     "accelerators": [{"idx", "id", "kind", "milli", "memory_bytes", "pci", "parent"}, …]
 *
 * A task with GPUs gets CUDA_VISIBLE_DEVICES, their UUIDs (of slices theirs), and one with any
 * device WEIR_DEVICES, their ids; of a part of a device also WEIR_DEVICE_SHARE and
 * WEIR_DEVICE_MEMORY, in bytes. It gets the device nodes of its own GPUs, and no others. A task
 * without devices gets none, and an empty CUDA_VISIBLE_DEVICES. Which nodes belong to a declared
 * device nobody knows: its task has all of the machine's accelerators.
 *
 * The server gives no device twice; the agent looks again before it starts a task, since the
 * processes of an attempt that the server has given up may not have ended yet.
 */
#ifndef WEIR_AGENT_GIVEN_H
#define WEIR_AGENT_GIVEN_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GIVEN_MAX   64
#define GIVEN_WHOLE 1000

/** Parts of devices, by index on this node. */
struct given {
    int64_t idx[GIVEN_MAX], milli[GIVEN_MAX];
    size_t n;
};

/** What a task's definition says; nothing if it says nothing that can be read. */
void given_read(const json_t *task, struct given *out);

/** Add another task's parts of the devices in `sum`. @return One of them is more than whole now. */
bool given_add(struct given *sum, const struct given *other);

/**
 * Turn "accelerators" of a task's definition into "env" and "devices", which the rest of the agent
 * goes by. Without "accelerators" nothing changes.
 * @param proc  "/proc"; another folder in tests.
 */
void given_apply(json_t *task, const char *proc);

#endif
