#include "mlops/mlops_private.h"

#include "base/file.h"
#include "base/json.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One caller at a time has the client. */
struct asking {
    struct weir_mlops *mlops;
    struct weir_arena arena;
    struct weir_error err;
};

static bool begin(struct asking *asking, struct weir_mlops *mlops)
{
    if (mlops == NULL || mlops->asking == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&mlops->is_asking);
    asking->mlops = mlops;
    weir_arena_init(&asking->arena, 0);
    return true;
}

static int end(struct asking *asking, weir_status status)
{
    if (status != WEIR_OK) {
        mlops_remember(asking->mlops, &asking->err);
    }
    weir_arena_fini(&asking->arena);
    (void)pthread_mutex_unlock(&asking->mlops->is_asking);
    return (int)status;
}

/* ---- models ----------------------------------------------------------------------------------- */

static weir_status read_object(const char *text, const char *what, json_t **out,
                               struct weir_error *err)
{
    if (text == NULL) {
        *out = json_object();
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), what, out, err));
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected a JSON object", what);
    }
    return WEIR_OK;
}

static weir_status publish(struct asking *asking, const char *name, const char *file,
                           const char *metrics_text, const char *baseline_text,
                           int64_t *out_version)
{
    char id[WEIR_UUID_BYTES], blob[WEIR_SHA256_TEXT_BYTES];
    struct weir_client *client = asking->mlops->asking;
    json_t *metrics = NULL, *baseline = NULL, *reply = NULL;
    struct stat info = {0};
    WEIR_TRY(read_object(metrics_text, "metrics", &metrics, &asking->err));
    weir_status status = read_object(baseline_text, "baseline", &baseline, &asking->err);
    if (status == WEIR_OK) {
        status = weir_client_blob_put(client, file, blob, &asking->err);
    }
    if (status != WEIR_OK) {
        json_decref(metrics);
        json_decref(baseline);
        return status;
    }
    (void)stat(file, &info);
    weir_uuid_make(id);
    json_t *body =
        json_pack("{s:s,s:s*,s:s,s:I,s:o,s:o}", "id", id, "run", asking->mlops->run, "blob", blob,
                  "bytes", (json_int_t)info.st_size, "metrics", metrics, "baseline", baseline);
    /* The identifier makes it safe to try again. */
    status = weir_client_call_retry(
        client, "POST", weir_client_path(&asking->arena, "/api/v1/models/{}/versions", &name, 1),
        body, 60000, &reply, &asking->err);
    json_decref(body);
    if (status == WEIR_OK && out_version != NULL) {
        *out_version = json_integer_value(json_object_get(reply, "version"));
    }
    json_decref(reply);
    return status;
}

int weir_mlops_publish_model(struct weir_mlops *mlops, const char *name, const char *file,
                             const char *metrics, const char *baseline, int64_t *out_version)
{
    struct asking asking = {.mlops = NULL};
    return begin(&asking, mlops)
               ? end(&asking, publish(&asking, name, file, metrics, baseline, out_version))
               : WEIR_ERR_UNAVAILABLE;
}

/* What serves, or is on its way to serve since; the newest first. */
static const json_t *find_approved(const json_t *items, const char *link)
{
    static const char *const states[] = {"SERVING", "DEPLOYING", "APPROVED"};
    size_t i;
    json_t *item;
    const json_t *found = NULL;
    json_int_t last = -1;
    json_array_foreach(items, i, item)
    {
        const char *state = json_string_value(json_object_get(item, "state"));
        const char *its = json_string_value(json_object_get(item, "link"));
        json_int_t served = json_integer_value(json_object_get(item, "served_seq"));
        bool is_approved = false;
        for (size_t s = 0; s < WEIR_ARRAY_LEN(states) && state != NULL; s++) {
            is_approved = is_approved || strcmp(states[s], state) == 0;
        }
        if (is_approved && served > last &&
            (link == NULL || (its != NULL && strcmp(its, link) == 0))) {
            found = item;
            last = served;
        }
    }
    return found;
}

static weir_status get_approved(struct asking *asking, const char *link, const char *file,
                                int64_t *out_version)
{
    const char *ion = asking->mlops->ion;
    json_t *reply = NULL;
    if (ion == NULL) {
        return weir_error_set(&asking->err, WEIR_ERR_INVALID,
                              "an approved model is an ION's: set WEIR_ION");
    }
    WEIR_TRY(weir_client_call_retry(
        asking->mlops->asking, "GET",
        weir_client_path(&asking->arena, "/api/v1/ions/{}/candidates", &ion, 1), NULL, 30000,
        &reply, &asking->err));
    const json_t *found = find_approved(json_object_get(reply, "items"), link);
    weir_status status = WEIR_OK;
    if (found == NULL) {
        status = weir_error_set(&asking->err, WEIR_ERR_NOT_FOUND,
                                "no model of ion \"%s\" was let through yet", ion);
    } else if (file != NULL) {
        status = weir_client_blob_get(asking->mlops->asking,
                                      json_string_value(json_object_get(found, "blob")), file,
                                      &asking->err);
    }
    if (status == WEIR_OK && out_version != NULL) {
        *out_version = json_integer_value(json_object_get(found, "version"));
    }
    json_decref(reply);
    return status;
}

int weir_mlops_last_approved_model(struct weir_mlops *mlops, const char *link, const char *file,
                                   int64_t *out_version)
{
    struct asking asking = {.mlops = NULL};
    return begin(&asking, mlops) ? end(&asking, get_approved(&asking, link, file, out_version))
                                 : WEIR_ERR_UNAVAILABLE;
}

char *weir_mlops_get(struct weir_mlops *mlops, const char *path)
{
    struct asking asking = {.mlops = NULL};
    json_t *reply = NULL;
    char *text = NULL;
    if (!begin(&asking, mlops)) {
        return NULL;
    }
    weir_status status =
        weir_client_call_retry(mlops->asking, "GET", path, NULL, 30000, &reply, &asking.err);
    if (status == WEIR_OK) {
        text = json_dumps(reply, JSON_COMPACT | JSON_ENCODE_ANY);
        json_decref(reply);
    }
    (void)end(&asking, status);
    return text;
}
