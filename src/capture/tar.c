#include "capture/tar.h"

#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES  ((size_t)256 << 10)
#define PAX_MAX_BYTES ((uint64_t)4 << 10)

/* The header of a member, as POSIX has it. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};

_Static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a header is a block");

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

static unsigned sum_of(const struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof *header; i++) {
        bool is_sum = i >= offsetof(struct header, sum) && i < offsetof(struct header, type);
        sum += is_sum ? ' ' : bytes[i];
    }
    return sum;
}

/* Split at a "/" so that both parts fit. */
static bool fill_name(struct header *header, const char *name)
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
                        uint64_t bytes, struct header *out)
{
    memset(out, 0, sizeof *out);
    if (!fill_name(out, name)) {
        memcpy(out->name, name, sizeof out->name); /* the pax header before it has all of it */
    }
    fill_octal(out->mode, sizeof out->mode, 0644);
    fill_octal(out->uid, sizeof out->uid, 0);
    fill_octal(out->gid, sizeof out->gid, 0);
    fill_octal(out->size, sizeof out->size, bytes);
    fill_octal(out->time, sizeof out->time, (uint64_t)WEIR_MAX(writer->time_s, 0));
    out->type = type;
    memcpy(out->magic, "ustar", sizeof out->magic);
    memcpy(out->version, "00", sizeof out->version);
    fill_octal(out->sum, sizeof out->sum - 1, sum_of(out));
    out->sum[sizeof out->sum - 1] = ' ';
}

/* "LENGTH path=NAME\n", whose length counts its own digits. */
static weir_status put_pax(struct tar_writer *writer, const char *name, struct weir_error *err)
{
    char record[TAR_NAME_MAX_BYTES + 32];
    struct header header;
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
    struct header header = {0};
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
    struct header header;
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

struct reader {
    int fd;
    uint64_t file_bytes, offset;
    struct weir_arena *arena;
    struct tar_member *members;
    size_t n, cap;
    char *long_name; /* that a pax header gives the next member; NULL: none */
};

static weir_status wrong(const struct reader *reader, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "the tar is not one of Weir's: at byte %llu %s",
                          (unsigned long long)reader->offset, what);
}

static weir_status read_at(const struct reader *reader, uint64_t offset, void *out, size_t len,
                           struct weir_error *err)
{
    char *bytes = out;
    while (len > 0) {
        ssize_t n = pread(reader->fd, bytes, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? wrong(reader, "it ends too early", err)
                          : weir_error_set_errno(err, errno, "reading the tar");
        }
        bytes += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return WEIR_OK;
}

/* Octal digits that a blank, a NUL or the field's end ends. Of GNU's binary form: false. */
static bool read_octal(const char *field, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < size && field[i] == ' ') {
        i++;
    }
    size_t first = i;
    while (i < size && field[i] >= '0' && field[i] <= '7') {
        value = value * 8 + (uint64_t)(field[i++] - '0');
    }
    *out = value;
    return i > first && i - first <= 12 && (i == size || field[i] == ' ' || field[i] == '\0');
}

