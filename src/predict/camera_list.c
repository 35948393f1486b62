#include "predict/camera_list.h"

#include "base/arena.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static void camera_free(struct camera *camera)
{
    free(camera->frames);
    free(camera);
}

void camera_list_fini(struct camera_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        camera_free(list->cameras[i]);
    }
    list->n = 0;
}

struct camera *camera_list_find(struct camera_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->cameras[i]->name, name) == 0) {
            return list->cameras[i];
        }
    }
    return NULL;
}

struct camera *camera_list_by_watch(struct camera_list *list, int watch)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->cameras[i]->watch == watch) {
            return list->cameras[i];
        }
    }
    return NULL;
}

struct camera *camera_list_add(struct camera_list *list, const char *name)
{
    struct camera *camera = camera_list_find(list, name);
    if (camera != NULL || list->n == CAMERAS_MAX) {
        return camera;
    }
    camera = weir_xalloc(sizeof *camera);
    *camera = (struct camera){.watch = -1};
    (void)snprintf(camera->name, sizeof camera->name, "%s", name);
    list->cameras[list->n++] = camera;
    return camera;
}

void camera_list_remove(struct camera_list *list, struct camera *camera)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->cameras[i] == camera) {
            list->n--;
            memmove(&list->cameras[i], &list->cameras[i + 1],
                    (list->n - i) * sizeof(struct camera *));
            break;
        }
    }
    camera_free(camera);
}

void camera_insert(struct camera *camera, int64_t number, const char *file)
{
    size_t low = 0, high = camera->n;
    if (strlen(file) >= CAMERA_FILE_BYTES || number < camera->first) {
        return;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (camera->frames[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < camera->n && camera->frames[low].number == number) {
        return;
    }
    if (camera->n == CAMERA_FRAMES_MAX) {
        camera->has_more = true;
        camera->n -= low < camera->n;
    }
    if (camera->has_more && low >= camera->n) {
        return; /* Lower ones may lie in the folder unlisted: its turn comes with them. */
    }
    weir_xgrow(&camera->frames, sizeof *camera->frames, camera->n, &camera->cap);
    memmove(&camera->frames[low + 1], &camera->frames[low],
            (camera->n - low) * sizeof *camera->frames);
    camera->n++;
    camera->frames[low].number = number;
    (void)snprintf(camera->frames[low].file, CAMERA_FILE_BYTES, "%s", file);
}

bool camera_list_take(struct camera_list *list, struct camera **out_camera,
                      struct camera_frame *out)
{
    for (size_t k = 0; k < list->n; k++) {
        struct camera *camera = list->cameras[(list->i_next + k) % list->n];
        if (camera->n > 0) {
            *out = camera->frames[0];
            camera->n--;
            memmove(camera->frames, camera->frames + 1, camera->n * sizeof *camera->frames);
            list->i_next = (list->i_next + k + 1) % list->n;
            *out_camera = camera;
            return true;
        }
    }
    return false;
}
