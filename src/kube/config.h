/**
 * How a Kubernetes API server is reached, and as whom: a kubeconfig's context, or the service account of the pod that this
 * process runs in.
 *
 *     const struct weir_kube_place place = {.file = "/home/ann/.kube/config", .context = "prod"};
 *     WEIR_TRY(weir_kube_config_load(&place, arena, &config, err));
 *
 * Formats: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ and
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
 */
#ifndef WEIR_KUBE_CONFIG_H
#define WEIR_KUBE_CONFIG_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_KUBE_SERVERS_MAX 8
#define WEIR_KUBE_GROUPS_MAX  16

/** Which configuration is meant; all NULL: what kubectl takes, else the pod's own. */
struct weir_kube_place {
    /** NULL: the files of $KUBECONFIG, else ~/.kube/config; without either, the pod's. */
    const char *file;
    const char *context;        /**< NULL: its current one. */
    const char *namespace_name; /**< NULL: the context's, else "default". */
    const char *const *servers; /**< Further addresses of the same cluster's API servers. */
    size_t n_servers;
};

/** A program that prints a credential. */
struct weir_kube_exec {
    const char *command;      /**< NULL: there is none. */
    const char *api_version;  /**< "client.authentication.k8s.io/v1" */
    const char *const *words; /**< The command and its arguments; NULL at the end. */
    const char *const *env;   /**< Ours and its own; NULL at the end. */
    const char *hint;         /**< What to do where the command is not there; or NULL. */
};

/** Text lies in the caller's arena; NULL where nothing is said. */
struct weir_kube_config {
    const char *file, *context; /**< NULL: it is the pod's. */
    const char *from;           /**< For sentences: "context prod of /home/ann/.kube/config". */
    const char *servers
        [WEIR_KUBE_SERVERS_MAX]; /**< URLs without a "/" at the end; the first is tried first. */
    size_t n_servers;
    const char *namespace_name;
    const char *ca_pem, *server_name, *proxy;
    bool is_unverified;
    const char *cert_pem, *key_pem;
    const char *token,
        *token_file; /**< The file is read again whenever it is older than a minute. */
    struct weir_kube_exec exec;
    const char *as_user; /**< Impersonated. */
    const char *as_groups[WEIR_KUBE_GROUPS_MAX];
    size_t n_as_groups;
};

/**
 * Read it. Files that it names are read, too, but for tokens; relative ones lie beside it.
 * @return NOT_FOUND: there is no such file, context, cluster or user, with the names that there are; INVALID, with the place
 *         in the file, for what is wrong; UNSUPPORTED for user names with passwords and `auth-provider`, which Kubernetes
 *         has no more.
 */
weir_status weir_kube_config_load(const struct weir_kube_place *place, struct weir_arena *arena,
                                  struct weir_kube_config *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** A kubeconfig that has been read. */
struct weir_kube_file {
    const char *path;
    json_t *document; /**< Borrowed. */
};

/** The same of kubeconfigs that have been read: what several name is taken from the first. */
weir_status weir_kube_config_read(const struct weir_kube_file *files, size_t n_files,
                                  const struct weir_kube_place *place, struct weir_arena *arena,
                                  struct weir_kube_config *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
