/* Copies of photos, and embeddings made of them, in the folders of the state folder that tasks write into. Tasks may
 * change these meanwhile, so each is walked by descriptors and no link is followed. */
#include "control/forget/forget_private.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX       64
#define CHUNK_BYTES     ((size_t)64 << 10)
#define DIGEST_LEN      (WEIR_SHA256_TEXT_BYTES - 1)
#define EMBEDDINGS_MARK "WEIREMB1"
#define DIM_MAX         65536

/** The form of a file of embeddings: predict/embedding_store.h. */
#define HEADER_BYTES  20
#define TRAILER_BYTES 4

static const char *const dirs[] = {"replicas", "sandbox",  "checkpoints", "results",
                                   "parts",    "services", "uploads",     "agent"};

/** A file that is looked at. */
struct looking {
    struct forget_work *work;
    const char *path; /**< For messages. */
    int64_t bytes;
};

static weir_status cannot(const struct looking *looking, const char *what, struct weir_error *err)
{
    return weir_error_set_errno(err, errno, "cannot %s %s", what, looking->path);
}

/* Is it, whole, a photo of the person? */
static weir_status is_copy(const struct looking *looking, FILE *stream, bool *out,
                           struct weir_error *err)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    struct weir_sha256_stream hash;
    size_t n;
    *out = false;
    if (!forget_has_size(looking->work, looking->bytes)) {
        return WEIR_OK;
    }
    char *chunk = weir_xalloc(CHUNK_BYTES);
    weir_sha256_begin(&hash);
    while ((n = fread(chunk, 1, CHUNK_BYTES, stream)) > 0) {
        weir_sha256_add(&hash, chunk, n);
    }
    weir_sha256_end(&hash, digest);
    free(chunk);
    if (ferror(stream)) {
        return cannot(looking, "read", err);
    }
    *out = forget_is_photo(looking->work, digest);
    return WEIR_OK;
}

/* Has it a row of the person? One that is not of the form has: it is made again from the photos that there are. */
static weir_status has_row(const struct looking *looking, FILE *stream, uint32_t dim, bool *out,
                           struct weir_error *err)
{
    int64_t row = DIGEST_LEN + (int64_t)dim * (int64_t)sizeof(float);
    int64_t rows = looking->bytes - HEADER_BYTES - TRAILER_BYTES;
    *out = dim > DIM_MAX || rows < 0 || rows % row != 0;
    if (*out) {
        return WEIR_OK;
    }
    char *text = weir_xalloc((size_t)row);
    for (int64_t at = 0; at < rows && !*out; at += row) {
        char digest[WEIR_SHA256_TEXT_BYTES] = {0};
        if (fread(text, 1, (size_t)row, stream) != (size_t)row) {
            free(text);
            *out = !ferror(stream); /* it became shorter */
            return ferror(stream) ? cannot(looking, "read", err) : WEIR_OK;
        }
        memcpy(digest, text, DIGEST_LEN);
        *out = forget_is_photo(looking->work, digest);
    }
    free(text);
    return WEIR_OK;
}

static weir_status has_embedding(const struct looking *looking, FILE *stream, bool *out,
                                 struct weir_error *err)
{
    char header[HEADER_BYTES];
    uint32_t dim;
    *out = false;
    if (looking->work->n_photos_known == 0 ||
        fread(header, 1, sizeof header, stream) != sizeof header ||
        memcmp(header, EMBEDDINGS_MARK, sizeof EMBEDDINGS_MARK - 1) != 0) {
        return ferror(stream) ? cannot(looking, "read", err) : WEIR_OK;
    }
    memcpy(&dim, header + sizeof EMBEDDINGS_MARK - 1, sizeof dim);
    return has_row(looking, stream, dim, out, err);
}

static weir_status look_at_stream(const struct looking *looking, int dir_fd, const char *name,
                                  FILE *stream, struct weir_error *err)
{
    struct forget_work *work = looking->work;
    bool is_embedding, is_photo = false;
    WEIR_TRY(has_embedding(looking, stream, &is_embedding, err));
    if (!is_embedding) {
        rewind(stream);
        WEIR_TRY(is_copy(looking, stream, &is_photo, err));
    }
    if (!is_embedding && !is_photo) {
        return WEIR_OK;
    }
    forget_step(work, "copy");
    if (unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT) {
        return cannot(looking, "remove", err);
    }
    work->n_cached += is_photo;
    work->n_embeddings += is_embedding;
    return WEIR_OK;
}

static weir_status look_at_file(struct forget_work *work, int dir_fd, const char *name,
                                const char *path, struct weir_error *err)
{
    struct looking looking = {.work = work, .path = path};
    struct stat info;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) { /* gone, or a link by now */
        return errno == ENOENT || errno == ELOOP ? WEIR_OK : cannot(&looking, "open", err);
    }
    FILE *stream =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 ? fdopen(fd, "r") : NULL;
    if (stream == NULL) {
        (void)close(fd);
        return WEIR_OK;
    }
    looking.bytes = info.st_size;
    weir_status status = look_at_stream(&looking, dir_fd, name, stream, err);
    (void)fclose(stream);
    return status;
}

static weir_status look_at_folder(struct forget_work *work, int dir_fd, const char *path, int depth,
                                  struct weir_error *err);

static weir_status look_at_entry(struct forget_work *work, int dir_fd, const char *name,
                                 const char *path, int depth, struct weir_error *err)
{
    struct stat info;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return WEIR_OK;
    }
    if (S_ISREG(info.st_mode)) {
        return look_at_file(work, dir_fd, name, path, err);
    }
    if (!S_ISDIR(info.st_mode)) {
        return WEIR_OK;
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? look_at_folder(work, fd, path, depth + 1, err) : WEIR_OK;
}

/* Takes the descriptor. */
static weir_status look_at_folder(struct forget_work *work, int dir_fd, const char *path, int depth,
                                  struct weir_error *err)
{
    weir_status status = WEIR_OK;
    DIR *stream = fdopendir(dir_fd);
    if (stream == NULL || depth > DEPTH_MAX) {
        status = weir_error_set(err, WEIR_ERR_IO, "cannot look through %s%s", path,
                                stream != NULL ? ": it is too deep" : "");
    }
    for (struct dirent *entry; status == WEIR_OK && (entry = readdir(stream)) != NULL;) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        status = look_at_entry(work, dirfd(stream), entry->d_name,
                               weir_arena_printf(&arena, "%s/%s", path, entry->d_name), depth, err);
        weir_arena_fini(&arena);
    }
    if (stream != NULL) {
        (void)closedir(stream);
    } else {
        (void)close(dir_fd);
    }
    return status;
}

weir_status forget_copies(struct forget_work *work, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(dirs); i++) {
        const char *path =
            weir_arena_printf(work->arena, "%s/%s", work->forget->state_dir, dirs[i]);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT) {
            return weir_error_set_errno(err, errno, "reading %s", path);
        }
        if (fd >= 0) {
            WEIR_TRY(look_at_folder(work, fd, path, 0, err));
        }
    }
    return WEIR_OK;
}
