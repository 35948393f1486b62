#include "capture/tar.h"

#include "base/grow.h"
#include "base/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)256 << 10)

bool tar_name_is_valid(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
    size_t len = strlen(name);
    bool is_valid = len > 0 && len <= TAR_NAME_MAX_BYTES && strspn(name, letters) == len;
    for (const char *part = name; is_valid && part != NULL;) {
        const char *slash = strchr(part, '/');
        size_t part_len = slash != NULL ? (size_t)(slash - part) : strlen(part);
        is_valid = part_len > 0 && !(part_len == 1 && part[0] == '.') &&
                   !(part_len == 2 && part[0] == '.' && part[1] == '.');
        part = slash != NULL ? slash + 1 : NULL;
    }
    return is_valid;
}

/* ---- writing --------------------------------------------------------------------------------- */

static weir_status flush(struct tar_writer *writer, struct weir_error *err)
{
    weir_status status = weir_fd_write_all(writer->fd, writer->buffer, writer->n_buffered, err);
    writer->n_buffered = 0;
    return status == WEIR_OK ? status : weir_error_prefix(err, "%s: ", writer->path);
}

/* Bytes of the archive, hashed or not. */
static weir_status put(struct tar_writer *writer, const void *data, size_t len,
                       struct weir_error *err)
{
    const char *bytes = data;
    if (len > writer->max_bytes - writer->offset) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s would become larger than %llu bytes",
                              writer->path, (unsigned long long)writer->max_bytes);
    }
    writer->offset += len;
    while (len > 0) {
        size_t n = WEIR_MIN(len, BUFFER_BYTES - writer->n_buffered);
        memcpy(writer->buffer + writer->n_buffered, bytes, n);
        writer->n_buffered += n;
        bytes += n;
        len -= n;
        if (writer->n_buffered == BUFFER_BYTES) {
            WEIR_TRY(flush(writer, err));
        }
    }
    return WEIR_OK;
}

static weir_status pad(struct tar_writer *writer, struct weir_error *err)
{
    static const char zeros[TAR_BLOCK_BYTES];
    size_t beyond = (size_t)(writer->offset % TAR_BLOCK_BYTES);
    return beyond > 0 ? put(writer, zeros, TAR_BLOCK_BYTES - beyond, err) : WEIR_OK;
}

weir_status tar_create(struct tar_writer *writer, const char *path, uint64_t max_bytes,
                       int64_t time_ms, struct weir_error *err)
{
    *writer = (struct tar_writer){.fd = -1};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot make %s", path);
    }
    *writer = (struct tar_writer){.fd = fd,
                                  .path = weir_xstrdup(path),
                                  .max_bytes = max_bytes,
                                  .time_s = time_ms / 1000,
                                  .buffer = weir_xalloc(BUFFER_BYTES)};
    return WEIR_OK;
}

static void fill_octal(char *field, size_t size, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%0*llo", (int)size - 1, (unsigned long long)value);
    memcpy(field, text, size - 1);
    field[size - 1] = '\0';
}

/* Split at a "/" so that both parts fit. */
static bool fill_name(struct weir_tar_header *header, const char *name)
{
    size_t len = strlen(name);
    if (len <= sizeof header->name) {
        memcpy(header->name, name, len);
        return true;
    }
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t prefix_len = (size_t)(slash - name), rest = len - prefix_len - 1;
        if (prefix_len <= sizeof header->prefix && rest <= sizeof header->name) {
            memcpy(header->prefix, name, prefix_len);
            memcpy(header->name, slash + 1, rest);
            return true;
        }
    }
    return false;
}

static void fill_header(const struct tar_writer *writer, const char *name, char type,
                        uint64_t bytes, struct weir_tar_header *out)
{
    memset(out, 0, sizeof *out);
    if (!fill_name(out, name)) {
        memcpy(out->name, name, sizeof out->name); /* the pax header before it has all of it */
    }
    fill_octal(out->mode, sizeof out->mode, 0644);
    fill_octal(out->uid, sizeof out->uid, 0);
    fill_octal(out->gid, sizeof out->gid, 0);
    fill_octal(out->size, sizeof out->size, bytes);
    fill_octal(out->mtime, sizeof out->mtime, (uint64_t)WEIR_MAX(writer->time_s, 0));
    out->type = type;
    memcpy(out->magic, "ustar", sizeof out->magic);
    memcpy(out->version, "00", sizeof out->version);
    fill_octal(out->checksum, sizeof out->checksum - 1, weir_tar_sum(out));
    out->checksum[sizeof out->checksum - 1] = ' ';
}