static bool is_zero(const struct header *header)
{
    const char *bytes = (const char *)header;
    for (size_t i = 0; i < sizeof *header; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static char *name_of(const struct reader *reader, const struct header *header)
{
    if (reader->long_name != NULL) {
        return reader->long_name;
    }
    char *name =
        header->prefix[0] != '\0'
            ? weir_arena_printf(reader->arena, "%.*s/%.*s", (int)sizeof header->prefix,
                                header->prefix, (int)sizeof header->name, header->name)
            : weir_arena_printf(reader->arena, "%.*s", (int)sizeof header->name, header->name);
    return name;
}

/* The records of a pax header: "LENGTH KEY=VALUE\n". Only the path is used; a size is refused, since it
 * would be another than the header's. */
static weir_status read_pax(struct reader *reader, uint64_t bytes, struct weir_error *err)
{
    if (bytes > PAX_MAX_BYTES) {
        return wrong(reader, "its pax header is too long", err);
    }
    char *text = weir_arena_alloc(reader->arena, (size_t)bytes + 1);
    WEIR_TRY(read_at(reader, reader->offset, text, (size_t)bytes, err));
    for (size_t at = 0; at < bytes;) {
        char *end;
        unsigned long len = strtoul(text + at, &end, 10);
        size_t digits = (size_t)(end - (text + at));
        if (text[at] < '1' || text[at] > '9' || *end != ' ' || len > bytes - at ||
            len < digits + 3 || text[at + len - 1] != '\n') {
            return wrong(reader, "its pax header is malformed", err);
        }
        char *record = text + at + digits + 1;
        text[at + len - 1] = '\0';
        if (strncmp(record, "path=", 5) == 0) {
            reader->long_name = record + 5;
        } else if (strncmp(record, "size=", 5) == 0) {
            return wrong(reader, "a pax header gives a size", err);
        }
        at += len;
    }
    return WEIR_OK;
}

static weir_status add_member(struct reader *reader, char *name, uint64_t bytes,
                              struct weir_error *err)
{
    name += strncmp(name, "./", 2) == 0 ? 2 : 0;
    if (!tar_name_is_valid(name)) {
        return wrong(reader, "is a name that no member may have", err);
    }
    if (reader->n == TAR_MEMBERS_MAX) {
        return wrong(reader, "are more members than it may have", err);
    }
    for (size_t i = 0; i < reader->n; i++) {
        if (strcmp(reader->members[i].name, name) == 0) {
            return wrong(reader, "is a member's name for the second time", err);
        }
    }
    weir_arena_grow(reader->arena, &reader->members, sizeof *reader->members, reader->n,
                    &reader->cap);
    reader->members[reader->n++] = (struct tar_member){name, reader->offset, bytes};
    return WEIR_OK;
}

/* What stands behind a header, whose bytes are known to be in the file. */
static weir_status read_member(struct reader *reader, const struct header *header, uint64_t bytes,
                               struct weir_error *err)
{
    switch (header->type) {
    case 'x':
        return read_pax(reader, bytes, err);
    case 'g': /* of pax, for all members: a comment, as git writes it */
        return WEIR_OK;
    case '5':
        return bytes == 0 ? WEIR_OK : wrong(reader, "is a folder with content", err);
    case '0':
    case '\0': {
        char *name = name_of(reader, header);
        reader->long_name = NULL;
        return add_member(reader, name, bytes, err);
    }
    default:
        return wrong(reader, "is a link, a device, or another thing that is no file", err);
    }
}

weir_status tar_list(int fd, uint64_t file_bytes, struct weir_arena *arena, struct tar_member **out,
                     size_t *out_n, struct weir_error *err)
{
    struct reader reader = {.fd = fd, .file_bytes = file_bytes, .arena = arena};
    struct header header;
    uint64_t bytes, sum;
    for (size_t n_headers = 0;; n_headers++) {
        if (file_bytes - reader.offset < TAR_BLOCK_BYTES) {
            return wrong(&reader, "it ends without its end", err);
        }
        WEIR_TRY(read_at(&reader, reader.offset, &header, sizeof header, err));
        if (is_zero(&header)) {
            break;
        }
        if (n_headers > (size_t)3 * TAR_MEMBERS_MAX) {
            return wrong(&reader, "are more headers than it may have", err);
        }
        if (memcmp(header.magic, "ustar", 5) != 0 ||
            !read_octal(header.sum, sizeof header.sum, &sum) || sum != sum_of(&header) ||
            !read_octal(header.size, sizeof header.size, &bytes)) {
            return wrong(&reader, "is no header", err);
        }
        reader.offset += TAR_BLOCK_BYTES;
        uint64_t padded = (bytes + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
        if (padded > file_bytes - reader.offset) {
            return wrong(&reader, "begins a member that is longer than the file", err);
        }
        WEIR_TRY(read_member(&reader, &header, bytes, err));
        WEIR_TRY(weir_arena_check(arena, "tar", err));
        reader.offset += padded;
    }
    *out = reader.members;
    *out_n = reader.n;
    return WEIR_OK;
}
