/**
 * Camera list: frames that lie in a directory source's folders, in the order they are to be taken.
 *
 * Of each camera the lowest CAMERA_FRAMES_MAX frames are held, by number; if a folder holds more,
 * the camera is marked to be read again when these are taken. Frames are given round-robin over the
 * cameras. One thread's.
 */
#ifndef WEIR_PREDICT_CAMERA_LIST_H
#define WEIR_PREDICT_CAMERA_LIST_H

#include "predict/intake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAMERA_FRAMES_MAX 1024
#define CAMERA_FILE_BYTES 64
#define CAMERAS_MAX       1024

struct camera_frame {
    int64_t number;
    char file[CAMERA_FILE_BYTES];
};

struct camera {
    char name[FRAME_CAMERA_BYTES];
    int watch;                   /**< The caller's (inotify). */
    struct camera_frame *frames; /**< By number. */
    size_t n, cap;
    int64_t first; /**< Lower numbers are not inserted: they were looked at and lie there still. */
    bool has_more; /**< The folder holds frames that are not in the list. */
};

struct camera_list {
    struct camera *cameras[CAMERAS_MAX];
    size_t n, i_next;
};

void camera_list_fini(struct camera_list *list);

/** The camera with this name, made if there is none; NULL if there are CAMERAS_MAX. */
struct camera *camera_list_add(struct camera_list *list, const char *name);
struct camera *camera_list_find(struct camera_list *list, const char *name);
struct camera *camera_list_by_watch(struct camera_list *list, int watch);
void camera_list_remove(struct camera_list *list, struct camera *camera);

/** Insert a frame; a number that is there already, or a name too long, changes nothing. */
void camera_insert(struct camera *camera, int64_t number, const char *file);

/** Take the next frame: the next camera that has one, its lowest. False if no camera has any. */
bool camera_list_take(struct camera_list *list, struct camera **out_camera,
                      struct camera_frame *out);

#endif
