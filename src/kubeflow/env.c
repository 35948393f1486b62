/* Variables of a container: values, and what is taken from secrets, ConfigMaps, fields and resources. */
#include "kubeflow/expand.h"
#include "kubeflow/pod.h"

#include "base/names.h"

#include <string.h>

#define SECRET_NAME_MAX 64

/* Where a variable's value comes from; one of them. */
struct source {
    struct kubeflow_place secret, config, field, resource;
};

static const struct kubeflow_field source_fields[] = {
    KUBEFLOW_TAKEN(source, secret, "secretKeyRef", OBJECT),
    KUBEFLOW_TAKEN(source, config, "configMapKeyRef", OBJECT),
    KUBEFLOW_TAKEN(source, field, "fieldRef", OBJECT),
    KUBEFLOW_TAKEN(source, resource, "resourceFieldRef", OBJECT),
    KUBEFLOW_REFUSED("fileKeyRef", "give the value itself"),
};

struct key_of {
    struct kubeflow_place name, key, optional;
};

static const struct kubeflow_field key_fields[] = {
    KUBEFLOW_TAKEN(key_of, name, "name", TEXT),
    KUBEFLOW_TAKEN(key_of, key, "key", TEXT),
    KUBEFLOW_TAKEN(key_of, optional, "optional", BOOLEAN),
};

/* Variables on their way; a later one of the same name counts. */
struct env {
    struct kubeflow_reading *reading;
    const struct kubeflow_pod *pod;
    json_t *values, *secrets;   /* members of the specification */
    json_t *seen;               /* names of the list */
    struct kubeflow_place item; /* the one that is being read */
};

static void set_value(const struct env *env, const char *name, const char *value)
{
    (void)json_object_del(env->secrets, name);
    json_object_set_new(env->values, name, weir_json_string(value, ""));
}

static weir_status read_key(const struct env *env, struct kubeflow_place at, struct key_of *out,
                            const char **out_name, const char **out_key, bool *out_is_optional)
{
    *out = (struct key_of){0};
    *out_name = *out_key = "";
    *out_is_optional = false;
    WEIR_TRY(kubeflow_fields(env->reading, at, key_fields, WEIR_ARRAY_LEN(key_fields), out));
    WEIR_TRY(kubeflow_text(env->reading, out->name, out_name));
    WEIR_TRY(kubeflow_text(env->reading, out->key, out_key));
    return kubeflow_boolean(env->reading, out->optional, out_is_optional);
}

/* ---- secrets -------------------------------------------------------------------------------------- */

/* Weir's secrets have no keys: that of a key is called NAME.KEY. */
static weir_status read_secret(const struct env *env, struct kubeflow_place at,
                               const char *variable)
{
    struct kubeflow_reading *reading = env->reading;
    struct key_of of;
    const char *name, *key;
    bool is_optional;
    WEIR_TRY(read_key(env, at, &of, &name, &key, &is_optional));
    if (name[0] == '\0' || key[0] == '\0') {
        return kubeflow_wrong(reading, at, "the name and the key of a secret");
    }
    const char *secret = weir_arena_printf(reading->arena, "%s.%s", name, key);
    if (strlen(secret) > SECRET_NAME_MAX) {
        return weir_error_set(reading->err, WEIR_ERR_LIMIT,
                              "%s: secrets have names of at most %d bytes, and this one's is %s",
                              at.path, SECRET_NAME_MAX, secret);
    }
    kubeflow_remark(reading, at, "is the secret %s of the project: weir secret set %s%s", secret,
                    secret, is_optional ? "; here it must be there" : "");
    (void)json_object_del(env->values, variable);
    json_object_set_new(env->secrets, variable, json_string(secret));
    return WEIR_OK;
}

/* ---- ConfigMaps ----------------------------------------------------------------------------------- */

