/** Inside the reading of ION documents: where we are, and records read from objects there. */
#ifndef WEIR_ION_ION_DOC_READER_H
#define WEIR_ION_ION_DOC_READER_H

#include "base/record.h"
#include "ion/ion_doc.h"

/** What every part of the reading needs: where we are ("$.pipelines[0]") and where text goes. */
struct doc_reader {
    char *path;
    struct weir_arena *arena;
    struct weir_error *err;
};

/** At a member, and with an index other than SIZE_MAX at an item of it. */
struct doc_reader doc_reader_at(const struct doc_reader *parent, const char *key, size_t index);

/** Fill a record from an object; the record's paths ("$.workers") become ours. */
weir_status doc_read_object(const struct doc_reader *reader, const struct weir_resource *resource,
                            const json_t *object, void *out) WEIR_MUST_CHECK;

weir_status doc_check_range(const struct doc_reader *reader, const char *key, int64_t value,
                            int64_t min, int64_t max) WEIR_MUST_CHECK;

/** A pipeline's `triggers`: a list, an object of the old form, or NULL. */
weir_status doc_read_triggers(const struct doc_reader *parent, const json_t *json,
                              struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

/** What all pipelines that run jobs have: *out has `max_restarts` and `parameters` as they stand there;
 *  they are checked, and `restart` and `triggers` read. No parameters are "{}". */
weir_status doc_read_job(const struct doc_reader *reader, const json_t *json,
                         struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

/** A pipeline's `restart`. */
weir_status doc_read_restart(const struct doc_reader *parent, const json_t *json,
                             struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

/** A training by a program of people's own: its `kind` is not WEIR_ION_TRAIN. */
weir_status doc_read_program(const struct doc_reader *reader, const json_t *json,
                             struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

weir_status doc_read_preparation(const struct doc_reader *reader, const json_t *json,
                                 struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

weir_status doc_read_evaluation(const struct doc_reader *reader, const json_t *json,
                                struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;
weir_status doc_read_comparison(const struct doc_reader *reader, const json_t *json,
                                struct weir_ion_doc_pipeline *out) WEIR_MUST_CHECK;

/** Behind all links that are written: a prediction with a detector for its only model gets its link.
 *  `links` has room for one of each pipeline. @return INVALID: a written one brings another model. */
weir_status doc_imply_links(const struct doc_reader *root,
                            struct weir_ion_doc *doc) WEIR_MUST_CHECK;

/** Behind all pipelines: how trainings cut their photos, of the pipelines that they name.
 *  @return INVALID: there is none, it cuts nothing, or the parameters say it too. */
weir_status doc_read_cuts(const struct doc_reader *root, struct weir_ion_doc *doc) WEIR_MUST_CHECK;

/** Does it start a pipeline that runs jobs? It names a dataset, or leads to one that measures. */
bool doc_is_feed(const struct weir_ion_doc *doc, const json_t *link);

/** Read one, behind all pipelines and the links before it. */
weir_status doc_read_feed(const struct doc_reader *reader, const json_t *json,
                          const struct weir_ion_doc *doc,
                          struct weir_ion_doc_feed *out) WEIR_MUST_CHECK;

/** Behind all links: pipelines that data links lead to see new data. @return INVALID if pipelines would
 *  start each other without end, or one that measures gets no models. */
weir_status doc_check_feeds(const struct doc_reader *root,
                            struct weir_ion_doc *doc) WEIR_MUST_CHECK;

#endif
