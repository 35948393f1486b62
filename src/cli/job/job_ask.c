#include "cli/job/job_ask.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 256

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value != NULL) {
        json_object_set_new(object, name, json_string(value));
    }
}

/* The member of this name, which is made if it is not there. */
static json_t *member(json_t *object, const char *name, json_t *made)
{
    json_t *found = json_object_get(object, name);
    if (found != NULL) {
        json_decref(made);
        return found;
    }
    json_object_set_new(object, name, made);
    return made;
}

static weir_status add_gpus(const char *text, json_t *resources, struct weir_error *err)
{
    char *end;
    long n = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (end == text || n < 0 || (*end != '\0' && (*end != ':' || end[1] == '\0'))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--gpus: expected a number, or one with a model, as 2:H100; got "
                              "\"%.40s\"",
                              text);
    }
    json_object_set_new(resources, "accelerators", json_integer(n));
    set_text(resources, "accelerator_model", *end == ':' ? end + 1 : NULL);
    return WEIR_OK;
}

static weir_status add_resources(const struct job_ask *ask, json_t *spec, struct weir_error *err)
{
    if (ask->gpus == NULL && ask->gpu_memory == NULL && ask->mig == NULL && !(ask->gpu_share > 0)) {
        return WEIR_OK;
    }
    json_t *resources = member(spec, "resources", json_object());
    WEIR_TRY(add_gpus(ask->gpus, resources, err));
    if (ask->gpu_share > 0) {
        json_object_set_new(resources, "accelerator_share", json_real(ask->gpu_share));
    }
    set_text(resources, "accelerator_memory", ask->gpu_memory);
    set_text(resources, "mig_profile", ask->mig);
    return WEIR_OK;
}

/* The next of lines KEY or KEY=VALUE; *value is NULL without "=". False: there is none. */
static bool next_pair(const char **lines, char key[WORD_BYTES], char value[WORD_BYTES],
                      bool *out_has_value)
{
    const char *line = *lines;
    if (line == NULL || *line == '\0') {
        return false;
    }
    size_t len = strcspn(line, "\n");
    size_t key_len = WEIR_MIN(strcspn(line, "=\n"), len);
    *out_has_value = key_len < len;
    (void)snprintf(key, WORD_BYTES, "%.*s", (int)WEIR_MIN(key_len, (size_t)WORD_BYTES - 1), line);
    (void)snprintf(value, WORD_BYTES, "%.*s",
                   *out_has_value ? (int)WEIR_MIN(len - key_len - 1, (size_t)WORD_BYTES - 1) : 0,
                   line + key_len + *out_has_value);
    *lines = line + len + (line[len] == '\n');
    return true;
}

static weir_status add_selector(const struct job_ask *ask, json_t *spec, struct weir_error *err)
{
    char key[WORD_BYTES], value[WORD_BYTES];
    bool has_value;
    for (const char *lines = ask->node_selector; next_pair(&lines, key, value, &has_value);) {
        if (!has_value || key[0] == '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--node-selector: expected KEY=VALUE, got \"%.40s\"", key);
        }
        set_text(member(spec, "node_selector", json_object()), key, value);
    }
    return WEIR_OK;
}

static weir_status add_tolerations(const struct job_ask *ask, json_t *spec, struct weir_error *err)
{
    char key[WORD_BYTES], value[WORD_BYTES];
    bool has_value;
    for (const char *lines = ask->toleration; next_pair(&lines, key, value, &has_value);) {
        if (key[0] == '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID, "--toleration: expected KEY or KEY=VALUE");
        }
        json_t *toleration = json_pack("{s:s}", "key", key);
        set_text(toleration, "value", has_value ? value : NULL);
        json_array_append_new(member(spec, "tolerations", json_array()), toleration);
    }
    return WEIR_OK;
}

weir_status job_ask_add(const struct job_ask *ask, json_t *spec, struct weir_error *err)
{
    WEIR_TRY(add_resources(ask, spec, err));
    WEIR_TRY(add_selector(ask, spec, err));
    WEIR_TRY(add_tolerations(ask, spec, err));
    if (ask->priority >= 0) {
        json_object_set_new(spec, "priority", json_integer(ask->priority));
    }
    if (!ask->is_preemptible) {
        json_object_set_new(spec, "preemptible", json_false());
    }
    if (ask->is_fenced) {
        json_object_set_new(spec, "fenced", json_true());
    }
    set_text(spec, "time_limit", ask->time_limit);
    set_text(spec, "hold_on_failure", ask->hold_on_failure);
    set_text(spec, "save_signal", ask->save_signal);
    set_text(spec, "save_within", ask->save_within);
    set_text(spec, "overflow_after", ask->overflow_after);
    if (ask->clusters != NULL) {
        json_object_set_new(spec, "clusters", cli_list_of(ask->clusters));
    }
    if (ask->topology != NULL) {
        set_text(member(spec, "topology", json_object()), "required", ask->topology);
    }
    return WEIR_OK;
}

