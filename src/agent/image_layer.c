#include "agent/image_layer.h"

#include "base/file.h"
#include "base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK_BYTES     512
#define PAX_MAX_BYTES   65536
#define WHITEOUT        ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"

/* Of one entry, as it stands in the archive (POSIX.1-1988, and GNU's numbers of more bytes). */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], owner[32], group[32], major[8], minor[8], prefix[155], unused[12];
};

struct layer {
    gzFile in;
    int root_fd;
    struct image_bounds *bounds;
    struct weir_error *err;
    char path[PATH_MAX], link[PATH_MAX]; /* of the entry */
    bool has_path, has_link;             /* said by an extension in front of it */
    int64_t size;                        /* of what follows the header */
    int64_t pax_size;                    /* -1: not said by an extension */
    unsigned mode;
};

static weir_status corrupt(struct layer *l, const char *what)
{
    return weir_error_set(l->err, WEIR_ERR_CORRUPT, "the archive is damaged: %s", what);
}

static weir_status fail(struct layer *l, const char *what)
{
    return weir_error_set_errno(l->err, errno, "cannot unpack %.200s: %s", l->path, what);
}

int image_open_below(int root_fd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, path[0] != '\0' ? path : ".", &how, sizeof how);
}

/* ---- reading --------------------------------------------------------------------------------- */

static weir_status read_all(struct layer *l, void *out, size_t len)
{
    int n = gzread(l->in, out, (unsigned)len);
    return n == (int)len ? WEIR_OK : corrupt(l, "it ends in the middle");
}

static weir_status skip(struct layer *l, int64_t len)
{
    char block[BLOCK_BYTES];
    for (int64_t left = (len + BLOCK_BYTES - 1) / BLOCK_BYTES; left > 0; left--) {
        WEIR_TRY(read_all(l, block, sizeof block));
    }
    return WEIR_OK;
}

/* What is left of the last block of what follows a header. */
static weir_status read_rest(struct layer *l)
{
    char bytes[BLOCK_BYTES];
    int64_t used = l->size % BLOCK_BYTES;
    return used != 0 ? read_all(l, bytes, (size_t)(BLOCK_BYTES - used)) : WEIR_OK;
}

static weir_status read_text(struct layer *l, char *out, size_t size)
{
    if (l->size >= (int64_t)size) {
        return corrupt(l, "a name is too long");
    }
    WEIR_TRY(read_all(l, out, (size_t)l->size));
    out[l->size] = '\0';
    return read_rest(l);
}

/* Octal digits; or, if the first bit is set, all other bits. -1: neither. */
static int64_t number_of(const char *text, size_t size)
{
    int64_t value = 0;
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] & 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (value > INT64_MAX >> 8) {
                return -1;
            }
            value = value << 8 | bytes[i];
        }
        return value;
    }
    size_t i = 0;
    while (i < size && text[i] == ' ') {
        i++;
    }
    for (; i < size && text[i] >= '0' && text[i] <= '7'; i++) {
        value = value << 3 | (text[i] - '0'); /* 12 digits at most */
    }
    return i == size || text[i] == ' ' || text[i] == '\0' ? value : -1;
}

static bool has_good_sum(const struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof *header; i++) {
        bool is_sum = i >= offsetof(struct header, checksum) && i < offsetof(struct header, type);
        sum += is_sum ? ' ' : bytes[i];
    }
    return number_of(header->checksum, sizeof header->checksum) == sum;
}

/* "LENGTH KEY=VALUE\n", again and again. */
static weir_status read_pax(struct layer *l)
{
    char text[PAX_MAX_BYTES];
    WEIR_TRY(read_text(l, text, sizeof text));
    for (char *record = text; *record != '\0';) {
        char *end;
        long len = strtol(record, &end, 10);
        if (*end != ' ' || len <= end - record + 1 || (size_t)len > strlen(record) ||
            record[len - 1] != '\n') {
            return corrupt(l, "an extended header");
        }
        record[len - 1] = '\0';
        const char *key = end + 1;
        if (strncmp(key, "path=", 5) == 0) {
            l->has_path = snprintf(l->path, sizeof l->path, "%s", key + 5) < PATH_MAX;
        } else if (strncmp(key, "linkpath=", 9) == 0) {
            l->has_link = snprintf(l->link, sizeof l->link, "%s", key + 9) < PATH_MAX;
        } else if (strncmp(key, "size=", 5) == 0) {
            l->pax_size = strtoll(key + 5, NULL, 10);
        }
        record += len;
    }
    return WEIR_OK;
}