/* "LENGTH path=NAME\n", whose length counts its own digits. */
static weir_status put_pax(struct tar_writer *writer, const char *name, struct weir_error *err)
{
    char record[TAR_NAME_MAX_BYTES + 32];
    struct weir_tar_header header;
    size_t rest = strlen(" path=\n") + strlen(name), len = rest + 2;
    len = rest + (len >= 100 ? 3 : 2);
    (void)snprintf(record, sizeof record, "%zu path=%s\n", len, name);
    fill_header(writer, "pax/path", 'x', len, &header);
    WEIR_TRY(put(writer, &header, sizeof header, err));
    WEIR_TRY(put(writer, record, len, err));
    return pad(writer, err);
}

weir_status tar_begin(struct tar_writer *writer, const char *name, struct weir_error *err)
{
    struct weir_tar_header header = {0};
    if (!tar_name_is_valid(name)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.80s\" is no name for a member", name);
    }
    if (!fill_name(&header, name)) {
        WEIR_TRY(put_pax(writer, name, err));
    }
    writer->header_offset = writer->offset;
    writer->bytes = 0;
    (void)snprintf(writer->name, sizeof writer->name, "%s", name);
    (void)crypto_hash_sha256_init(&writer->hash);
    return put(writer, &header, sizeof header, err); /* its size is known at its end */
}

weir_status tar_write(struct tar_writer *writer, const void *data, size_t len,
                      struct weir_error *err)
{
    if (len > TAR_MEMBER_MAX_BYTES - writer->bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s is larger than a member of a tar may be",
                              writer->name);
    }
    (void)crypto_hash_sha256_update(&writer->hash, data, len);
    writer->bytes += len;
    return put(writer, data, len, err);
}

weir_status tar_end(struct tar_writer *writer, struct tar_made *out, struct weir_error *err)
{
    struct weir_tar_header header;
    unsigned char hash[crypto_hash_sha256_BYTES];
    WEIR_TRY(pad(writer, err));
    WEIR_TRY(flush(writer, err));
    fill_header(writer, writer->name, '0', writer->bytes, &header);
    ssize_t n = pwrite(writer->fd, &header, sizeof header, (off_t)writer->header_offset);
    if (n != (ssize_t)sizeof header) {
        return weir_error_set_errno(err, n < 0 ? errno : ENOSPC, "writing %s", writer->path);
    }
    (void)crypto_hash_sha256_final(&writer->hash, hash);
    out->bytes = writer->bytes;
    (void)sodium_bin2hex(out->sha256, sizeof out->sha256, hash, sizeof hash);
    writer->name[0] = '\0';
    return WEIR_OK;
}

static weir_status sync_folder_of(const char *path, struct weir_error *err)
{
    char *folder = weir_xstrdup(path);
    *strrchr(folder, '/') = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    weir_status status = fd >= 0 && fsync(fd) == 0
                             ? WEIR_OK
                             : weir_error_set_errno(err, errno, "cannot make %s durable", path);
    if (fd >= 0) {
        (void)close(fd);
    }
    free(folder);
    return status;
}

weir_status tar_finish(struct tar_writer *writer, const char *path, struct weir_error *err)
{
    static const char end[2 * TAR_BLOCK_BYTES];
    WEIR_TRY(put(writer, end, sizeof end, err));
    WEIR_TRY(flush(writer, err));
    if (fsync(writer->fd) != 0) {
        return weir_error_set_errno(err, errno, "writing %s", writer->path);
    }
    if (rename(writer->path, path) != 0) {
        return weir_error_set_errno(err, errno, "cannot make %s", path);
    }
    free(writer->path);
    writer->path = NULL;
    weir_status status = sync_folder_of(path, err);
    if (status != WEIR_OK) {
        (void)unlink(path);
    }
    return status;
}

