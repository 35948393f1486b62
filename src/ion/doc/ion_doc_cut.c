/** Trainings that learn from photos cut as a prediction pipeline cuts its frames. */
#include "ion/doc/ion_doc_reader.h"

#include "endpoint/cut.h"

#include <string.h>

/** What the document says a second time, beside cut_as. */
static weir_status check_once(const struct doc_reader *reader,
                              const struct weir_ion_doc_pipeline *training)
{
    static const char *const keys[] = {"detector", "detect", "align"};
    WEIR_AUTO(weir_json_auto_free) json_t *parameters = json_loads(training->parameters, 0, NULL);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(keys); i++) {
        if (json_object_get(parameters, keys[i]) != NULL) {
            return weir_error_set(reader->err, WEIR_ERR_INVALID,
                                  "%s.parameters.%s: cut_as says how the photos are cut: leave "
                                  "out one of the two",
                                  reader->path, keys[i]);
        }
    }
    return WEIR_OK;
}

static weir_status read_cut(const struct doc_reader *reader, const struct weir_ion_doc *doc,
                            struct weir_ion_doc_pipeline *training)
{
    const struct weir_ion_doc_pipeline *other = weir_ion_doc_pipeline(doc, training->cut_as);
    struct weir_cut_texts texts;
    if (other == NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.cut_as: there is no pipeline \"%s\"", reader->path,
                              training->cut_as);
    }
    if (other->type != WEIR_PIPELINE_PREDICTION) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.cut_as: \"%s\" is not a prediction pipeline: name the one whose "
                              "stages find and cut what this training learns",
                              reader->path, other->name);
    }
    WEIR_AUTO(weir_json_auto_free) json_t *stages = json_loads(other->stages, 0, NULL);
    if (other->detector == NULL || !weir_cut_of_stages(stages, reader->arena, &texts)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.cut_as: \"%s\" takes its pictures whole: it needs the stages "
                              "detect and align before its model; or leave cut_as out",
                              reader->path, other->name);
    }
    training->cut_detector = texts.model;
    training->cut_detect = texts.detect;
    training->cut_align = texts.align;
    return check_once(reader, training);
}

weir_status doc_read_cuts(const struct doc_reader *root, struct weir_ion_doc *doc)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct doc_reader reader = doc_reader_at(root, "pipelines", i);
        if (doc->pipelines[i].cut_as != NULL) {
            WEIR_TRY(read_cut(&reader, doc, &doc->pipelines[i]));
        }
    }
    return WEIR_OK;
}
