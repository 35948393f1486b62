#include "agent/node/disk_held.h"

#include "base/buf.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct file {
    dev_t device;
    ino_t inode;
    int64_t bytes;
};

struct look {
    const dev_t *devices;
    size_t n_devices;
    struct weir_buf files; /* structs file, some more than once */
    size_t n_looks;
};

static bool is_ours(const struct look *look, dev_t device)
{
    for (size_t i = 0; i < look->n_devices; i++) {
        if (look->devices[i] == device) {
            return true;
        }
    }
    return false;
}

static void note(struct look *look, dev_t device, ino_t inode, int64_t bytes)
{
    const struct file file = {device, inode, bytes};
    (void)weir_buf_append(&look->files, &file, sizeof file);
}

/* A link of /proc to a file. @return false: it cannot be looked at. */
static bool look_at(struct look *look, int dir_fd, const char *name)
{
    struct stat info;
    look->n_looks++;
    if (fstatat(dir_fd, name, &info, 0) != 0) {
        return false;
    }
    if (S_ISREG(info.st_mode) && info.st_nlink == 0 && is_ours(look, info.st_dev)) {
        note(look, info.st_dev, info.st_ino, (int64_t)info.st_blocks * 512);
    }
    return true;
}

static void look_at_descriptors(struct look *look, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir != NULL && look->n_looks <= DISK_HELD_LOOKS_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)look_at(look, dirfd(dir), entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* "7f00-7f80 rw-s 00000000 fd:00 123456    /path (deleted)" */
static void look_at_map(struct look *look, int maps_fd, const char *line)
{
    static const char deleted[] = " (deleted)\n";
    uint64_t begin, end, inode;
    unsigned device_major, device_minor;
    char name[40];
    size_t len = strlen(line);
    if (len < sizeof deleted || strcmp(line + len - (sizeof deleted - 1), deleted) != 0 ||
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %" SCNu64, &begin, &end, &device_major,
               &device_minor, &inode) != 5) {
        return;
    }
    (void)snprintf(name, sizeof name, "%" PRIx64 "-%" PRIx64, begin, end);
    dev_t device = makedev(device_major, device_minor);
    if (!look_at(look, maps_fd, name) && is_ours(look, device)) {
        note(look, device, inode, (int64_t)(end - begin));
    }
}

static void look_at_maps(struct look *look, pid_t pid)
{
    char path[64], *line = NULL;
    size_t size = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/map_files", (int)pid);
    int maps_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && look->n_looks <= DISK_HELD_LOOKS_MAX &&
           getline(&line, &size, file) > 0) {
        look_at_map(look, maps_fd, line);
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file);
    }
    if (maps_fd >= 0) {
        close(maps_fd);
    }
}

static int by_inode(const void *left, const void *right)
{
    const struct file *a = left, *b = right;
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

static void sum(struct look *look, struct disk_held *out)
{
    struct file *files = (struct file *)(void *)look->files.data;
    size_t n = look->files.len / sizeof *files;
    if (n > 0) {
        qsort(files, n, sizeof *files, by_inode);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || by_inode(&files[i - 1], &files[i]) != 0) {
            out->bytes += files[i].bytes;
            out->files++;
        }
    }
}

void disk_held_measure(const struct process_id *ids, size_t n_ids, const dev_t *devices,
                       size_t n_devices, struct disk_held *out)
{
    struct look look = {.devices = devices, .n_devices = n_devices};
    *out = (struct disk_held){.bytes = 0};
    weir_buf_init(&look.files, (DISK_HELD_LOOKS_MAX + 1) * sizeof(struct file));
    for (size_t i = 0; i < n_ids && look.n_looks <= DISK_HELD_LOOKS_MAX; i++) {
        look_at_descriptors(&look, ids[i].pid);
        look_at_maps(&look, ids[i].pid);
    }
    sum(&look, out);
    out->is_beyond = look.n_looks > DISK_HELD_LOOKS_MAX || look.files.status != WEIR_OK;
    weir_buf_fini(&look.files);
}
