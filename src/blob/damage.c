/* Blobs that were met damaged or missing. */
#include "blob/damage.h"

#include "blob/blob_private.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Under the lock. NULL: it is not noted. */
static struct blob_damage *find(struct weir_blobs *blobs, const char *sha256)
{
    for (size_t i = 0; i < blobs->n_damaged; i++) {
        if (strcmp(blobs->damaged[i].sha256, sha256) == 0) {
            return &blobs->damaged[i];
        }
    }
    return NULL;
}

static void note(struct weir_blobs *blobs, const struct blob_damage *met)
{
    pthread_mutex_lock(&blobs->lock);
    struct blob_damage *known = find(blobs, met->sha256);
    if (known == NULL && blobs->n_damaged < WEIR_BLOBS_DAMAGE_MAX) {
        known = &blobs->damaged[blobs->n_damaged++];
    }
    if (known != NULL) {
        *known = *met;
    }
    pthread_mutex_unlock(&blobs->lock);
}

void blob_note_damaged(struct weir_blobs *blobs, const char *sha256, const struct blob_seen *file)
{
    struct blob_damage met = {.file = *file};
    (void)snprintf(met.sha256, sizeof met.sha256, "%s", sha256);
    note(blobs, &met);
}

void weir_blob_note_missing(struct weir_blobs *blobs, const char *sha256)
{
    struct blob_damage met = {.missing_mono_ms = weir_mono_ms()};
    (void)snprintf(met.sha256, sizeof met.sha256, "%s", sha256);
    note(blobs, &met);
}

void blob_forget_damage(struct weir_blobs *blobs, const char *sha256)
{
    pthread_mutex_lock(&blobs->lock);
    struct blob_damage *known = find(blobs, sha256);
    if (known != NULL) {
        *known = blobs->damaged[--blobs->n_damaged];
    }
    pthread_mutex_unlock(&blobs->lock);
}

/* As it was noted? A file that has changed since is read again, which notes or forgets it. */
static bool is_still(struct weir_blobs *blobs, const struct blob_damage *met)
{
    struct stat info;
    char path[BLOB_PATH_MAX_BYTES];
    (void)snprintf(path, sizeof path, "%s/%.2s/%.64s", blobs->dir, met->sha256, met->sha256);
    if (stat(path, &info) != 0) {
        return met->missing_mono_ms != 0
                   ? weir_mono_ms() - met->missing_mono_ms < WEIR_BLOB_MISSING_MS
                   : errno != ENOENT; /* set aside */
    }
    return blob_is_as_seen(&met->file, &info) ||
           blob_check(blobs, met->sha256, path, &info, NULL) != WEIR_OK;
}

void weir_blobs_damage(struct weir_blobs *blobs, struct weir_blobs_damage *out)
{
    struct blob_damage met[WEIR_BLOBS_DAMAGE_MAX];
    *out = (struct weir_blobs_damage){0};
    pthread_mutex_lock(&blobs->lock);
    size_t n = blobs->n_damaged;
    memcpy(met, blobs->damaged, n * sizeof *met);
    pthread_mutex_unlock(&blobs->lock);
    for (size_t i = 0; i < n; i++) {
        if (!is_still(blobs, &met[i])) {
            blob_forget_damage(blobs, met[i].sha256);
        } else if (out->n++ == 0) {
            out->is_missing = met[i].missing_mono_ms != 0;
            memcpy(out->sha256, met[i].sha256, sizeof out->sha256);
        }
    }
}
