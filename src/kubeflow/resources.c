/* What a container asks for: requests and limits, by the names that Kubernetes has for them. */
#include "kubeflow/draft.h"
#include "kubeflow/quantity.h"

#include <inttypes.h>
#include <string.h>

#define GPUS_MAX     64 /* framework/request.h */
#define CPUS_MAX     4096
#define BYTES_MAX    ((int64_t)1 << 50)
#define MEMORY_LEAST ((int64_t)1 << 20)

/* What is said of one resource. */
struct amount {
    struct kubeflow_place request, limit;
    int64_t request_milli, limit_milli; /* -1: not said */
};

struct asking {
    struct kubeflow_reading *reading;
    json_t *spec;
    json_t *accelerators; /* "resources" of the specification */
};

static weir_status read_one(struct kubeflow_reading *reading, struct kubeflow_place at,
                            int64_t *out)
{
    *out = -1;
    kubeflow_mark(reading, at);
    return !kubeflow_is_there(at) || kubeflow_quantity(at.value, out)
               ? WEIR_OK
               : kubeflow_wrong(reading, at, "a quantity as 500m, 2 or 1.5Gi");
}

/* ---- each resource -------------------------------------------------------------------------------- */

/* A request is kept, and what others leave may be used beyond it. */
static weir_status take_cpu(struct asking *asking, const struct amount *amount)
{
    bool has_request = amount->request_milli >= 0;
    int64_t milli = has_request ? amount->request_milli : amount->limit_milli;
    if (milli > CPUS_MAX * 1000) {
        return kubeflow_wrong(asking->reading, has_request ? amount->request : amount->limit,
                              "at most 4096 CPUs");
    }
    if (has_request && amount->limit_milli >= 0 && amount->limit_milli != milli) {
        kubeflow_remark(asking->reading, amount->limit,
                        "the request is kept for a task, and of what others leave it may use more");
    }
    json_object_set_new(asking->spec, "cpus", weir_json_milli(milli));
    return WEIR_OK;
}

/* The most is kept: a task that took more than its request would be one that others pay for. */
static weir_status take_bytes(struct asking *asking, const struct amount *amount,
                              const char *member, const char *kept)
{
    bool has_limit = amount->limit_milli >= 0;
    struct kubeflow_place at = has_limit ? amount->limit : amount->request;
    int64_t milli = has_limit ? amount->limit_milli : amount->request_milli;
    int64_t bytes = milli / 1000 + (milli % 1000 != 0);
    if (bytes < MEMORY_LEAST || bytes > BYTES_MAX) {
        return kubeflow_wrong(asking->reading, at, "a size from 1Mi to 1Pi");
    }
    if (!has_limit) {
        kubeflow_remark(asking->reading, at, "is the most that a task may have, too");
    } else if (amount->request_milli >= 0 && amount->request_milli != milli) {
        kubeflow_remark(asking->reading, amount->request, "%s", kept);
    }
    json_object_set_new(asking->spec, member, json_integer(bytes));
    return WEIR_OK;
}

static weir_status take_memory(struct asking *asking, const struct amount *amount)
{
    return take_bytes(asking, amount, "memory_max_bytes", "all of the limit is kept for a task");
}

static weir_status take_disk(struct asking *asking, const struct amount *amount)
{
    return take_bytes(asking, amount, "disk_max_bytes", "the limit is what counts");
}

static weir_status take_devices(struct asking *asking, const struct amount *amount)
{
    bool has_limit = amount->limit_milli >= 0;
    struct kubeflow_place at = has_limit ? amount->limit : amount->request;
    int64_t milli = has_limit ? amount->limit_milli : amount->request_milli;
    if (has_limit && amount->request_milli >= 0 && amount->request_milli != milli) {
        return kubeflow_wrong(asking->reading, amount->request, "as many as in limits");
    }
    if (milli % 1000 != 0 || milli > (int64_t)GPUS_MAX * 1000) {
        return kubeflow_wrong(asking->reading, at, "a whole number from 0 to 64");
    }
    if (milli > 0 && json_object_get(asking->accelerators, "accelerators") != NULL) {
        return kubeflow_refuse(asking->reading, at, "a task has accelerators of one kind");
    }
    if (milli > 0) {
        json_object_set_new(asking->accelerators, "accelerators", json_integer(milli / 1000));
    }
    return WEIR_OK;
}

static weir_status take_amd(struct asking *asking, const struct amount *amount)
{
    WEIR_TRY(take_devices(asking, amount));
    kubeflow_remark(asking->reading, amount->limit_milli >= 0 ? amount->limit : amount->request,
                    "accelerators of any maker count: the annotation weir.dev/gpu-model names "
                    "theirs, as weir get devices does");
    return WEIR_OK;
}

/* "nvidia.com/mig-1g.10gb" */
static weir_status take_mig(struct asking *asking, const struct amount *amount, const char *profile)
{
    WEIR_TRY(take_devices(asking, amount));
    if (json_object_get(asking->accelerators, "accelerators") != NULL) {
        json_object_set_new(asking->accelerators, "mig_profile", weir_json_string(profile, ""));
    }
    return WEIR_OK;
}

static const struct resource {
    const char *name;
    weir_status (*take)(struct asking *asking, const struct amount *amount);
} resources[] = {
    {"cpu", take_cpu},
    {"memory", take_memory},
    {"ephemeral-storage", take_disk},
    {"nvidia.com/gpu", take_devices},
    {"amd.com/gpu", take_amd},
};