/* "./a//b/" is "a/b". A part ".." is nobody's name. */
static weir_status clean(struct layer *l, char *path)
{
    char *to = path;
    for (const char *part = path; *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len == 2 && strncmp(part, "..", 2) == 0) {
            return corrupt(l, "a name leads out of it");
        }
        if (len > 0 && !(len == 1 && part[0] == '.')) {
            to += to != path;
            memmove(to, part, len);
            to += len;
        }
        part += len;
        if (*part == '/') {
            part++;
            if (to != path) {
                *to = '/'; /* behind what was read */
            }
        }
    }
    *to = '\0';
    return WEIR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The folder that `path` lies in, made if it is missing; *out_name is the rest. */
static weir_status open_parent(struct layer *l, const char *path, int *out_fd,
                               const char **out_name)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *out_name = slash != NULL ? slash + 1 : path;
    (void)snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
    *out_fd = image_open_below(l->root_fd, folder, O_PATH | O_DIRECTORY);
    for (char *end = folder; *out_fd < 0 && errno == ENOENT && *end != '\0';) {
        const char *name;
        int above;
        end += strcspn(end, "/");
        char separator = *end;
        *end = '\0'; /* each folder of the path in turn, the ones above are there by then */
        const char *last = strrchr(folder, '/');
        name = last != NULL ? last + 1 : folder;
        char upper[PATH_MAX];
        (void)snprintf(upper, sizeof upper, "%.*s", last != NULL ? (int)(last - folder) : 0,
                       folder);
        above = image_open_below(l->root_fd, upper, O_PATH | O_DIRECTORY);
        if (above < 0 || (mkdirat(above, name, 0755) != 0 && errno != EEXIST)) {
            if (above >= 0) {
                close(above);
            }
            return fail(l, "its folder");
        }
        close(above);
        *end = separator;
        end += separator == '/';
        *out_fd = image_open_below(l->root_fd, folder, O_PATH | O_DIRECTORY);
    }
    return *out_fd >= 0 ? WEIR_OK : fail(l, "its folder");
}

static weir_status count_bytes(struct layer *l, int64_t n)
{
    struct image_bounds *b = l->bounds;
    if (n < 0 || n > b->max_bytes - b->bytes) {
        return weir_error_set(l->err, WEIR_ERR_LIMIT,
                              "the image holds more than %lld bytes, which is what this node has "
                              "room for",
                              (long long)b->max_bytes);
    }
    b->bytes += n;
    return WEIR_OK;
}

static weir_status copy_bytes(struct layer *l, int fd)
{
    char bytes[65536];
    for (int64_t left = l->size; left > 0;) {
        size_t n = (size_t)WEIR_MIN(left, (int64_t)sizeof bytes);
        WEIR_TRY(read_all(l, bytes, n));
        WEIR_TRY(weir_fd_write_all(fd, bytes, n, l->err));
        left -= (int64_t)n;
    }
    return read_rest(l);
}

static weir_status put_file(struct layer *l, int dir_fd, const char *name)
{
    mode_t mode = (l->mode & 0111) != 0 ? 0755 : 0644;
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        return fail(l, "a file");
    }
    weir_status status = copy_bytes(l, fd);
    if (status == WEIR_OK && fchmod(fd, mode) != 0) {
        status = fail(l, "its permissions");
    }
    close(fd);
    return status;
}

static weir_status put_folder(struct layer *l, int dir_fd, const char *name)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)) {
        return WEIR_OK; /* of an earlier layer: what is in it stays */
    }
    WEIR_TRY(weir_dir_remove_at(dir_fd, name, l->err));
    return mkdirat(dir_fd, name, 0755) == 0 ? WEIR_OK : fail(l, "a folder");
}

static weir_status put_hard_link(struct layer *l, int dir_fd, const char *name)
{
    const char *old_name;
    int old_fd = -1;
    WEIR_TRY(clean(l, l->link));
    WEIR_TRY(open_parent(l, l->link, &old_fd, &old_name));
    int rc = linkat(old_fd, old_name, dir_fd, name, 0);
    weir_status status = rc == 0 ? WEIR_OK : fail(l, "a hard link");
    close(old_fd);
    return status;
}

/* ".wh.NAME" takes NAME away; ".wh..wh..opq" all that lies in its folder. */
static weir_status take_away(struct layer *l, int dir_fd, const char *name)
{
    if (strcmp(name, WHITEOUT_OPAQUE) != 0) {
        const char *gone = name + sizeof WHITEOUT - 1;
        return gone[0] != '\0' && strcmp(gone, ".") != 0 && strcmp(gone, "..") != 0
                   ? weir_dir_remove_at(dir_fd, gone, l->err)
                   : corrupt(l, "a whiteout without a name");
    }
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    weir_status status = dir != NULL ? WEIR_OK : fail(l, "its folder");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && status == WEIR_OK; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = weir_dir_remove_at(dirfd(dir), entry->d_name, l->err);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    return status;
}

