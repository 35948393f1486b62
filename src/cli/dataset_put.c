#include "cli/dataset_put.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/picture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((off_t)64 << 20) /* of the server's route */
#define SHOWN_MAX      10

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add(struct put_list *list, struct weir_arena *arena, struct put_file file)
{
    weir_arena_grow(arena, &list->items, sizeof *list->items, list->n, &list->cap);
    list->items[list->n++] = file;
}

static weir_status read_folder(struct put_list *list, const char *folder, const char *class_name,
                               struct weir_arena *arena, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    weir_status status = WEIR_OK;
    for (int i = 0; i < n; i++) {
        char *path = weir_arena_printf(arena, "%s/%s", folder, entries[i]->d_name);
        char *name = weir_arena_strdup(arena, entries[i]->d_name);
        bool is_dir = weir_path_is_dir(path);
        if (status == WEIR_OK && is_dir && class_name == NULL) {
            list->n_classes++;
            status = read_folder(list, path, name, arena, err);
        } else if (is_dir) {
            list->folder = list->n_folders++ == 0 ? path : list->folder;
        } else if (class_name != NULL) {
            add(list, arena, (struct put_file){path, class_name, name});
        } else {
            list->n_loose++;
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* There is no file: the sentence says what is there, and what is wanted. */
static weir_status nothing(const struct put_list *list, const char *folder, const char *class_name,
                           struct weir_error *err)
{
    if (list->n_loose > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s has %zu file%s and no class folder with files: make one folder "
                              "per class, or name the class: weir dataset put NAME %s CLASS",
                              folder, list->n_loose, plural(list->n_loose), folder);
    }
    if (list->n_folders > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s has no files %s: they seem to lie deeper, in %s; put the folder "
                              "that holds %s",
                              folder, class_name != NULL ? "of its own" : "in its class folders",
                              list->folder, class_name != NULL ? "them" : "the class folders");
    }
    if (class_name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s has no files: there is nothing to put",
                              folder);
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "%s has %s: there is nothing to put; expected one sub-folder per class, "
                          "with files",
                          folder, list->n_classes > 0 ? "only empty folders" : "no files");
}

weir_status put_list_read(struct put_list *list, const char *folder, const char *class_name,
                          struct weir_arena *arena, struct weir_error *err)
{
    WEIR_TRY(read_folder(list, folder, class_name, arena, err));
    return list->n > 0 ? WEIR_OK : nothing(list, folder, class_name, err);
}

const char *put_list_left_out(const struct put_list *list, struct weir_arena *arena)
{
    const char *loose = list->n_loose > 0
                            ? weir_arena_printf(arena, "%zu file%s beside the class folders",
                                                list->n_loose, plural(list->n_loose))
                            : NULL;
    const char *folders =
        list->n_folders > 0
            ? weir_arena_printf(arena, "%zu folder%s below a class, as %s", list->n_folders,
                                plural(list->n_folders), list->folder)
            : NULL;
    if (loose == NULL && folders == NULL) {
        return NULL;
    }
    return weir_arena_printf(arena, "%s%s%s: left out", loose != NULL ? loose : "",
                             loose != NULL && folders != NULL ? " and " : "",
                             folders != NULL ? folders : "");
}

/* Why this file cannot be sent; NULL: it can. *out_seems: what seems to be wrong with the picture, if it is one. */
static const char *problem_of(const char *path, const char **out_seems, bool *out_is_other)
{
    struct stat st;
    unsigned char head[WEIR_PICTURE_HEAD_BYTES], tail[WEIR_PICTURE_TAIL_BYTES];
    *out_seems = NULL;
    *out_is_other = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno == EACCES ? "may not be read" : strerror(errno);
    }
    const char *problem = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        problem = "is no file";
    } else if (st.st_size == 0) {
        problem = "is empty";
    } else if (st.st_size > FILE_MAX_BYTES) {
        problem = "is larger than 64 MiB";
    } else {
        ssize_t n_head = pread(fd, head, sizeof head, 0);
        ssize_t n_tail =
            pread(fd, tail, sizeof tail, WEIR_MAX(st.st_size - (off_t)sizeof tail, (off_t)0));
        if (n_head <= 0 || n_tail <= 0) {
            problem = "cannot be read";
        } else {
            *out_seems = weir_picture_problem(head, (size_t)n_head, tail, (size_t)n_tail,
                                              (uint64_t)st.st_size);
            *out_is_other = !weir_picture_is_meant(path, head, (size_t)n_head);
        }
    }
    (void)close(fd);
    return problem;
}

/* "ada/1.png is empty, ada/2.png is cut off and 3 more": one more of them. */
static void name_one(char **text, size_t n, const struct put_file *file, const char *problem,
                     struct weir_arena *arena)
{
    if (n < SHOWN_MAX) {
        *text = weir_arena_printf(arena, "%s%s%s/%s %s", n > 0 ? *text : "", n > 0 ? ", " : "",
                                  file->class_name, file->name, problem);
    }
}

static const char *with_rest(const char *text, size_t n, struct weir_arena *arena)
{
    return n > SHOWN_MAX ? weir_arena_printf(arena, "%s and %zu more", text, n - SHOWN_MAX) : text;
}

weir_status put_list_check(const struct put_list *list, bool has_pictures, struct weir_arena *arena,
                           const char **out_damaged, size_t *out_n_damaged, size_t *out_n_other,
                           struct weir_error *err)
{
    char *bad = NULL, *damaged = NULL;
    size_t n_bad = 0, n_damaged = 0, n_other = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool is_other;
        const char *seems, *problem = problem_of(list->items[i].path, &seems, &is_other);
        if (problem != NULL) {
            name_one(&bad, n_bad++, &list->items[i], problem, arena);
        } else if (is_other && has_pictures) {
            n_other++;
        } else if (seems != NULL && has_pictures) {
            name_one(&damaged, n_damaged++, &list->items[i], seems, arena);
        }
    }
    if (n_bad > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%zu of %zu files cannot be put, so none was: %s", n_bad, list->n,
                              with_rest(bad, n_bad, arena));
    }
    *out_damaged = n_damaged > 0 ? with_rest(damaged, n_damaged, arena) : NULL;
    *out_n_damaged = n_damaged;
    *out_n_other = n_other;
    return WEIR_OK;
}
