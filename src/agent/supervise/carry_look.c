#include "agent/supervise/carry_look.h"

#include "agent/supervise/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MAX_BYTES ((size_t)16 << 20)
#define PATH_BYTES       4096
#define SECOND_NS        INT64_C(1000000000)

struct look {
    bool is_atomic;
    struct weir_arena *arena;
    struct carry_view *view;
    struct weir_error *err;
};

static void add(struct carry_view *view, const struct carry_file *file, struct weir_arena *arena)
{
    if (view->n == view->n_room) {
        view->n_room = view->n_room > 0 ? 2 * view->n_room : 64;
        struct carry_file *grown = WEIR_ARENA_ARRAY(arena, view->n_room, struct carry_file);
        if (view->n > 0) {
            memcpy(grown, view->files, view->n * sizeof *grown);
        }
        view->files = grown;
    }
    view->files[view->n++] = *file;
}

static int by_path(const void *a, const void *b)
{
    const struct carry_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void sort(struct carry_view *view)
{
    if (view->n > 1) {
        qsort(view->files, view->n, sizeof *view->files, by_path);
    }
}

static int64_t changed_ns(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * SECOND_NS + info->st_mtim.tv_nsec;
}

/* As weir_file_write_atomic and the files of models call it. */
static bool is_temporary(const char *name)
{
    static const char end[] = ".tmp";
    size_t len = strlen(name);
    return len >= sizeof end && strcmp(name + len - (sizeof end - 1), end) == 0;
}

static weir_status look_into(struct look *look, int fd, const char *inside, int depth);

static weir_status look_at(struct look *look, int folder_fd, const char *name, const char *inside,
                           int depth)
{
    struct stat info;
    const char *path =
        weir_arena_printf(look->arena, "%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    if (fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return WEIR_OK; /* gone meanwhile */
    }
    if (S_ISDIR(info.st_mode) && depth < CARRY_DEPTH_MAX) {
        int fd = helper_open_beneath(folder_fd, name, O_DIRECTORY);
        return fd >= 0 ? look_into(look, fd, path, depth + 1) : WEIR_OK;
    }
    if (!S_ISREG(info.st_mode) || (look->is_atomic && is_temporary(name))) {
        return WEIR_OK;
    }
    if (look->view->n == CARRY_FILES_MAX) {
        return weir_error_set(look->err, WEIR_ERR_LIMIT,
                              "more than %d files lie in the folder of checkpoints",
                              CARRY_FILES_MAX);
    }
    add(look->view,
        &(struct carry_file){path, info.st_size, changed_ns(&info), (int64_t)info.st_ino},
        look->arena);
    return WEIR_OK;
}

/* Takes the descriptor. */
static weir_status look_into(struct look *look, int fd, const char *inside, int depth)
{
    DIR *dir = fdopendir(fd);
    weir_status status = WEIR_OK;
    if (dir == NULL) {
        int errno_value = errno;
        close(fd);
        return weir_error_set_errno(look->err, errno_value,
                                    "cannot list the folder of checkpoints");
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = look_at(look, dirfd(dir), entry->d_name, inside, depth);
        }
    }
    struct stat info; /* when all its names were read: what changed meanwhile is seen */
    if (fstat(dirfd(dir), &info) == 0) {
        look->view->folders_changed_ns =
            WEIR_MAX(look->view->folders_changed_ns, changed_ns(&info));
    }
    closedir(dir);
    return status;
}

weir_status carry_look(int folder_fd, bool is_atomic, struct weir_arena *arena,
                       struct carry_view *out, struct weir_error *err)
{
    struct look look = {is_atomic, arena, out, err};
    *out = (struct carry_view){0};
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open the folder of checkpoints");
    }
    WEIR_TRY(look_into(&look, fd, "", 0));
    sort(out);
    return WEIR_OK;
}

/* ---- what differs ------------------------------------------------------------------------------ */

static const struct carry_file *find(const struct carry_view *view, const char *path)
{
    const struct carry_file key = {.path = path};
    return view->n > 0 ? bsearch(&key, view->files, view->n, sizeof *view->files, by_path) : NULL;
}

static bool is_same(const struct carry_file *a, const struct carry_file *b)
{
    return a->bytes == b->bytes && a->changed_ns == b->changed_ns && a->number == b->number;
}

static int by_time(const void *a, const void *b)
{
    const struct carry_file *x = a, *y = b;
    return (x->changed_ns > y->changed_ns) - (x->changed_ns < y->changed_ns);
}

