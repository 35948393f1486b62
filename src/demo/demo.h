/**
 * Demo: plays an example as a user would, through the REST API. The program weir-demo; `weir demo`
 * starts it.
 *
 * A *stage* is the demo's work folder: people's photos, the folder the cameras write to, the ledger
 * of what was sent. *Passers-by* are people whose photos become the dataset of impostors; impostors
 * who come to the cameras are other people. The *cameras* are threads that write frames and note
 * each in the ledger before it can be seen. The *report* compares the ledger with the recorded
 * decisions, never with counters of the cameras.
 */
#ifndef WEIR_DEMO_DEMO_H
#define WEIR_DEMO_DEMO_H

#include "cli/command.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define DEMO_MAX_PEOPLE  256
#define DEMO_MAX_PASSERS 512
#define DEMO_MAX_CAMERAS 16
#define DEMO_MAX_PHOTOS  64

enum demo_part {
    DEMO_UNKNOWN, /**< In no gallery: the right answer is "unknown". */
    DEMO_STAFF,   /**< Enrolled from the start. */
    DEMO_JOINER,  /**< Enrolled while frames flow. */
    DEMO_PASSER,  /**< An impostor too, by whom the threshold is set; never comes to a camera. */
};

/** One person of the demo. Photos are numbered; the first few are enrolled, the others shown. */
struct demo_person {
    char *name;
    enum demo_part part;
    uint32_t n_photos;
    uint32_t number; /**< Of the face, if drawn. */
    char **files;    /**< Of --faces; NULL: drawn. */
    /* What the server has been told, for judging decisions. 0: not yet. */
    _Atomic int64_t enrolled_version; /**< First gallery version that has the person. */
    _Atomic int64_t barred_revision;  /**< First list revision that bars the person. */
};

struct demo_options {
    struct cli_common common;
    char *faces, *example, *work;
    bool is_once;
    int64_t seed, people, photos, passers, cameras;
    double frames_per_second, seconds;
};

struct demo {
    struct cli_call *call;
    const struct demo_options *options;
    char *example_dir, *work_dir, *frames_dir, *ledger_path, *sink_path;
    const char *ion, *dataset, *impostors; /**< Names, from the example's ion.yaml. */
    struct demo_person people[DEMO_MAX_PEOPLE];
    struct demo_person passers[DEMO_MAX_PASSERS];
    size_t n_people, n_enrolled_photos, n_passers;
    int64_t started_ms;
    int64_t first_seq;   /**< Decisions up to here are of earlier runs. */
    int64_t first_frame; /**< Cameras count from here: later runs never repeat a number. */
    pthread_t cameras[DEMO_MAX_CAMERAS];
    size_t n_cameras;
    atomic_bool is_stopping;
    pthread_mutex_t ledger_lock;
    int ledger_fd;
};

/** The command that weir-demo is. */
extern const struct cli_command weir_demo;

/** Find or draw the people; write photos of those who are enrolled below the work folder. */
weir_status demo_cast(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Write the photos of the passers-by below the work folder. */
weir_status demo_cast_passers(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Photos of a person that are uploaded: the first few, or of a passer-by a few more. */
uint32_t demo_uploaded_photos(const struct demo *demo, const struct demo_person *person);

/** Path of photo i of a person (i < n_photos). In the arena of the calling thread's choice. */
weir_status demo_photo(const struct demo *demo, const struct demo_person *person, uint32_t i_photo,
                       uint8_t *out, size_t max, size_t *out_len,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Start and stop the camera threads. Frames wait in the folder while no replica reads them. */
weir_status demo_cameras_start(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;
void demo_cameras_stop(struct demo *demo);

/** Compare ledger and decisions and print the result. @return UNAVAILABLE if a frame was lost or
 *  doubled. */
weir_status demo_report(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Say what happens, on standard error (standard output belongs to the report). */
void demo_say(const char *fmt, ...) WEIR_PRINTF(1, 2);

#endif
