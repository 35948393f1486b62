/**
 * The part of NVML's public binary interface that Weir calls: names, numbers and layouts are
 * NVIDIA's. The library is loaded at run time (libnvidia-ml.so.1 of the driver), so nothing of it is
 * needed to build.
 */
#ifndef WEIR_DEVICE_NVML_ABI_H
#define WEIR_DEVICE_NVML_ABI_H

typedef int nvml_return;
typedef struct nvml_device_st *nvml_device;
typedef struct nvml_event_set_st *nvml_event_set;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
};

enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
    NVML_VOLATILE_ECC = 0,
    NVML_NVLINK_MAX_LINKS = 18,
    NVML_DEVICE_UUID_BYTES = 96,
    NVML_DEVICE_NAME_BYTES = 96,
};

#define NVML_EVENT_XID 0x8ULL

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3. */
struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes; /* ~0: not known */
    unsigned gpu_instance, compute_instance;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type, data; /* data: the XID */
    unsigned gpu_instance, compute_instance;
};

/* X(member, symbol, arguments): all return nvml_return. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *n))                                               \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, nvml_device *device))            \
    X(name, "nvmlDeviceGetName", (nvml_device device, char *name, unsigned size))                  \
    X(uuid, "nvmlDeviceGetUUID", (nvml_device device, char *uuid, unsigned size))                  \
    X(pci, "nvmlDeviceGetPciInfo_v3", (nvml_device device, struct nvml_pci_info * pci))            \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device device, struct nvml_memory * memory))        \
    X(temperature, "nvmlDeviceGetTemperature",                                                     \
      (nvml_device device, int sensor, unsigned *celsius))                                         \
    X(threshold, "nvmlDeviceGetTemperatureThreshold",                                              \
      (nvml_device device, int type, unsigned *celsius))                                           \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_device device, unsigned *milliwatts))                \
    X(utilization, "nvmlDeviceGetUtilizationRates",                                                \
      (nvml_device device, struct nvml_utilization * rates))                                       \
    X(ecc, "nvmlDeviceGetTotalEccErrors",                                                          \
      (nvml_device device, int type, int counter, unsigned long long *n))                          \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                        \
      (nvml_device device, unsigned *n, struct nvml_process *processes))                           \
    X(link_state, "nvmlDeviceGetNvLinkState", (nvml_device device, unsigned link, int *is_active)) \
    X(link_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2",                                            \
      (nvml_device device, unsigned link, struct nvml_pci_info *pci))                              \
    X(mig_mode, "nvmlDeviceGetMigMode", (nvml_device device, unsigned *now, unsigned *pending))    \
    X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", (nvml_device device, unsigned *n))              \
    X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex",                                         \
      (nvml_device device, unsigned index, nvml_device *slice))                                    \
    X(events, "nvmlEventSetCreate", (nvml_event_set * set))                                        \
    X(listen, "nvmlDeviceRegisterEvents",                                                          \
      (nvml_device device, unsigned long long types, nvml_event_set set))                          \
    X(next_event, "nvmlEventSetWait_v2",                                                           \
      (nvml_event_set set, struct nvml_event * event, unsigned timeout_ms))

#endif
