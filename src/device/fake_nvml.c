/*
 * An NVML of the tests' own: the same interface, loaded the same way. Eight GPUs, as long as the
 * file that WEIR_FAKE_NVML names says nothing else. Its lines, read with every count of GPUs:
 *
 *     count N            so many GPUs
 *     heat I CELSIUS     temperature (limit 90; else 40)
 *     ecc I N            errors that could not be corrected
 *     xid I NUMBER       an event, once for each new line
 *     lost I             answers nothing but that it is lost
 *     mig I PROFILE N    N slices
 *     hang               the next call does not return
 *     crash              it ends its caller
 */
#include "nvml_abi.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS   16
#define SLICES 7
#define GIB    (1ULL << 30)

struct nvml_device_st {
    unsigned index;
    int slice; /* -1: the whole GPU */
};

struct nvml_event_set_st {
    int unused;
};

static struct gpu {
    struct nvml_device_st whole, slices[SLICES];
    unsigned celsius, n_slices;
    unsigned long long n_ecc, xid, told_xid;
    bool is_lost;
    char profile[16];
} gpus[GPUS];

static unsigned n_gpus;
static struct nvml_event_set_st the_set;

#define EXPORT __attribute__((visibility("default")))

static void read_line(const char *line)
{
    unsigned i, n;
    char profile[16];
    unsigned long long value;
    if (strncmp(line, "hang", 4) == 0) {
        for (;;) {
            (void)pause();
        }
    } else if (strncmp(line, "crash", 5) == 0) {
        (void)raise(SIGKILL);
    } else if (sscanf(line, "count %u", &n) == 1 && n <= GPUS) {
        n_gpus = n;
    } else if (sscanf(line, "heat %u %u", &i, &n) == 2 && i < GPUS) {
        gpus[i].celsius = n;
    } else if (sscanf(line, "ecc %u %llu", &i, &value) == 2 && i < GPUS) {
        gpus[i].n_ecc = value;
    } else if (sscanf(line, "xid %u %llu", &i, &value) == 2 && i < GPUS) {
        gpus[i].xid = value;
    } else if (sscanf(line, "mig %u %15s %u", &i, profile, &n) == 3 && i < GPUS && n <= SLICES) {
        memcpy(gpus[i].profile, profile, sizeof profile);
        gpus[i].n_slices = n;
    } else if (sscanf(line, "lost %u", &i) == 1 && i < GPUS) {
        gpus[i].is_lost = true;
    }
}

static void read_faults(void)
{
    const char *path = getenv("WEIR_FAKE_NVML");
    char line[128];
    n_gpus = 8;
    for (unsigned i = 0; i < GPUS; i++) {
        gpus[i].whole = (struct nvml_device_st){i, -1};
        gpus[i].celsius = 40;
        gpus[i].n_ecc = gpus[i].xid = gpus[i].n_slices = 0;
        gpus[i].is_lost = false;
        for (int k = 0; k < SLICES; k++) {
            gpus[i].slices[k] = (struct nvml_device_st){i, k};
        }
    }
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        read_line(line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static nvml_return state_of(nvml_device device)
{
    return gpus[device->index].is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

EXPORT nvml_return nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetCount_v2(unsigned *n)
{
    read_faults();
    *n = n_gpus;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    *device = &gpus[index].whole;
    return index < n_gpus ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

EXPORT nvml_return nvmlDeviceGetName(nvml_device device, char *name, unsigned size)
{
    const char *model = "NVIDIA H100 80GB HBM3";
    if (device->slice >= 0) {
        (void)snprintf(name, size, "%s MIG %s", model, gpus[device->index].profile);
    } else {
        (void)snprintf(name, size, "%s", model);
    }
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned size)
{
    if (device->slice >= 0) {
        (void)snprintf(uuid, size, "MIG-%08u-%d", device->index, device->slice);
    } else {
        (void)snprintf(uuid, size, "GPU-%08u", device->index);
    }
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *pci)
{
    *pci = (struct nvml_pci_info){.bus = device->index};
    (void)snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", device->index & 0xff);
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    memory->total = device->slice >= 0 ? 10 * GIB : 80 * GIB;
    memory->used = GIB * device->index;
    memory->free = memory->total - memory->used;
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius)
{
    *celsius = gpus[device->index].celsius;
    return sensor == NVML_TEMPERATURE_GPU ? state_of(device) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetTemperatureThreshold(nvml_device device, int type,
                                                     unsigned *celsius)
{
    *celsius = 90;
    return type == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? state_of(device)
                                                       : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts)
{
    *milliwatts = 312500;
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *rates)
{
    *rates = (struct nvml_utilization){.gpu = 10 * device->index};
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int counter,
                                               unsigned long long *n)
{
    *n = gpus[device->index].n_ecc;
    bool is_wanted = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counter == NVML_VOLATILE_ECC;
    return is_wanted ? state_of(device) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n,
                                                           struct nvml_process *processes)
{
    bool has_one = device->index == 1 && device->slice < 0;
    if (has_one && *n > 0) {
        processes[0] = (struct nvml_process){.pid = 4711, .used_bytes = GIB};
    }
    *n = has_one ? 1 : 0;
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, int *is_active)
{
    *is_active = device->index < 2; /* 0 and 1 are joined */
    return link == 0 ? state_of(device) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned link,
                                                       struct nvml_pci_info *pci)
{
    (void)link;
    return nvmlDeviceGetPciInfo_v3(&gpus[device->index ^ 1].whole, pci);
}

EXPORT nvml_return nvmlDeviceGetMigMode(nvml_device device, unsigned *now, unsigned *pending)
{
    *now = *pending = gpus[device->index].n_slices > 0;
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *n)
{
    *n = SLICES;
    return state_of(device);
}

EXPORT nvml_return nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index,
                                                       nvml_device *slice)
{
    *slice = &gpus[device->index].slices[index];
    return index < gpus[device->index].n_slices ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

EXPORT nvml_return nvmlEventSetCreate(nvml_event_set *set)
{
    *set = &the_set;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types,
                                            nvml_event_set set)
{
    (void)device;
    return types == NVML_EVENT_XID && set == &the_set ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event,
                                       unsigned timeout_ms)
{
    (void)set;
    (void)timeout_ms;
    for (unsigned i = 0; i < n_gpus; i++) {
        if (gpus[i].xid != gpus[i].told_xid) {
            gpus[i].told_xid = gpus[i].xid;
            if (gpus[i].xid != 0) {
                *event = (struct nvml_event){&gpus[i].whole, NVML_EVENT_XID, gpus[i].xid, 0, 0};
                return NVML_SUCCESS;
            }
        }
    }
    return NVML_ERROR_TIMEOUT;
}