/* Its data; NULL: there is none of that name. */
static const json_t *config_map_of(const struct env *env, const char *name)
{
    size_t i;
    const json_t *document;
    json_array_foreach(env->reading->given->config_maps, i, document)
    {
        const char *own =
            json_string_value(json_object_get(json_object_get(document, "metadata"), "name"));
        if (own != NULL && strcmp(own, name) == 0) {
            return json_object_get(document, "data");
        }
    }
    return NULL;
}

static weir_status read_config(const struct env *env, struct kubeflow_place at,
                               const char *variable)
{
    struct key_of of;
    const char *name, *key;
    bool is_optional;
    WEIR_TRY(read_key(env, at, &of, &name, &key, &is_optional));
    const char *value = json_string_value(json_object_get(config_map_of(env, name), key));
    if (value == NULL && !is_optional) {
        return kubeflow_refuse(env->reading, at,
                               "no ConfigMap %.60s with a key %.60s is in the file: put it "
                               "there, or give the value itself",
                               name, key);
    }
    if (value == NULL) {
        kubeflow_remark(env->reading, env->item, "no ConfigMap here has it: it is left out");
    } else {
        set_value(env, variable, value);
    }
    return WEIR_OK;
}

struct env_source {
    struct kubeflow_place prefix, config, secret;
};

static const struct kubeflow_field env_source_fields[] = {
    KUBEFLOW_TAKEN(env_source, prefix, "prefix", TEXT),
    KUBEFLOW_TAKEN(env_source, config, "configMapRef", OBJECT),
    KUBEFLOW_REFUSED("secretRef", "which keys the secret has is not known here: name each in env, "
                                  "by valueFrom.secretKeyRef"),
};

struct config_ref {
    struct kubeflow_place name, optional;
};

static const struct kubeflow_field config_ref_fields[] = {
    KUBEFLOW_TAKEN(config_ref, name, "name", TEXT),
    KUBEFLOW_TAKEN(config_ref, optional, "optional", BOOLEAN),
};

/* All values of a ConfigMap. */
static weir_status read_env_from(const struct env *env, struct kubeflow_place at)
{
    struct kubeflow_reading *reading = env->reading;
    struct env_source source = {0};
    struct config_ref ref = {0};
    const char *prefix = "", *name = "", *key;
    bool is_optional = false;
    json_t *value;
    WEIR_TRY(kubeflow_fields(reading, at, env_source_fields, WEIR_ARRAY_LEN(env_source_fields),
                             &source));
    WEIR_TRY(kubeflow_fields(reading, source.config, config_ref_fields,
                             WEIR_ARRAY_LEN(config_ref_fields), &ref));
    WEIR_TRY(kubeflow_text(reading, source.prefix, &prefix));
    WEIR_TRY(kubeflow_text(reading, ref.name, &name));
    WEIR_TRY(kubeflow_boolean(reading, ref.optional, &is_optional));
    const json_t *data = config_map_of(env, name);
    if (data == NULL && !is_optional) {
        return kubeflow_refuse(reading, at,
                               "no ConfigMap %.60s is in the file: put it there, or give the "
                               "values in env",
                               name);
    }
    if (data == NULL) {
        kubeflow_remark(reading, at, "no ConfigMap here has that name: it is left out");
    }
    json_object_foreach((json_t *)data, key, value)
    {
        if (json_is_string(value)) {
            set_value(env, weir_arena_printf(reading->arena, "%s%s", prefix, key),
                      json_string_value(value));
        }
    }
    return WEIR_OK;
}

/* ---- fields --------------------------------------------------------------------------------------- */

