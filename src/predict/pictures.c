#include "predict/pictures.h"

#include "base/file.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pictures {
    char *dir;
    pthread_mutex_t lock;
    char (*ids)[WEIR_UUID_BYTES]; /**< Ring, oldest first. */
    size_t max, n, i_first;
};

const char *pictures_path(const struct pictures *pictures, const char *id,
                          char out[PICTURE_PATH_BYTES])
{
    (void)snprintf(out, PICTURE_PATH_BYTES, "%s/%s.jpg", pictures->dir, id);
    return out;
}

static void drop_oldest(struct pictures *pictures)
{
    char path[PICTURE_PATH_BYTES];
    (void)unlink(pictures_path(pictures, pictures->ids[pictures->i_first], path));
    pictures->i_first = (pictures->i_first + 1) % pictures->max;
    pictures->n--;
}

static void remember(struct pictures *pictures, const char *id)
{
    if (pictures->n == pictures->max) {
        drop_oldest(pictures);
    }
    char *slot = pictures->ids[(pictures->i_first + pictures->n) % pictures->max];
    (void)snprintf(slot, WEIR_UUID_BYTES, "%s", id);
    pictures->n++;
}

static int is_picture(const struct dirent *entry)
{
    char id[WEIR_UUID_BYTES];
    (void)snprintf(id, sizeof id, "%.36s", entry->d_name);
    return strlen(entry->d_name) == 40 && strcmp(entry->d_name + 36, ".jpg") == 0 &&
           weir_uuid_is_valid(id);
}

/* What an earlier process left: names sort by time. */
static weir_status remember_left(struct pictures *pictures, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(pictures->dir, &entries, is_picture, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "%s", pictures->dir);
    }
    for (int i = 0; i < n; i++) {
        entries[i]->d_name[36] = '\0';
        remember(pictures, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return WEIR_OK;
}

weir_status pictures_open(const char *dir, size_t max, struct pictures **out,
                          struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(dir, 0700, err));
    struct pictures *pictures = weir_xalloc(sizeof *pictures);
    *pictures = (struct pictures){.dir = weir_xstrdup(dir), .max = max};
    pictures->ids = weir_xalloc(max * sizeof *pictures->ids);
    pthread_mutex_init(&pictures->lock, NULL);
    weir_status status = remember_left(pictures, err);
    if (status != WEIR_OK) {
        pictures_close(pictures);
        return status;
    }
    *out = pictures;
    return WEIR_OK;
}

void pictures_close(struct pictures *pictures)
{
    if (pictures == NULL) {
        return;
    }
    pthread_mutex_destroy(&pictures->lock);
    free(pictures->ids);
    free(pictures->dir);
    free(pictures);
}

weir_status picture_encode(const struct weir_image *image, struct weir_buf *out,
                           struct weir_error *err)
{
    int longest = WEIR_MAX(image->width, image->height);
    if (longest <= PICTURE_SIDE_MAX) {
        return weir_image_encode(image, WEIR_IMAGE_FORMAT_JPEG, PICTURE_QUALITY, out, err);
    }
    struct weir_image small;
    int width = WEIR_MAX(1, image->width * PICTURE_SIDE_MAX / longest);
    int height = WEIR_MAX(1, image->height * PICTURE_SIDE_MAX / longest);
    WEIR_TRY(weir_image_resize(image, width, height, &small, err));
    weir_status status =
        weir_image_encode(&small, WEIR_IMAGE_FORMAT_JPEG, PICTURE_QUALITY, out, err);
    weir_image_fini(&small);
    return status;
}

weir_status pictures_put(struct pictures *pictures, const char *id, const void *bytes, size_t len,
                         struct weir_error *err)
{
    char path[PICTURE_PATH_BYTES];
    WEIR_TRY(weir_file_write(pictures_path(pictures, id, path), bytes, len, 0600, err));
    pthread_mutex_lock(&pictures->lock);
    remember(pictures, id);
    pthread_mutex_unlock(&pictures->lock);
    return WEIR_OK;
}

void pictures_remove(struct pictures *pictures, const char *id)
{
    char path[PICTURE_PATH_BYTES];
    (void)unlink(pictures_path(pictures, id, path));
    pthread_mutex_lock(&pictures->lock);
    /* Pictures are shipped in order; one removed out of order leaves a name that means nothing. */
    if (pictures->n > 0 && strcmp(pictures->ids[pictures->i_first], id) == 0) {
        pictures->i_first = (pictures->i_first + 1) % pictures->max;
        pictures->n--;
    }
    pthread_mutex_unlock(&pictures->lock);
}
