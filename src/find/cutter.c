#include "find/cutter.h"

#include "find/finder.h"
#include "find/photo.h"

#include <stdlib.h>

struct cutter {
    struct finder *finder;
    struct weir_face_align align;
};

weir_status cutter_open(const struct cutter_config *config, struct cutter **out,
                        struct weir_error *err)
{
    static const struct executor_options on_processor = {.device = EXECUTOR_PROCESSOR};
    const struct finder_wish wish = finder_wish_from(&config->cut->detect);
    const struct model_name name = {.name = wish.model,
                                    .id = "",
                                    .blob = "",
                                    .executor = &on_processor,
                                    .signature = config->signature};
    struct finder *finder;
    WEIR_TRY(finder_load(config->path, &name, &wish, &finder, err));
    *out = weir_xalloc(sizeof **out);
    **out = (struct cutter){
        .finder = finder,
        .align = photo_align(&config->cut->align, config->width, config->height, config->channels)};
    return WEIR_OK;
}

void cutter_close(struct cutter *cutter)
{
    if (cutter != NULL) {
        finder_unref(cutter->finder);
        free(cutter);
    }
}

weir_status cutter_find(struct cutter *cutter, const struct weir_image *photo,
                        struct weir_affine *out_map, bool *out_is_there, struct weir_error *err)
{
    struct weir_detection face;
    WEIR_TRY(photo_find(cutter->finder, photo, &face, out_is_there, err));
    if (*out_is_there) {
        *out_map = weir_face_find(&face, &cutter->align).map;
    }
    return WEIR_OK;
}