static weir_status put_entry(struct layer *l, char type, int dir_fd, const char *name)
{
    if (strncmp(name, WHITEOUT, sizeof WHITEOUT - 1) == 0) {
        WEIR_TRY(take_away(l, dir_fd, name));
        return skip(l, l->size);
    }
    if (type == '5') {
        WEIR_TRY(put_folder(l, dir_fd, name));
        return skip(l, l->size);
    }
    WEIR_TRY(weir_dir_remove_at(dir_fd, name, l->err)); /* of an earlier layer */
    if (type == '0' || type == '\0' || type == '7') {
        return put_file(l, dir_fd, name);
    }
    if (type == '2' && symlinkat(l->link, dir_fd, name) != 0) {
        return fail(l, "a link");
    }
    if (type == '1') {
        WEIR_TRY(put_hard_link(l, dir_fd, name));
    }
    return skip(l, l->size);
}

/* An entry with everything that was said of it. */
static weir_status take_entry(struct layer *l, const struct header *header)
{
    const char *name;
    int dir_fd = -1;
    if (!l->has_path) {
        bool has_prefix = memcmp(header->magic, "ustar\0", 6) == 0 && header->prefix[0] != '\0';
        (void)snprintf(l->path, sizeof l->path, "%.*s%s%.*s",
                       has_prefix ? (int)sizeof header->prefix : 0, header->prefix,
                       has_prefix ? "/" : "", (int)sizeof header->name, header->name);
    }
    if (!l->has_link) {
        (void)snprintf(l->link, sizeof l->link, "%.*s", (int)sizeof header->link, header->link);
    }
    l->size = l->pax_size >= 0 ? l->pax_size : l->size;
    l->mode = (unsigned)WEIR_MAX(number_of(header->mode, sizeof header->mode), (int64_t)0);
    if (l->size < 0 || ++l->bounds->entries > l->bounds->max_entries) {
        return l->size < 0
                   ? corrupt(l, "a size")
                   : weir_error_set(l->err, WEIR_ERR_LIMIT, "the image holds more than %lld files",
                                    (long long)l->bounds->max_entries);
    }
    WEIR_TRY(count_bytes(l, l->size));
    WEIR_TRY(clean(l, l->path));
    if (l->path[0] == '\0') {
        return skip(l, l->size); /* the root itself */
    }
    WEIR_TRY(open_parent(l, l->path, &dir_fd, &name));
    weir_status status = put_entry(l, header->type, dir_fd, name);
    close(dir_fd);
    l->has_path = l->has_link = false;
    l->pax_size = -1;
    return status;
}

static weir_status take(struct layer *l, const struct header *header)
{
    l->size = number_of(header->size, sizeof header->size);
    if (!has_good_sum(header) || l->size < 0) {
        return corrupt(l, "a header (is it a tar archive, compressed by gzip or not at all?)");
    }
    switch (header->type) {
    case 'L':
        l->has_path = true;
        return read_text(l, l->path, sizeof l->path);
    case 'K':
        l->has_link = true;
        return read_text(l, l->link, sizeof l->link);
    case 'x':
        return read_pax(l);
    case 'g':
        WEIR_TRY(count_bytes(l, l->size));
        return skip(l, l->size);
    default:
        return take_entry(l, header);
    }
}

static weir_status unpack(struct layer *l)
{
    static const struct header none = {.type = '\0'};
    struct header header;
    for (;;) {
        int n = gzread(l->in, &header, sizeof header);
        if (n == 0 || (n == (int)sizeof header && memcmp(&header, &none, sizeof none) == 0)) {
            return l->bounds->entries > 0 || n > 0 ? WEIR_OK : corrupt(l, "it is empty");
        }
        if (n != (int)sizeof header) {
            return corrupt(l, "it ends in the middle");
        }
        WEIR_TRY(take(l, &header));
    }
}

weir_status image_layer_unpack(int archive_fd, int root_fd, struct image_bounds *bounds,
                               struct weir_error *err)
{
    _Static_assert(sizeof(struct header) == BLOCK_BYTES, "a header is a block");
    struct layer *l = weir_xalloc(sizeof *l);
    memset(l, 0, sizeof *l);
    l->root_fd = root_fd;
    l->bounds = bounds;
    l->err = err;
    l->pax_size = -1;
    int fd = fcntl(archive_fd, F_DUPFD_CLOEXEC, 0);
    l->in = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    weir_status status =
        l->in != NULL ? unpack(l) : weir_error_set(err, WEIR_ERR_IO, "the archive cannot be read");
    if (l->in != NULL) {
        (void)gzclose(l->in);
    } else if (fd >= 0) {
        close(fd);
    }
    free(l);
    return status;
}
