#include "cli/data/dataset_put.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/path.h"
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
    return !weir_name_is_hidden(entry->d_name);
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

/* Of one file. */
struct verdict {
    const char *problem; /* why it cannot be sent; NULL: it can */
    bool is_lost;        /* there is something in it that is not sent */
    bool is_other;       /* it is not meant to be a picture */
    const char *seems;   /* what seems to be wrong with the picture; NULL: nothing */
};

static struct verdict look_at(const char *path, int fd)
{
    struct stat st;
    unsigned char head[WEIR_PICTURE_HEAD_BYTES], tail[WEIR_PICTURE_TAIL_BYTES];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return (struct verdict){.problem = "is no file"};
    }
    if (st.st_size == 0) {
        return (struct verdict){.problem = "is empty"};
    }
    if (st.st_size > FILE_MAX_BYTES) {
        return (struct verdict){.problem = "is larger than 64 MiB", .is_lost = true};
    }
    ssize_t n_head = pread(fd, head, sizeof head, 0);
    ssize_t n_tail =
        pread(fd, tail, sizeof tail, WEIR_MAX(st.st_size - (off_t)sizeof tail, (off_t)0));
    if (n_head <= 0 || n_tail <= 0) {
        return (struct verdict){.problem = "cannot be read", .is_lost = true};
    }
    return (struct verdict){.is_other = !weir_picture_is_meant(path, head, (size_t)n_head),
                            .seems = weir_picture_problem(head, (size_t)n_head, tail,
                                                          (size_t)n_tail, (uint64_t)st.st_size)};
}

static struct verdict look_at_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        bool is_nothing = errno == ENXIO; /* a socket */
        return (struct verdict){.problem = errno == EACCES   ? "may not be read"
                                           : errno == ENOENT ? "is a link to nothing"
                                           : is_nothing      ? "is no file"
                                                             : strerror(errno),
                                .is_lost = !is_nothing};
    }
    struct verdict verdict = look_at(path, fd);
    (void)close(fd);
    return verdict;
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

/* NULL of none. */
static const char *with_rest(const char *text, size_t n, struct weir_arena *arena)
{
    return n > SHOWN_MAX ? weir_arena_printf(arena, "%s and %zu more", text, n - SHOWN_MAX) : text;
}

weir_status put_list_check(struct put_list *list, bool has_pictures, struct weir_arena *arena,
                           struct put_check *out, struct weir_error *err)
{
    char *bad = NULL, *damaged = NULL;
    struct put_check check = {0};
    size_t n = list->n;
    list->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct put_file *file = &list->items[i];
        struct verdict verdict = look_at_path(file->path);
        if (verdict.problem != NULL) {
            name_one(&bad, check.n_left_out++, file, verdict.problem, arena);
            check.n_lost += verdict.is_lost;
            continue;
        }
        if (verdict.is_other && has_pictures) {
            check.n_other++;
        } else if (verdict.seems != NULL && has_pictures) {
            name_one(&damaged, check.n_damaged++, file, verdict.seems, arena);
        }
        list->items[list->n++] = *file;
    }
    check.left_out = with_rest(bad, check.n_left_out, arena);
    check.damaged = with_rest(damaged, check.n_damaged, arena);
    if (list->n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "none of %zu file%s can be put: %s", n,
                              plural(n), check.left_out);
    }
    *out = check;
    return WEIR_OK;
}
