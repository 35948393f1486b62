#include "train/recipe.h"

#include <string.h>

static const struct recipe {
    const char *model, *options;
} recipes[] = {
    /* From scratch on five photographs of some people: many small changes of each, their mirror
     * images as further people, and about 400 steps however few the photographs are. No weight
     * decay: batch norms follow all convolutions, and the margin loss sees directions only. */
    {"face-embed", "{\"augment\": \"face\", \"mirror_classes\": true, \"optimizer\": \"adam\","
                   " \"learning_rate\": 0.002, \"weight_decay\": 0, \"schedule\": \"cosine\","
                   " \"warmup_epochs\": -1, \"steps\": 400}"},
    /* About 1,900 steps: many scenes seen few times, as a net that sees few often learns them by heart. */
    {"face-detect", "{\"optimizer\": \"adam\", \"learning_rate\": 0.002, \"weight_decay\": 0,"
                    " \"schedule\": \"cosine\", \"warmup_epochs\": -1, \"batch_size\": 16,"
                    " \"epochs\": 3}"},
};

const char *train_recipe_find(const char *model)
{
    for (size_t i = 0; model != NULL && i < WEIR_ARRAY_LEN(recipes); i++) {
        if (strcmp(recipes[i].model, model) == 0) {
            return recipes[i].options;
        }
    }
    return NULL;
}

weir_status train_recipe_apply(const char *model, struct weir_arena *arena,
                               struct weir_train_config *config, struct weir_error *err)
{
    const char *text = train_recipe_find(model);
    json_t *object = NULL;
    size_t n_options = 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    const struct weir_option *options = weir_training_options(&n_options);
    WEIR_TRY(weir_json_parse(text, strlen(text), model, &object, err));
    weir_status status = weir_options_from_json(options, n_options, object, arena, config, err);
    json_decref(object);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "recipe of %s: ", model);
}
