#include "batch/results.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static void names_fini(struct results_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->names[i]);
    }
    free(names->names);
    *names = (struct results_names){0};
}

void results_names_add(struct results_names *names, const char *name)
{
    weir_xgrow(&names->names, sizeof *names->names, names->n, &names->cap);
    names->names[names->n++] = weir_xstrdup(name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

weir_status batch_results_open(const struct batch_spec *spec, struct weir_client *client,
                               struct batch_results *out, struct weir_error *err)
{
    struct batch_results results = {.ops = spec->output != NULL ? &results_folder : &results_server,
                                    .spec = spec,
                                    .client = client};
    if (spec->output == NULL && client == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.output: without a server the results need a folder");
    }
    WEIR_TRY(batch_results_look(&results, err));
    *out = results;
    return WEIR_OK;
}

void batch_results_close(struct batch_results *results)
{
    names_fini(&results->names);
}

weir_status batch_results_look(struct batch_results *results, struct weir_error *err)
{
    struct results_names names = {0};
    weir_status status = results->ops->list(results, &names, err);
    if (status != WEIR_OK) {
        names_fini(&names);
        return status;
    }
    if (names.n > 0) {
        qsort(names.names, names.n, sizeof *names.names, by_name);
    }
    names_fini(&results->names);
    results->names = names;
    return WEIR_OK;
}

bool batch_results_has(const struct batch_results *results, const char *name)
{
    const struct results_names *names = &results->names;
    return names->n > 0 &&
           bsearch(&name, names->names, names->n, sizeof *names->names, by_name) != NULL;
}

weir_status batch_results_read(struct batch_results *results, const char *name,
                               struct weir_buf *out, struct weir_error *err)
{
    weir_buf_reset(out);
    return results->ops->read(results, name, out, err);
}

weir_status batch_results_write(struct batch_results *results, const char *name, const void *bytes,
                                size_t len, struct weir_error *err)
{
    return results->ops->write(results, name, bytes, len, err);
}