/* Fields that only Kubernetes' nodes know the values of, and what to take instead. */
static const struct field_instead {
    const char *field, *instead;
} instead[] = {
    {"metadata.uid", "WEIR_JOB is the job's identifier, WEIR_TASK the task's"},
    {"spec.nodeName", "the program's own machine says what it is called"},
    {"spec.serviceAccountName", "there is none: a job has a token of its own"},
    {"status.podIP", "MASTER_ADDR and TF_CONFIG have the addresses of tasks"},
    {"status.podIPs", "MASTER_ADDR and TF_CONFIG have the addresses of tasks"},
    {"status.hostIP", "MASTER_ADDR and TF_CONFIG have the addresses of tasks"},
    {"status.hostIPs", "MASTER_ADDR and TF_CONFIG have the addresses of tasks"},
};

struct field_ref {
    struct kubeflow_place version, path;
};

static const struct kubeflow_field field_ref_fields[] = {
    KUBEFLOW_WORD(field_ref, version, "apiVersion", "v1"),
    KUBEFLOW_TAKEN(field_ref, path, "fieldPath", TEXT),
};

/* "metadata.labels['app']": the value, or NULL if it is no such path or not there. */
static const char *metadata_value(const struct env *env, const char *path)
{
    static const char *const maps[] = {"labels", "annotations"};
    const json_t *metadata = json_object_get(env->pod->at.value, "metadata");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(maps); i++) {
        const char *begin = weir_arena_printf(env->reading->arena, "metadata.%s['", maps[i]);
        size_t len = strlen(begin), n = strlen(path);
        if (strncmp(path, begin, len) == 0 && n > len + 2 && strcmp(path + n - 2, "']") == 0) {
            const char *key = weir_arena_memdup(env->reading->arena, path + len, n - len - 2);
            return json_string_value(json_object_get(json_object_get(metadata, maps[i]), key));
        }
    }
    return NULL;
}

/* The number of a task of an array has its variable already. */
static bool is_own_index(const char *path, const char *variable)
{
    return strcmp(variable, "JOB_COMPLETION_INDEX") == 0 &&
           strstr(path, "batch.kubernetes.io/job-completion-index") != NULL;
}

static weir_status refuse_field(const struct env *env, struct kubeflow_place at, const char *path)
{
    const char *say = "only Kubernetes knows it: give the value itself";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(instead); i++) {
        say = strcmp(instead[i].field, path) == 0 ? instead[i].instead : say;
    }
    if (strstr(path, "job-completion-index") != NULL) {
        say = "the variable JOB_COMPLETION_INDEX has it";
    }
    return kubeflow_refuse(env->reading, at, "%s", say);
}

static weir_status read_field(const struct env *env, struct kubeflow_place at, const char *variable)
{
    struct kubeflow_reading *reading = env->reading;
    struct field_ref ref = {0};
    const char *path = "";
    WEIR_TRY(
        kubeflow_fields(reading, at, field_ref_fields, WEIR_ARRAY_LEN(field_ref_fields), &ref));
    kubeflow_mark(reading, ref.version);
    WEIR_TRY(kubeflow_text(reading, ref.path, &path));
    const char *value = metadata_value(env, path);
    if (strcmp(path, "metadata.name") == 0) {
        kubeflow_remark(reading, at, "is the job's name in all tasks: WEIR_RANK tells them apart");
        set_value(env, variable, reading->name);
    } else if (strcmp(path, "metadata.namespace") == 0) {
        kubeflow_remark(reading, at, "is the name of the project, as the document has it");
        set_value(env, variable, reading->namespace);
    } else if (value != NULL) {
        set_value(env, variable, value);
    } else if (!is_own_index(path, variable)) {
        return refuse_field(env, ref.path.path != NULL ? ref.path : at, path);
    }
    return WEIR_OK;
}

/* ---- all ------------------------------------------------------------------------------------------ */

struct variable {
    struct kubeflow_place name, value, from;
};

static const struct kubeflow_field variable_fields[] = {
    KUBEFLOW_TAKEN(variable, name, "name", TEXT),
    KUBEFLOW_TAKEN(variable, value, "value", TEXT),
    KUBEFLOW_TAKEN(variable, from, "valueFrom", OBJECT),
};