/** The accelerators of the nodes, and of those that can be had. */
struct accelerators {
    size_t n, n_fit; /* all, and those of the model */
    struct weir_names models;
};

static void count_one(struct accelerators *found, const char *own, const char *model)
{
    own = own != NULL ? own : "";
    found->n++;
    found->n_fit += model == NULL || strcasestr(own, model) != NULL;
    if (own[0] != '\0' && strstr(found->models.text, own) == NULL) {
        weir_names_add(&found->models, own, strlen(own));
    }
}

static void count(struct accelerators *found, const json_t *devices, const char *model)
{
    size_t i;
    json_t *device;
    json_array_foreach(json_object_get(devices, "items"), i, device)
    {
        count_one(found, json_string_value(json_object_get(device, "model")), model);
    }
}

/* Counts those that can be had of clusters. A user who may not see them is told of none. */
static void count_pools(struct cli_call *call, struct accelerators *found, const char *model)
{
    struct weir_error ignored;
    json_t *pools;
    const json_t *pool;
    size_t i;
    if (cli_rest(call, "GET", "/api/v1/pools?limit=1000", NULL, &pools, &ignored) != WEIR_OK) {
        return;
    }
    json_array_foreach(json_object_get(pools, "items"), i, pool)
    {
        if (json_integer_value(json_object_get(pool, "n_accelerators")) > 0) {
            count_one(found, json_string_value(json_object_get(pool, "accelerator")), model);
        }
    }
    json_decref(pools);
}

/* Is there a cluster that was not asked yet what it has? */
static bool has_new_cluster(struct cli_call *call)
{
    struct weir_error ignored;
    json_t *clusters, *cluster;
    size_t i;
    bool has = false;
    if (cli_rest(call, "GET", "/api/v1/clusters?limit=1000", NULL, &clusters, &ignored) !=
        WEIR_OK) {
        return false;
    }
    json_array_foreach(json_object_get(clusters, "items"), i, cluster)
    {
        const char *state = json_string_value(json_object_get(cluster, "state"));
        has = has || (state != NULL && strcmp(state, "new") == 0);
    }
    json_decref(clusters);
    return has;
}

void job_gpus_warn(struct cli_call *call, int64_t n, const char *model)
{
    static const char *const kinds[] = {"gpu", "mig", "declared"};
    struct accelerators found = {0};
    struct weir_error ignored;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds) && n > 0; i++) {
        json_t *devices;
        const char *path = cli_path1(call, "/api/v1/devices?limit=1000&kind={}", kinds[i]);
        if (cli_rest(call, "GET", path, NULL, &devices, &ignored) != WEIR_OK) {
            return;
        }
        count(&found, devices, model);
        json_decref(devices);
    }
    if (n > 0) {
        count_pools(call, &found, model);
    }
    if (n > 0 && found.n_fit == 0 && has_new_cluster(call)) {
        return;
    }
    if (n > 0 && found.n == 0) {
        (void)fprintf(stderr,
                      "weir: warning: %lld accelerator%s asked for, and no node of the cluster has "
                      "one: it waits until a node with one joins\n",
                      (long long)n, n == 1 ? " is" : "s are");
    } else if (n > 0 && found.n_fit == 0) {
        (void)fprintf(stderr,
                      "weir: warning: no node has an accelerator \"%s\"; there are %s: it waits "
                      "until one joins\n",
                      model, found.models.text);
    }
}

void job_ask_warn(struct cli_call *call, const struct job_ask *ask)
{
    const char *colon = ask->gpus != NULL ? strchr(ask->gpus, ':') : NULL;
    bool wants_one = ask->gpu_share > 0 || ask->gpu_memory != NULL || ask->mig != NULL;
    int64_t n = ask->gpus != NULL ? strtoll(ask->gpus, NULL, 10) : wants_one ? 1 : 0;
    job_gpus_warn(call, n, colon != NULL ? colon + 1 : NULL);
}
