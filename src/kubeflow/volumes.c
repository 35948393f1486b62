/* Volumes: a task has folders of its own, those of its machine that the agent shares, and in a pod claims and NFS; all others
 * are named. */
#include "kubeflow/pod.h"

#include <string.h>

#define SHARE_INSTEAD                                                                              \
    "mount it on the nodes at the same path, share that (weir agent --share PATH), and name it "   \
    "as "                                                                                          \
    "hostPath; or make it a dataset (weir dataset)"
#define VALUE_INSTEAD "take what it holds as variables: env.valueFrom; or send it with weir job run"

struct volume {
    struct kubeflow_place name, empty, host, claim, nfs;
};

/* All kinds of volumes that there are. */
static const struct kubeflow_field volume_fields[] = {
    KUBEFLOW_TAKEN(volume, name, "name", TEXT),
    KUBEFLOW_TAKEN(volume, empty, "emptyDir", OBJECT),
    KUBEFLOW_TAKEN(volume, host, "hostPath", OBJECT),
    KUBEFLOW_TAKEN(volume, claim, "persistentVolumeClaim", OBJECT),
    KUBEFLOW_TAKEN(volume, nfs, "nfs", OBJECT),
    KUBEFLOW_REFUSED("cephfs", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("glusterfs", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("csi", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("iscsi", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("fc", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("rbd", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("flexVolume", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("ephemeral", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("azureFile", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("azureDisk", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("awsElasticBlockStore", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("gcePersistentDisk", SHARE_INSTEAD),
    KUBEFLOW_REFUSED("gitRepo", "weir job run --git brings a repository along"),
    KUBEFLOW_REFUSED("image", "a task has one image"),
    KUBEFLOW_REFUSED("configMap", VALUE_INSTEAD),
    KUBEFLOW_REFUSED("secret", VALUE_INSTEAD),
    KUBEFLOW_REFUSED("downwardAPI", VALUE_INSTEAD),
    KUBEFLOW_REFUSED("projected", VALUE_INSTEAD),
};

struct mount {
    struct kubeflow_place name, path, read_only;
};

static const struct kubeflow_field mount_fields[] = {
    KUBEFLOW_TAKEN(mount, name, "name", TEXT),
    KUBEFLOW_TAKEN(mount, path, "mountPath", TEXT),
    KUBEFLOW_TAKEN(mount, read_only, "readOnly", BOOLEAN),
    KUBEFLOW_REFUSED("subPath", "mount the whole, at the path that it has on the nodes"),
    KUBEFLOW_REFUSED("subPathExpr", "mount the whole, at the path that it has on the nodes"),
    KUBEFLOW_REMARK("mountPropagation", "a task sees what its node has when it begins"),
    KUBEFLOW_REMARK("recursiveReadOnly", "the nodes' agents say what may be written"),
};

static const struct kubeflow_field empty_fields[] = {
    KUBEFLOW_REMARK_UNLESS("medium", "Memory", "/dev/shm is memory, /tmp is a disk"),
    KUBEFLOW_REMARK("sizeLimit", "the task's own limits hold: memory and ephemeral-storage"),
};

struct host {
    struct kubeflow_place path;
};

static const struct kubeflow_field host_fields[] = {
    KUBEFLOW_TAKEN(host, path, "path", TEXT),
    KUBEFLOW_REMARK("type", "the node's agent says if it is not there"),
};

struct source {
    struct kubeflow_place name, server, path, read_only;
};

static const struct kubeflow_field claim_fields[] = {
    KUBEFLOW_TAKEN(source, name, "claimName", TEXT),
    KUBEFLOW_TAKEN(source, read_only, "readOnly", BOOLEAN),
};

static const struct kubeflow_field nfs_fields[] = {
    KUBEFLOW_TAKEN(source, server, "server", TEXT),
    KUBEFLOW_TAKEN(source, path, "path", TEXT),
    KUBEFLOW_TAKEN(source, read_only, "readOnly", BOOLEAN),
};

static bool is_true(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    kubeflow_mark(reading, at);
    return json_is_true(at.value);
}

/* A volume of the pod that the task runs in. */
static weir_status mount_of_pod(struct kubeflow_reading *reading, const struct volume *volume,
                                const struct mount *mount, const char *path, json_t *spec)
{
    struct source source = {0};
    const char *name = NULL, *server = NULL, *folder = NULL;
    bool is_claim = kubeflow_is_there(volume->claim);
    WEIR_TRY(is_claim ? kubeflow_fields(reading, volume->claim, claim_fields,
                                        WEIR_ARRAY_LEN(claim_fields), &source)
                      : kubeflow_fields(reading, volume->nfs, nfs_fields,
                                        WEIR_ARRAY_LEN(nfs_fields), &source));
    WEIR_TRY(kubeflow_text(reading, source.name, &name));
    WEIR_TRY(kubeflow_text(reading, source.server, &server));
    WEIR_TRY(kubeflow_text(reading, source.path, &folder));
    if (is_claim ? name == NULL : server == NULL || folder == NULL) {
        return kubeflow_wrong(reading, is_claim ? volume->claim : volume->nfs,
                              is_claim ? "{claimName}" : "{server, path}");
    }
    json_t *made = is_claim ? json_pack("{s:s,s:s}", "path", path, "claim", name)
                            : json_pack("{s:s,s:o}", "path", path, "nfs",
                                        json_sprintf("%s:%s", server, folder));
    bool is_read_only = is_true(reading, mount->read_only) || is_true(reading, source.read_only);
    if (!is_read_only) {
        json_object_set_new(made, "writable", json_true());
    }
    if (json_object_get(spec, "volumes") == NULL) {
        json_object_set_new(spec, "volumes", json_array());
    }
    json_array_append_new(json_object_get(spec, "volumes"), made);
    return WEIR_OK;
}

/* A folder that each task has by itself. */
static weir_status mount_empty(struct kubeflow_reading *reading, const struct volume *volume,
                               struct kubeflow_place mount, const char *path)
{
    static const char *const own[] = {"/tmp", "/var/tmp", "/dev/shm"};
    WEIR_TRY(
        kubeflow_fields(reading, volume->empty, empty_fields, WEIR_ARRAY_LEN(empty_fields), NULL));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (strcmp(own[i], path) == 0) {
            return WEIR_OK;
        }
    }
    return kubeflow_refuse(reading, mount,
                           "a task's own folders are the one that it begins in, /tmp, /var/tmp and "
                           "/dev/shm: use one of them");
}

/* A folder of the node, where it is. */
static weir_status mount_host(struct kubeflow_reading *reading, const struct volume *volume,
                              struct kubeflow_place mount, const char *path)
{
    struct host host = {0};
    const char *there = "";
    WEIR_TRY(
        kubeflow_fields(reading, volume->host, host_fields, WEIR_ARRAY_LEN(host_fields), &host));
    WEIR_TRY(kubeflow_text(reading, host.path, &there));
    if (strcmp(there, path) != 0) {
        return kubeflow_refuse(reading, mount,
                               "tasks see a folder of the nodes under its own path: mount it at "
                               "%.200s",
                               there);
    }
    kubeflow_remark(reading, host.path,
                    "tasks see it where the nodes' agents share it: weir agent --share %.200s",
                    there);
    return WEIR_OK;
}

/* The volume of that name, read. */
static weir_status find_volume(struct kubeflow_reading *reading, struct kubeflow_place volumes,
                               struct kubeflow_place wanted, struct volume *out)
{
    const char *name = "";
    *out = (struct volume){0};
    WEIR_TRY(kubeflow_text(reading, wanted, &name));
    for (size_t i = 0; i < json_array_size(volumes.value); i++) {
        struct kubeflow_place at = kubeflow_item(reading, volumes, i);
        const char *own = json_string_value(json_object_get(at.value, "name"));
        if (own != NULL && strcmp(own, name) == 0) {
            WEIR_TRY(
                kubeflow_fields(reading, at, volume_fields, WEIR_ARRAY_LEN(volume_fields), out));
            kubeflow_mark(reading, out->name);
            return WEIR_OK;
        }
    }
    return kubeflow_wrong(reading, wanted, "the name of one of the volumes");
}

static weir_status read_mount(struct kubeflow_reading *reading, struct kubeflow_place volumes,
                              struct kubeflow_place at, json_t *spec)
{
    struct mount mount = {0};
    struct volume volume;
    const char *path = "";
    WEIR_TRY(kubeflow_fields(reading, at, mount_fields, WEIR_ARRAY_LEN(mount_fields), &mount));
    mount.name.path = mount.name.path != NULL ? mount.name.path : at.path;
    WEIR_TRY(kubeflow_text(reading, mount.path, &path));
    WEIR_TRY(find_volume(reading, volumes, mount.name, &volume));
    if (kubeflow_is_there(volume.claim) || kubeflow_is_there(volume.nfs)) {
        return mount_of_pod(reading, &volume, &mount, path, spec);
    }
    if (kubeflow_is_there(mount.read_only)) {
        kubeflow_remark(reading, mount.read_only,
                        "the nodes' agents say what may be written: --share PATH:rw");
    }
    return kubeflow_is_there(volume.host) ? mount_host(reading, &volume, mount.path, path)
                                          : mount_empty(reading, &volume, mount.path, path);
}

/* A volume that no container has is of no use. */
static void remark_unused(struct kubeflow_reading *reading, struct kubeflow_place volumes)
{
    for (size_t i = 0; i < json_array_size(volumes.value); i++) {
        struct kubeflow_place at = kubeflow_item(reading, volumes, i);
        struct kubeflow_place name = kubeflow_member(reading, at, "name");
        if (json_object_get(reading->marks, name.path) == NULL) {
            kubeflow_remark(reading, at, "no container mounts it");
        }
    }
}

weir_status kubeflow_volumes_read(struct kubeflow_reading *reading, struct kubeflow_place volumes,
                                  struct kubeflow_place mounts, json_t *spec)
{
    for (size_t i = 0; i < json_array_size(mounts.value); i++) {
        WEIR_TRY(read_mount(reading, volumes, kubeflow_item(reading, mounts, i), spec));
    }
    if (json_array_size(mounts.value) == 0) {
        kubeflow_mark(reading, mounts);
    }
    if (json_array_size(volumes.value) == 0) {
        kubeflow_mark(reading, volumes);
    }
    remark_unused(reading, volumes);
    return WEIR_OK;
}
