#include "agent/node/given.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES        512
#define INFORMATION_BYTES 4096
#define LIST_BYTES        (GIVEN_MAX * 100)

static const char *text_of(const json_t *device, const char *name)
{
    const char *text = json_string_value(json_object_get(device, name));
    return text != NULL ? text : "";
}

void given_read(const json_t *task, struct given *out)
{
    size_t i;
    const json_t *device;
    out->n = 0;
    json_array_foreach(json_object_get(task, "accelerators"), i, device)
    {
        if (out->n < GIVEN_MAX) {
            out->idx[out->n] = json_integer_value(json_object_get(device, "idx"));
            out->milli[out->n++] = json_integer_value(json_object_get(device, "milli"));
        }
    }
}

bool given_add(struct given *sum, const struct given *other)
{
    bool is_over = false;
    for (size_t i = 0; i < sum->n; i++) {
        for (size_t k = 0; k < other->n; k++) {
            sum->milli[i] += sum->idx[i] == other->idx[k] ? other->milli[k] : 0;
        }
        is_over = is_over || sum->milli[i] > GIVEN_WHOLE;
    }
    return is_over;
}

/* ---- device nodes ----------------------------------------------------------------------------- */

/* "Device Minor: 	 3" of the driver's file on the GPU at this address; -1: it is not there. */
static int minor_of(const char *proc, const char *pci)
{
    char path[PATH_BYTES], text[INFORMATION_BYTES], address[64];
    size_t len;
    /* NVML writes 00000000:3B:00.0, the driver's folders are called 0000:3b:00.0. */
    const char *colon = strchr(pci, ':');
    const char *from = colon != NULL && colon - pci > 4 ? colon - 4 : pci;
    (void)snprintf(address, sizeof address, "%s", from);
    for (char *at = address; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
        if (strchr("0123456789abcdef:.", *at) == NULL) {
            return -1;
        }
    }
    (void)snprintf(path, sizeof path, "%s/driver/nvidia/gpus/%s/information", proc, address);
    if (weir_file_read_into(path, text, sizeof text, &len, NULL) != WEIR_OK) {
        return -1;
    }
    const char *line = strstr(text, "Device Minor:");
    return line != NULL ? (int)strtol(line + sizeof "Device Minor:" - 1, NULL, 10) : -1;
}

/* The nodes of the task's GPUs; NULL: they are not known, and the task has all. */
static json_t *nodes_of(const json_t *devices, const char *proc)
{
    size_t i;
    const json_t *device;
    json_t *nodes = json_array();
    json_array_foreach(devices, i, device)
    {
        int minor = minor_of(proc, text_of(device, "pci"));
        if (minor < 0) {
            json_decref(nodes);
            return NULL;
        }
        json_array_append_new(nodes, json_sprintf("/dev/nvidia%d", minor));
        if (strcmp(text_of(device, "kind"), "mig") == 0) {
            json_array_append_new(nodes, json_string("/dev/nvidia-caps"));
        }
    }
    return nodes;
}

/* ---- variables -------------------------------------------------------------------------------- */

static void append(char *list, const char *id)
{
    size_t len = strlen(list);
    (void)snprintf(list + len, LIST_BYTES - len, "%s%s", len > 0 ? "," : "", id);
}

static void set_variables(json_t *env, const json_t *devices)
{
    size_t i;
    const json_t *device;
    char all[LIST_BYTES] = "", cuda[LIST_BYTES] = "";
    json_array_foreach(devices, i, device)
    {
        append(all, text_of(device, "id"));
        if (strcmp(text_of(device, "kind"), "declared") != 0) {
            append(cuda, text_of(device, "id"));
        }
    }
    json_object_set_new(env, "CUDA_VISIBLE_DEVICES", json_string(cuda));
    json_object_set_new(env, "WEIR_DEVICES", json_string(all));
    const json_t *first = json_array_get(devices, 0);
    int64_t milli = json_integer_value(json_object_get(first, "milli"));
    if (first != NULL && milli < GIVEN_WHOLE) {
        json_object_set_new(env, "WEIR_DEVICE_SHARE", json_sprintf("%g", (double)milli / 1000));
        json_object_set_new(env, "WEIR_DEVICE_MEMORY",
                            json_sprintf("%lld", (long long)json_integer_value(
                                                     json_object_get(first, "memory_bytes"))));
    }
}

void given_apply(json_t *task, const char *proc)
{
    const json_t *devices = json_object_get(task, "accelerators");
    json_t *env = json_object_get(task, "env");
    if (!json_is_array(devices)) {
        return;
    }
    if (env == NULL || json_is_null(env)) {
        env = json_object();
        json_object_set_new(task, "env", env);
    }
    set_variables(env, devices);
    json_t *nodes = nodes_of(devices, proc);
    if (nodes != NULL) {
        json_object_set_new(task, "devices", nodes);
    }
}