static weir_status read_source(const struct env *env, struct kubeflow_place at,
                               const char *variable)
{
    struct source source = {0};
    const char *value = NULL;
    WEIR_TRY(
        kubeflow_fields(env->reading, at, source_fields, WEIR_ARRAY_LEN(source_fields), &source));
    if (json_object_size(at.value) != 1) {
        return kubeflow_wrong(env->reading, at, "one source of the value");
    }
    if (kubeflow_is_there(source.secret)) {
        return read_secret(env, source.secret, variable);
    }
    if (kubeflow_is_there(source.config)) {
        return read_config(env, source.config, variable);
    }
    if (kubeflow_is_there(source.field)) {
        return read_field(env, source.field, variable);
    }
    WEIR_TRY(kubeflow_resource_value(env->reading, env->pod, source.resource, &value));
    set_value(env, variable, value);
    return WEIR_OK;
}

/* Operators set these themselves, over what the document says. */
static weir_status check_own(const struct env *env, struct kubeflow_place at, const char *name)
{
    size_t len = strlen(name);
    return weir_words_have(env->reading->runtime, name, len) &&
                   strcmp(name, "JOB_COMPLETION_INDEX") != 0
               ? kubeflow_refuse(env->reading, at,
                                 "%s is a variable that each task is given: remove it here", name)
               : WEIR_OK;
}

static weir_status read_variable(const struct env *env)
{
    struct kubeflow_reading *reading = env->reading;
    struct kubeflow_place at = env->item;
    const struct kubeflow_variables known = {.env = env->values, .secrets = env->secrets};
    struct variable given = {0};
    const char *name = "", *value = "";
    WEIR_TRY(
        kubeflow_fields(reading, at, variable_fields, WEIR_ARRAY_LEN(variable_fields), &given));
    WEIR_TRY(kubeflow_text(reading, given.name, &name));
    if (name[0] == '\0' || strchr(name, '=') != NULL) {
        return kubeflow_wrong(reading, at, "a name and a value");
    }
    WEIR_TRY(check_own(env, given.name, name));
    if (json_object_get(env->seen, name) != NULL) {
        return kubeflow_wrong(reading, given.name, "a name that no other variable has");
    }
    json_object_set_new(env->seen, name, json_true());
    if (kubeflow_is_there(given.from) && kubeflow_is_there(given.value)) {
        return kubeflow_wrong(reading, given.from, "none beside a value");
    }
    if (kubeflow_is_there(given.from)) {
        return read_source(env, given.from, name);
    }
    WEIR_TRY(kubeflow_text(reading, given.value, &value));
    WEIR_TRY(kubeflow_expand(reading, given.value, &known, value, &value));
    set_value(env, name, value);
    return WEIR_OK;
}

weir_status kubeflow_env_read(struct kubeflow_reading *reading, const struct kubeflow_pod *pod,
                              struct kubeflow_place env_list, struct kubeflow_place env_from)
{
    struct env env = {.reading = reading,
                      .pod = pod,
                      .values = kubeflow_keep(reading, json_object()),
                      .secrets = kubeflow_keep(reading, json_object()),
                      .seen = kubeflow_keep(reading, json_object())};
    for (size_t i = 0; i < json_array_size(env_from.value); i++) {
        WEIR_TRY(read_env_from(&env, kubeflow_item(reading, env_from, i)));
    }
    for (size_t i = 0; i < json_array_size(env_list.value); i++) {
        env.item = kubeflow_item(reading, env_list, i);
        WEIR_TRY(read_variable(&env));
    }
    if (json_array_size(env_list.value) == 0) {
        kubeflow_mark(reading, env_list);
    }
    if (json_array_size(env_from.value) == 0) {
        kubeflow_mark(reading, env_from);
    }
    json_object_set(pod->spec, "env", env.values);
    json_object_set(pod->spec, "secrets", env.secrets);
    return WEIR_OK;
}
