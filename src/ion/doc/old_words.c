#include "ion/old_words.h"

#include <stddef.h>

/* Keys of $.pipelines[].gallery. */
static const struct {
    const char *was, *is;
} gallery_words[] = {
    {"strangers", "impostors"}, /* old word: until version 0.2 */
};

void weir_ion_replace_old_words(json_t *document, json_t *warnings)
{
    size_t i;
    json_t *pipeline;
    json_array_foreach(json_object_get(document, "pipelines"), i, pipeline)
    {
        json_t *gallery = json_object_get(pipeline, "gallery");
        for (size_t k = 0; k < sizeof gallery_words / sizeof gallery_words[0]; k++) {
            const char *was = gallery_words[k].was, *is = gallery_words[k].is;
            json_t *value = json_object_get(gallery, was);
            if (value == NULL || json_object_get(gallery, is) != NULL) {
                continue;
            }
            json_object_set(gallery, is, value);
            json_object_del(gallery, was);
            json_array_append_new(
                warnings, json_sprintf("$.pipelines[%zu].gallery.%s is called \"%s\" now; the old "
                                       "word is accepted until the next version",
                                       i, was, is));
        }
    }
}