void tar_abandon(struct tar_writer *writer)
{
    if (writer->fd >= 0) {
        (void)close(writer->fd);
    }
    if (writer->path != NULL) {
        (void)unlink(writer->path);
    }
    free(writer->path);
    free(writer->buffer);
    *writer = (struct tar_writer){.fd = -1};
}

/* ---- reading --------------------------------------------------------------------------------- */

struct list {
    struct weir_arena *arena;
    struct tar_member *members;
    size_t n, cap;
    int fd;
    uint64_t file_bytes, offset; /* of what is read next */
};

static weir_status wrong(const struct list *list, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "the tar is not one of Weir's: at byte %llu %s",
                          (unsigned long long)list->offset, what);
}

/* A weir_tar_source. */
static weir_status read_file(void *context, void *out, size_t len, size_t *out_n,
                             struct weir_error *err)
{
    struct list *list = context;
    size_t n = (size_t)WEIR_MIN((uint64_t)len, list->file_bytes - list->offset);
    *out_n = n;
    for (size_t done = 0; out != NULL && done < n;) {
        ssize_t got = pread(list->fd, (char *)out + done, n - done, (off_t)(list->offset + done));
        if (got < 0 && errno != EINTR) {
            return weir_error_set_errno(err, errno, "reading the tar");
        }
        n = got == 0 ? done : n; /* it has become shorter */
        done += got > 0 ? (size_t)got : 0;
        *out_n = n;
    }
    list->offset += n;
    return WEIR_OK;
}

static weir_status add_member(struct list *list, const struct weir_tar_entry *entry,
                              struct weir_error *err)
{
    const char *name = entry->path + (strncmp(entry->path, "./", 2) == 0 ? 2 : 0);
    if (!tar_name_is_valid(name)) {
        return wrong(list, "is a name that no member may have", err);
    }
    if (list->n == TAR_MEMBERS_MAX) {
        return wrong(list, "are more members than it may have", err);
    }
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->members[i].name, name) == 0) {
            return wrong(list, "is a member's name for the second time", err);
        }
    }
    weir_arena_grow(list->arena, &list->members, sizeof *list->members, list->n, &list->cap);
    list->members[list->n++] =
        (struct tar_member){weir_arena_strdup(list->arena, name), entry->offset, entry->bytes};
    return WEIR_OK;
}

static weir_status take_entry(struct list *list, const struct weir_tar_entry *entry,
                              struct weir_error *err)
{
    switch (entry->type) {
    case '5':
        return entry->bytes == 0 ? WEIR_OK : wrong(list, "is a folder with content", err);
    case '0':
    case '\0':
        return add_member(list, entry, err);
    default:
        return wrong(list, "is a link, a device, or another thing that is no file", err);
    }
}

static weir_status list_all(struct list *list, struct weir_tar *tar, struct weir_error *err)
{
    const struct weir_tar_entry *entry;
    for (size_t n = 0;; n++) {
        weir_status status = weir_tar_next(tar, &entry, err);
        if (status == WEIR_ERR_CORRUPT) {
            char what[WEIR_ERROR_MESSAGE_BYTES];
            (void)snprintf(what, sizeof what, "%s", err->message);
            return wrong(list, what, err);
        }
        WEIR_TRY(status);
        if (entry == NULL) {
            return weir_tar_is_ended(tar) ? WEIR_OK : wrong(list, "it ends without its end", err);
        }
        if (n > (size_t)2 * TAR_MEMBERS_MAX) {
            return wrong(list, "are more entries than it may have", err);
        }
        WEIR_TRY(take_entry(list, entry, err));
        WEIR_TRY(weir_arena_check(list->arena, "tar", err));
    }
}

weir_status tar_list(int fd, uint64_t file_bytes, struct weir_arena *arena, struct tar_member **out,
                     size_t *out_n, struct weir_error *err)
{
    struct list list = {.fd = fd, .file_bytes = file_bytes, .arena = arena};
    struct weir_error own;
    struct weir_tar *tar = weir_tar_open(read_file, &list);
    weir_status status = list_all(&list, tar, err != NULL ? err : &own);
    weir_tar_close(tar);
    *out = list.members;
    *out_n = list.n;
    return status;
}
