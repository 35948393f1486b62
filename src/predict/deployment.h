/**
 * Deployment: what the server wants served, and what makes it so, hosted by host/host.h.
 *
 * It gets the model file into the cache, loads and warms it up, embeds the gallery with a net of its own,
 * calibrates, and publishes model, gallery and lists as one serving. What did not change is kept:
 * new lists cost nothing, a new person one embedding. It runs at low priority; frames go on being
 * decided by the old serving. How the threshold came about is logged and reported to the server
 * (threshold_report.h). When a step fails, the old serving stays and the deployment is tried again.
 *
 * Model, manifest and embeddings of what was served last stay in the folder, beside deployment.json.
 */
#ifndef WEIR_PREDICT_DEPLOYMENT_H
#define WEIR_PREDICT_DEPLOYMENT_H

#include "base/json.h"
#include "base/status.h"
#include "endpoint/stage.h"
#include "predict/heartbeat.h"
#include "predict/intake.h"
#include "predict/serving.h"
#include "predict/spec.h"

/** Parsed; text in an arena. */
struct deployment {
    int64_t revision, list_revision;
    struct model_name model;    /**< Without has_model the detector, too. */
    struct model_name detector; /**< If has_detector. */
    int64_t gallery_version;
    const char *gallery_path, *gallery_blob; /**< The path may be NULL. */
    int64_t impostors_version;
    const char *impostors_path, *impostors_blob; /**< The blob is NULL without impostors. */
    struct lists lists;
    struct calibration_rates rates; /**< Of a gallery; 0 without. */
    const json_t *stages;           /**< Borrowed from what was read; NULL: recognise people. */
    bool has_model;                 /**< A stage runs one beside the detector. */
    bool has_gallery;               /**< A stage compares with it. */
    bool has_detector;              /**< A stage finds with it. */
};

/** @return NOT_FOUND if nothing is deployed yet; INVALID; UNSUPPORTED without a gallery that a stage
 *          needs, and for a stage that is not there. */
weir_status deployment_parse(const json_t *json, struct weir_arena *arena, struct deployment *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

struct deployer;

struct deployer_config {
    const struct predict_spec *spec; /**< Borrowed, like the rest. */
    struct serving_slot *slot;
    struct intake *intake;      /**< Opened when there is a first serving. */
    size_t n_at_once;           /**< Finders that a serving with a detector needs; 0: 1. */
    struct heartbeat heartbeat; /**< What the server is told. */
};

/** Begins with what the folder holds. */
weir_status deployer_start(const struct deployer_config *config, struct deployer **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** The server is to hear at once how the replica stands. Any thread, until it stops. */
void deployer_notify(void *deployer);

/** Waits for the photo it is at. NULL is accepted. */
void deployer_stop(struct deployer *deployer);

#endif
