/**
 * The ION document: what a person writes (YAML or JSON), as structs.
 *
 * Everything is checked when it is read; what is wrong is named by its place:
 * "$.links[0].to: there is no pipeline \"entrence\"". See docs/reference for the format.
 */
#ifndef WEIR_ION_ION_DOC_H
#define WEIR_ION_ION_DOC_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "ion/cron.h"
#include "ion/policy.h"
#include "ion/restart.h"
#include "ion/trigger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** All but a prediction run jobs, one at a time, each with a number. */
enum weir_pipeline_type {
    WEIR_PIPELINE_TRAINING,
    WEIR_PIPELINE_PREDICTION,
    WEIR_PIPELINE_PREPARATION, /**< A command makes the next version of a dataset. */
    WEIR_PIPELINE_EVALUATION,  /**< A model version is measured on a dataset version. */
    WEIR_PIPELINE_COMPARISON,  /**< The same, beside the version that serves. */
};

struct weir_ion_doc_pipeline {
    char *name;
    enum weir_pipeline_type type;
    bool is_critical; /**< If it fails, the ION is down; else degraded. */
    struct weir_restart restart;
    /* Of those that run jobs. */
    char *dataset; /**< That a run begins with; NULL: none. */
    char *output;  /**< Of a preparation: dataset that it makes. */
    char *against; /**< Of a comparison: where the other model serves, as a link's `to`. */
    /* Training. */
    char *kind;      /**< Of its jobs: WEIR_ION_TRAIN, or that of a program of people's own. */
    char *registers; /**< Name of the model whose versions it makes. */
    char *model;     /**< Zoo name or path of a model file; NULL for a program. */
    char *cut_as;    /**< Pipeline that cuts frames as this its photos; NULL: they are whole. */
    char *cut_detector, *cut_detect, *cut_align; /**< What those say (endpoint/cut.h). */
    int64_t workers;
    int64_t parameter_servers;
    int64_t max_restarts;
    char *
        parameters; /**< JSON object: of a training for its spec, of a preparation for the command's. */
    struct weir_trigger_list triggers;
    /* Prediction. */
    int64_t replicas;
    int64_t gpus;         /**< Accelerators of each replica. */
    char *source;         /**< JSON object with "kind". */
    char *sinks;          /**< JSON array of objects with "kind". */
    char *doors;          /**< JSON array (endpoint/door.h). */
    char *stages;         /**< JSON array; what is written, or what stands for none. */
    bool embeds;          /**< The stages need a model of embeddings; else a classifier. */
    char *detector;       /**< Model that a stage finds with, beside the link's; NULL: none does. */
    char *detector_alias; /**< What the alias names; NULL: it is not by an alias. */
    int64_t detector_version; /**< This version alone; 0: the newest, or the alias's. */
    /** Its stages run no model but this one, which finds; a link brings it. NULL: they do. */
    char *finds_with, *finds_alias; /**< The alias as it is written, or NULL. */
    int64_t finds_version;          /**< As it is written, or 0. */
    char *gallery_dataset;          /**< NULL: no gallery; nobody is recognised. */
    char *impostors; /**< Dataset that the threshold is set by; NULL: by the gallery itself. */
    double false_accept_rate, false_deny_rate;
    int64_t no_frames_after_s; /**< A source without frames for so long is told; 0: never. */
    char *gallery_default;     /**< "allow", "deny" or "unknown": of a known person on no list. */
    int64_t keep_pictures_ms;  /**< Age of decisions' pictures; 0: as its project; below 0: none. */
};

struct weir_ion_doc_link {
    /** Its place in the document's list, where data links are, too; if it is implied, its pipeline's. */
    size_t i_link;
    bool is_implied; /**< Nobody wrote it: the pipeline's stage detect names the model. */
    char *id;        /**< "training:entrance", "model/sorter:entrance" */
    char *from;      /**< A training pipeline's name; of a registered model "model/NAME", or
                      "model/NAME@ALIAS". */
    char *model;     /**< Registered model whose versions are its candidates; NULL: a training's. */
    char *alias; /**< Only the version that this alias of the model names; NULL: each new one. */
    char *to;    /**< A prediction pipeline's name; of a deployment "deployment/NAME". */
    char *deployment; /**< Whose traffic the link decides; NULL: it leads to a pipeline. */
    struct weir_policy_chain policies;
    char *
        default_model; /**< Registered model that serves before any version has passed; NULL: none. */
    int64_t default_version;
};

