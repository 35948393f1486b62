#include "predict/ignored.h"

#include "predict/camera_list.h"
#include "predict/source.h"

#include "base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* of folders below a camera's */

/** One place that is being looked at. */
struct counting {
    const struct ignored_look *look;
    size_t *n_left; /* entries that may still be read */
    size_t n;
    char why[IGNORED_TEXT_BYTES];
};

static void note(struct counting *counting, const char *folder, const char *file, const char *why)
{
    if (counting->n++ == 0) {
        (void)snprintf(counting->why, sizeof counting->why, "%.80s%s%.80s: %s", folder,
                       *folder != '\0' ? "/" : "", file, why);
    }
}

/* A file that nobody writes to any more; false of folders, too. */
static bool is_settled_file(const struct ignored_look *look, int dir_fd, const char *name,
                            bool *out_is_dir)
{
    struct stat st;
    *out_is_dir = false;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    *out_is_dir = S_ISDIR(st.st_mode);
    int64_t changed_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    int64_t age_ms = look->now_ms - changed_ms;
    return !*out_is_dir && (age_ms >= IGNORED_SETTLE_MS || age_ms < -IGNORED_SETTLE_MS);
}

static DIR *open_folder(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL && fd >= 0) {
        close(fd);
    }
    return stream;
}

static const struct dirent *next_of(DIR *stream, size_t *n_left)
{
    const struct dirent *entry;
    while (*n_left > 0 && (entry = readdir(stream)) != NULL) {
        (*n_left)--;
        if (!weir_name_is_hidden(entry->d_name)) {
            return entry;
        }
    }
    return NULL;
}

/* Every file in the folder and below it. */
static void count_all(struct counting *counting, int dir_fd, const char *name, const char *why,
                      int depth)
{
    const struct dirent *entry;
    DIR *stream = depth < DEPTH_MAX ? open_folder(dir_fd, name) : NULL;
    while (stream != NULL && (entry = next_of(stream, counting->n_left)) != NULL) {
        bool is_dir;
        if (is_settled_file(counting->look, dirfd(stream), entry->d_name, &is_dir)) {
            note(counting, name, entry->d_name, why);
        } else if (is_dir) {
            count_all(counting, dirfd(stream), entry->d_name, why, depth + 1);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

static void count_camera(struct counting *counting, int root_fd, const char *camera)
{
    int64_t number;
    const struct dirent *entry;
    DIR *stream = open_folder(root_fd, camera);
    while (stream != NULL && (entry = next_of(stream, counting->n_left)) != NULL) {
        bool is_dir, is_frame = source_frame_number(entry->d_name, &number);
        bool is_long = strlen(entry->d_name) >= CAMERA_FILE_BYTES;
        if (is_frame && !is_long && entry->d_type == DT_REG) {
            continue;
        }
        if (is_settled_file(counting->look, dirfd(stream), entry->d_name, &is_dir) &&
            (!is_frame || is_long)) {
            note(counting, camera, entry->d_name,
                 is_frame ? "its name is too long for a frame's; call it by its number, as in "
                            "000123.jpg"
                          : "its name is no number; call frames by their numbers, as in "
                            "000123.jpg");
        } else if (is_dir) {
            count_all(counting, dirfd(stream), entry->d_name,
                      "frames lie in the camera's folder itself, not in folders below it", 0);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

/* What was counted at a place is told, and added up. */
static void settle(const struct counting *counting, const char *camera, size_t *n,
                   char why[IGNORED_TEXT_BYTES])
{
    const struct ignored_look *look = counting->look;
    if (counting->n == 0) {
        return;
    }
    if (*n == 0) {
        memcpy(why, counting->why, IGNORED_TEXT_BYTES);
    }
    *n += counting->n;
    if (look->found != NULL) {
        look->found(look->context, &(struct ignored_place){camera, counting->n, counting->why});
    }
}

size_t ignored_count(const struct ignored_look *look, char why[IGNORED_TEXT_BYTES])
{
    size_t n = 0, n_left = IGNORED_ENTRIES_MAX;
    struct counting beside = {.look = look, .n_left = &n_left};
    const struct dirent *entry;
    DIR *stream = open_folder(AT_FDCWD, look->path);
    why[0] = '\0';
    while (stream != NULL && (entry = next_of(stream, &n_left)) != NULL) {
        bool is_dir = false;
        bool is_file = is_settled_file(look, dirfd(stream), entry->d_name, &is_dir);
        is_dir = is_dir || entry->d_type == DT_LNK;
        if (is_dir && frame_camera_is_valid(entry->d_name)) {
            struct counting counting = {.look = look, .n_left = &n_left};
            if (look->is_ours(look->context, entry->d_name)) {
                count_camera(&counting, dirfd(stream), entry->d_name);
            }
            settle(&counting, entry->d_name, &n, why);
        } else if (is_dir && look->is_first) {
            count_all(&beside, dirfd(stream), entry->d_name,
                      "the name of its folder is no camera's (1 to 63 bytes of UTF-8)", 0);
        } else if (is_file && look->is_first) {
            note(&beside, "", entry->d_name,
                 "it lies beside the cameras' folders; put it into one, as in CAMERA/000123.jpg");
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    settle(&beside, NULL, &n, why);
    return n;
}