void carry_compare(const struct carry_record *record, const struct carry_view *view,
                   struct weir_arena *arena, struct carry_change *out)
{
    *out =
        (struct carry_change){.puts = WEIR_ARENA_ARRAY(arena, view->n + 1, struct carry_file),
                              .removed = WEIR_ARENA_ARRAY(arena, record->view.n + 1, const char *)};
    for (size_t i = 0; i < view->n; i++) {
        const struct carry_file *known = find(&record->view, view->files[i].path);
        if (known == NULL || !is_same(known, &view->files[i])) {
            out->puts[out->n_puts++] = view->files[i];
        }
    }
    for (size_t i = 0; i < record->view.n; i++) {
        if (find(view, record->view.files[i].path) == NULL) {
            out->removed[out->n_removed++] = record->view.files[i].path;
        }
    }
    if (out->n_puts > 1) {
        qsort(out->puts, out->n_puts, sizeof *out->puts, by_time);
    }
}

bool carry_is_young(int64_t time_ns, int64_t since_ns, int64_t now_ns)
{
    return time_ns > since_ns && time_ns <= now_ns + SECOND_NS;
}

size_t carry_leave_young(struct carry_change *change, int64_t since_ns, int64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < change->n_puts; i++) {
        if (!carry_is_young(change->puts[i].changed_ns, since_ns, now_ns)) {
            change->puts[n++] = change->puts[i];
        }
    }
    size_t n_young = change->n_puts - n;
    change->n_puts = n;
    return n_young;
}

void carry_record_apply(struct carry_record *record, const struct carry_change *change,
                        struct weir_arena *arena)
{
    struct carry_view next = {0}, puts = {0};
    size_t n_removed = 0; /* they have the record's order */
    for (size_t i = 0; i < change->n_puts; i++) {
        add(&puts, &change->puts[i], arena);
    }
    sort(&puts);
    for (size_t i = 0; i < record->view.n; i++) {
        const struct carry_file *file = &record->view.files[i];
        if (n_removed < change->n_removed && change->removed[n_removed] == file->path) {
            n_removed++;
        } else if (find(&puts, file->path) == NULL) {
            add(&next, file, arena);
        }
    }
    for (size_t i = 0; i < puts.n; i++) {
        add(&next, &puts.files[i], arena);
    }
    sort(&next);
    record->view = next;
}

/* ---- the record -------------------------------------------------------------------------------- */

static const char *record_path(const char *folder, char out[PATH_BYTES])
{
    (void)snprintf(out, PATH_BYTES, "%s.json", folder);
    return out;
}

void carry_record_read(const char *folder, struct weir_arena *arena, struct carry_record *out)
{
    char path[PATH_BYTES];
    const char *name;
    json_t *value;
    WEIR_AUTO(weir_json_auto_free) json_t *object = NULL;
    *out = (struct carry_record){0};
    if (weir_json_load(record_path(folder, path), RECORD_MAX_BYTES, &object, NULL) != WEIR_OK) {
        return;
    }
    const char *version = json_string_value(json_object_get(object, "version"));
    (void)snprintf(out->version, sizeof out->version, "%s", version != NULL ? version : "");
    json_object_foreach(json_object_get(object, "files"), name, value)
    {
        add(&out->view,
            &(struct carry_file){weir_arena_strdup(arena, name),
                                 json_integer_value(json_array_get(value, 0)),
                                 json_integer_value(json_array_get(value, 1)),
                                 json_integer_value(json_array_get(value, 2))},
            arena);
    }
    sort(&out->view);
}

weir_status carry_record_write(const char *folder, const struct carry_record *record,
                               struct weir_error *err)
{
    char path[PATH_BYTES];
    json_t *files = json_object();
    for (size_t i = 0; i < record->view.n; i++) {
        const struct carry_file *file = &record->view.files[i];
        json_object_set_new(files, file->path,
                            json_pack("[I,I,I]", (json_int_t)file->bytes,
                                      (json_int_t)file->changed_ns, (json_int_t)file->number));
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *object = json_pack("{s:s,s:o}", "version", record->version, "files", files);
    char *text = json_dumps(object, JSON_COMPACT);
    weir_status status =
        text != NULL ? weir_file_replace(record_path(folder, path), text, strlen(text), 0600, err)
                     : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %s", path);
    free(text);
    return status;
}