/**
 * A link that starts a pipeline which runs jobs. A data link: versions of a dataset that a preparation
 * makes start a pipeline that reads it. Without dataset, versions of a model start an evaluation or a
 * comparison, which measures them.
 */
struct weir_ion_doc_feed {
    char *id;   /**< "prepare:training" */
    char *from; /**< A preparation; of models as a link's. */
    char *to;
    char *dataset; /**< NULL: it carries models. */
    char *model;   /**< Registered model; NULL: a training's, or data. */
};

/** The kind of the jobs of Weir's own trainings. */
#define WEIR_ION_TRAIN "train"

struct weir_ion_doc {
    char *name;
    char *project;
    struct weir_ion_doc_pipeline *pipelines;
    size_t n_pipelines;
    struct weir_ion_doc_link *links;
    size_t n_links;
    struct weir_ion_doc_feed *feeds;
    size_t n_feeds;
};

/** What a link's `from` begins with if it is a registered model: no name of a pipeline has a "/". */
#define WEIR_ION_FROM_MODEL "model/"

/** And its `to`, if that is a deployment. */
#define WEIR_ION_TO_DEPLOYMENT "deployment/"

#define WEIR_ION_PIPELINES_MAX 64
#define WEIR_ION_LINKS_MAX     64 /* of all sorts */

/** "training", "prediction" … as in the document. */
const char *weir_pipeline_type_name(enum weir_pipeline_type type);

/** Does it measure models that come through a link? */
static inline bool weir_pipeline_measures(enum weir_pipeline_type type)
{
    return type == WEIR_PIPELINE_EVALUATION || type == WEIR_PIPELINE_COMPARISON;
}

/**
 * Read and check a document; text is copied into the arena.
 * @return INVALID with the path of what is wrong; UNSUPPORTED for a policy, source, sink or stage that
 * this version does not have.
 */
weir_status weir_ion_doc_parse(const json_t *document, struct weir_arena *arena,
                               struct weir_ion_doc *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Can this version serve what the document describes? For documents that are applied; a stored one
 * is read as it is.
 * @return INVALID with the place: a path of a source or sink that is relative or still holds a
 * template's mark ("@WORK@"); two doors of one name; a chain of policies that goes on behind one that must end it.
 */
weir_status weir_ion_doc_check(const struct weir_ion_doc *doc,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** NULL if there is none of that name. */
const struct weir_ion_doc_pipeline *weir_ion_doc_pipeline(const struct weir_ion_doc *doc,
                                                          const char *name);

/** Does the pipeline find with a version of this model that comes by this alias (NULL: it is new)? */
bool weir_ion_doc_detects_by(const struct weir_ion_doc_pipeline *pipeline, const char *model,
                             const char *alias);

/** Is the model a detector of one of the document's pipelines? */
bool weir_ion_doc_detects(const struct weir_ion_doc *doc, const char *model);

/** The name of the model that a training makes versions of; "" if it is no training of the document. */
const char *weir_ion_doc_model(const struct weir_ion_doc *doc, const char *training);

/** Where the document says what a link's member says: "$.links[0].from", or the stage that implies the link. */
char *weir_ion_doc_link_place(const struct weir_ion_doc_link *link, const char *member,
                              struct weir_arena *arena);

/** The link of that identifier; NULL if there is none, or `id` is NULL. */
const struct weir_ion_doc_link *weir_ion_doc_link(const struct weir_ion_doc *doc, const char *id);

/** The link into a prediction pipeline. NULL if there is none. */
const struct weir_ion_doc_link *weir_ion_doc_link_into(const struct weir_ion_doc *doc,
                                                       const char *to);

#endif
