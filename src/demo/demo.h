/**
 * Demo: plays an example as a user would, through the REST API. The program weir-demo; `weir demo`
 * starts it. Its other play is a camera of the network, for people who have none at hand.
 *
 * A *stage* is the demo's work folder: people's photos, the folder the cameras write to, the ledger
 * of what was sent. *Passers-by* are people whose photos become the dataset of impostors; impostors
 * who come to the cameras are other people. The *cameras* are threads. They write frames, each of them a decision, or send them where
 * no node sees this machine's folders; or, where
 * weir-camera is installed and a detector has been learnt, they stream people who walk by (film.h, stream.h), each *passage* a decision.
 * They note frame or passage in the ledger before it can be seen. The *report* compares the ledger with the recorded decisions,
 * never with counters of the cameras.
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
#define DEMO_MAX_BYTES   ((size_t)1 << 20) /* of a document */

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
    uint32_t number; /**< The number that the face is drawn from. */
    char **files;    /**< The photos in --faces; NULL: they are drawn. */
    /* What the server has been told, for judging decisions. 0: not yet. */
    _Atomic int64_t enrolled_version; /**< First gallery version that has the person. */
    _Atomic int64_t barred_revision;  /**< First list revision that bars the person. */
};

struct camera_kind;
struct demo_streams;

struct demo_options {
    struct cli_common common;
    char *faces, *example, *work, *listen, *login;
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
    size_t n_people, n_passers;
    /** The first so many photos of each person are enrolled; 0: nobody is enrolled anywhere. */
    size_t n_enrolled_photos;
    int64_t started_ms;
    int64_t first_seq;   /**< Decisions up to here are of earlier runs. */
    int64_t first_frame; /**< Cameras count from here: later runs never repeat a number. */
    const struct camera_kind *kind; /**< How the cameras that run show something. */
    bool is_apart;                  /**< No node sees this machine's folders. */
    const char *token;            /**< Shown to the replica with each frame; NULL: none is sent. */
    struct demo_streams *streams; /**< NULL: they stream nothing. */
    int streams_port;
    pthread_t cameras[DEMO_MAX_CAMERAS];
    size_t n_cameras;
    atomic_bool is_stopping;
    pthread_mutex_t ledger_lock;
    int ledger_fd;
};

/** The command that weir-demo is. */
extern const struct cli_command weir_demo;

/** Find or draw the people, of whom n_enrolled_photos each are to be enrolled. */
weir_status demo_cast(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Write photos of those who are enrolled below the work folder. */
weir_status demo_cast_write(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Write the photos of the passers-by below the work folder. */
weir_status demo_cast_passers(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Photos of a person that are uploaded: the first few, or of a passer-by a few more. */
uint32_t demo_uploaded_photos(const struct demo *demo, const struct demo_person *person);

/** Path of photo i of a person (i < n_photos). In the arena of the calling thread's choice. */
weir_status demo_photo(const struct demo *demo, const struct demo_person *person, uint32_t i_photo,
                       uint8_t *out, size_t max, size_t *out_len,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Begin the ledger again. */
weir_status demo_ledger_open(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** The document's source takes requests, and knows those of the cameras. */
weir_status demo_requests_put(struct demo *demo, json_t *document,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Start the camera threads: camera_of_folder, which leaves its frames in the folder until a replica reads them,
 * camera_of_requests, which sends them to the replica, or camera_of_stream, to which nobody comes while nobody watches
 * (cameras.h).
 */
weir_status demo_cameras_start(struct demo *demo, const struct camera_kind *kind,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Stop them: a person who is in a picture leaves it first. */
void demo_cameras_stop(struct demo *demo);

/** Open the streams of the cameras, at options->listen, for those who know options->login. */
weir_status demo_streams_start(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** What camera i is called. */
char *demo_camera_name(struct weir_arena *arena, size_t i_camera);

/* ---- from frames to video: video.c ----------------------------------------------------------- */

/** Is weir-camera installed, and has the example a document for it? */
bool demo_video_is_there(const struct demo *demo);

/** Add the pipeline that learns the detector to the ION's document. Nothing runs by that. */
weir_status demo_video_add_finder(struct demo *demo, json_t *document,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Let the detector be learnt. */
weir_status demo_video_learn(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** When the detector is there: no frames any more, and cameras that stream. @return CANCELLED by a signal. */
weir_status demo_video_switch(struct demo *demo, int signal_fd,
                              struct weir_error *err) WEIR_MUST_CHECK;

/* ---- steps: demo.c --------------------------------------------------------------------------- */

weir_status demo_get(struct demo *demo, const char *path, json_t **out,
                     struct weir_error *err) WEIR_MUST_CHECK;

/** A request with a body, which is the call's from here on; NULL: without. */
weir_status demo_send(struct demo *demo, const char *method, const char *path, json_t *body,
                      json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Wait with an ear for SIGINT: CANCELLED then. */
weir_status demo_pause_ms(int signal_fd, int64_t ms);

/** A document of the example, for this stage. */
weir_status demo_read_ion(struct demo *demo, const char *file, json_t **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Have a pipeline run. */
weir_status demo_trigger(struct demo *demo, const char *pipeline,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Wait until what the cameras have shown is decided, a minute at most: what is not decided then is lost. */
weir_status demo_catch_up(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Compare ledger and decisions and print the result. @return UNAVAILABLE if a frame or passage was lost or
 *  doubled. */
weir_status demo_report(struct demo *demo, struct weir_error *err) WEIR_MUST_CHECK;

/** Say what happens, on standard error (standard output belongs to the report). */
void demo_say(const char *fmt, ...) WEIR_PRINTF(1, 2);

#endif