static weir_status take(struct asking *asking, const char *name, const struct amount *amount)
{
    static const char mig[] = "nvidia.com/mig-";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(resources); i++) {
        if (strcmp(resources[i].name, name) == 0) {
            return resources[i].take(asking, amount);
        }
    }
    if (strncmp(name, mig, sizeof mig - 1) == 0) {
        return take_mig(asking, amount, name + sizeof mig - 1);
    }
    return kubeflow_refuse(asking->reading,
                           kubeflow_is_there(amount->limit) ? amount->limit : amount->request,
                           "nodes have no such resource: give those that do a label, and name it "
                           "in nodeSelector");
}

/* ---- all ------------------------------------------------------------------------------------------ */

struct given {
    struct kubeflow_place limits, requests;
};

static const struct kubeflow_field given_fields[] = {
    KUBEFLOW_TAKEN(given, limits, "limits", OBJECT),
    KUBEFLOW_TAKEN(given, requests, "requests", OBJECT),
    KUBEFLOW_REFUSED("claims", "devices are asked for in limits"),
};

static weir_status take_named(struct asking *asking, const struct given *given, const char *name)
{
    struct amount amount = {.limit = kubeflow_member(asking->reading, given->limits, name),
                            .request = kubeflow_member(asking->reading, given->requests, name)};
    WEIR_TRY(read_one(asking->reading, amount.limit, &amount.limit_milli));
    WEIR_TRY(read_one(asking->reading, amount.request, &amount.request_milli));
    return amount.limit_milli >= 0 || amount.request_milli >= 0 ? take(asking, name, &amount)
                                                                : WEIR_OK;
}

static weir_status take_all(struct asking *asking, struct given *given)
{
    const char *name;
    json_t *ignored;
    given->limits.path = given->limits.path != NULL ? given->limits.path : "";
    given->requests.path = given->requests.path != NULL ? given->requests.path : "";
    json_object_foreach((json_t *)given->limits.value, name, ignored)
    {
        WEIR_TRY(take_named(asking, given, name));
    }
    json_object_foreach((json_t *)given->requests.value, name, ignored)
    {
        if (json_object_get(given->limits.value, name) == NULL) {
            WEIR_TRY(take_named(asking, given, name));
        }
    }
    return WEIR_OK;
}

weir_status kubeflow_resources_read(struct kubeflow_reading *reading,
                                    const struct kubeflow_draft *draft,
                                    const struct kubeflow_pod *pod, struct kubeflow_place at)
{
    struct given given = {0};
    struct asking asking = {.reading = reading,
                            .spec = pod->spec,
                            .accelerators = kubeflow_keep(reading, json_object())};
    WEIR_TRY(kubeflow_fields(reading, at, given_fields, WEIR_ARRAY_LEN(given_fields), &given));
    WEIR_TRY(take_all(&asking, &given));
    if (json_object_size(given.limits.value) == 0) {
        kubeflow_mark(reading, given.limits);
    }
    if (json_object_size(given.requests.value) == 0) {
        kubeflow_mark(reading, given.requests);
    }
    if (json_object_size(asking.accelerators) == 0) {
        return WEIR_OK;
    }
    if (draft->gpu_model != NULL) {
        json_object_set_new(asking.accelerators, "accelerator_model",
                            weir_json_string(draft->gpu_model, ""));
    }
    json_object_set(pod->spec, "resources", asking.accelerators);
    return WEIR_OK;
}

/* ---- as a variable -------------------------------------------------------------------------------- */

struct resource_ref {
    struct kubeflow_place container, resource, divisor;
};

static const struct kubeflow_field ref_fields[] = {
    KUBEFLOW_TAKEN(resource_ref, container, "containerName", TEXT),
    KUBEFLOW_TAKEN(resource_ref, resource, "resource", TEXT),
    KUBEFLOW_TAKEN(resource_ref, divisor, "divisor", ANY),
};

weir_status kubeflow_resource_value(struct kubeflow_reading *reading,
                                    const struct kubeflow_pod *pod, struct kubeflow_place at,
                                    const char **out)
{
    struct resource_ref ref = {0};
    const char *name = "";
    int64_t milli = 0, divisor = 1000;
    WEIR_TRY(kubeflow_fields(reading, at, ref_fields, WEIR_ARRAY_LEN(ref_fields), &ref));
    kubeflow_mark(reading, ref.container); /* there is one */
    kubeflow_mark(reading, ref.divisor);
    WEIR_TRY(kubeflow_text(reading, ref.resource, &name));
    const char *dot = strchr(name, '.');
    const json_t *all = json_object_get(pod->container.value, "resources");
    const json_t *said =
        dot != NULL ? json_object_get(json_object_get(all, weir_arena_memdup(reading->arena, name,
                                                                             (size_t)(dot - name))),
                                      dot + 1)
                    : NULL;
    if (said == NULL || !kubeflow_quantity(said, &milli)) {
        return kubeflow_refuse(reading, at, "the container does not say %.60s itself", name);
    }
    if (kubeflow_is_there(ref.divisor) &&
        (!kubeflow_quantity(ref.divisor.value, &divisor) || divisor == 0)) {
        return kubeflow_wrong(reading, ref.divisor, "a quantity as 1, 1m or 1Mi");
    }
    *out = weir_arena_printf(reading->arena, "%" PRId64, milli / divisor + (milli % divisor != 0));
    return WEIR_OK;
}
