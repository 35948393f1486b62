#include "base/tar.h"

#include "base/arena.h"
#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAX_MAX_BYTES  65536
#define EXTENSIONS_MAX 16 /* before one entry */

struct weir_tar {
    weir_tar_source source;
    void *context;
    struct weir_tar_entry entry;
    bool has_path, has_link, has_size; /* said by an extension in front of the entry */
    bool is_ended;
    uint64_t offset, left; /* left: of the entry's content and of the padding behind it */
    char text[PAX_MAX_BYTES];
};

static weir_status corrupt(const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT, "the archive is damaged: %s", what);
}

static weir_status take(struct weir_tar *tar, void *out, size_t len, struct weir_error *err)
{
    size_t n;
    WEIR_TRY(tar->source(tar->context, out, len, &n, err));
    tar->offset += n;
    return n == len ? WEIR_OK : corrupt("it ends in the middle", err);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + WEIR_TAR_BLOCK_BYTES - 1) / WEIR_TAR_BLOCK_BYTES * WEIR_TAR_BLOCK_BYTES;
}

/* Octal digits; or, if the first bit is set, all other bits. False: neither. */
static bool read_number(const char *field, size_t size, uint64_t *out)
{
    const unsigned char *bytes = (const unsigned char *)field;
    uint64_t value = 0;
    size_t i = 0;
    if (bytes[0] == 0x80) {
        for (i = 1; i < size; i++) {
            if (value > INT64_MAX >> 8) {
                return false;
            }
            value = value << 8 | bytes[i];
        }
        *out = value;
        return true;
    }
    while (i < size && field[i] == ' ') {
        i++;
    }
    size_t first = i;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most */
    }
    *out = value;
    return i > first && (i == size || field[i] == ' ' || field[i] == '\0');
}

/* What is no file may leave its size out. */
static bool read_size(const struct weir_tar_header *header, uint64_t *out)
{
    bool is_file = header->type == '0' || header->type == '\0' || header->type == '7';
    return read_number(header->size, sizeof header->size, out) ||
           (!is_file && header->size[0] == '\0');
}

uint64_t weir_tar_sum(const struct weir_tar_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof *header; i++) {
        bool is_sum = i >= offsetof(struct weir_tar_header, checksum) &&
                      i < offsetof(struct weir_tar_header, type);
        sum += is_sum ? ' ' : bytes[i];
    }
    return sum;
}

static bool is_zero(const struct weir_tar_header *header)
{
    static const struct weir_tar_header none;
    return memcmp(header, &none, sizeof none) == 0;
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* What stands behind an extension's header, as text. */
static weir_status read_text(struct weir_tar *tar, uint64_t bytes, char *out, size_t size,
                             struct weir_error *err)
{
    if (bytes >= size) {
        return corrupt("an extended header is too long", err);
    }
    WEIR_TRY(take(tar, out, (size_t)bytes, err));
    out[bytes] = '\0';
    return take(tar, NULL, (size_t)(padded(bytes) - bytes), err);
}

static weir_status take_record(struct weir_tar *tar, const char *record, struct weir_error *err)
{
    struct weir_tar_entry *entry = &tar->entry;
    bool fits = true;
    if (strncmp(record, "path=", 5) == 0) {
        tar->has_path = true;
        fits = snprintf(entry->path, sizeof entry->path, "%s", record + 5) < PATH_MAX;
    } else if (strncmp(record, "linkpath=", 9) == 0) {
        tar->has_link = true;
        fits = snprintf(entry->link, sizeof entry->link, "%s", record + 9) < PATH_MAX;
    } else if (strncmp(record, "size=", 5) == 0) {
        char *end;
        long long size = strtoll(record + 5, &end, 10);
        fits = record[5] != '\0' && *end == '\0' && size >= 0;
        tar->has_size = true;
        entry->bytes = (uint64_t)size;
    }
    return fits ? WEIR_OK : corrupt("an extended header", err);
}

/* "LENGTH KEY=VALUE\n", again and again. */
static weir_status read_pax(struct weir_tar *tar, uint64_t bytes, struct weir_error *err)
{
    WEIR_TRY(read_text(tar, bytes, tar->text, sizeof tar->text, err));
    for (char *record = tar->text, *until = tar->text + bytes; record < until;) {
        char *end;
        unsigned long len = strtoul(record, &end, 10);
        if (record[0] < '1' || record[0] > '9' || *end != ' ' || len > (size_t)(until - record) ||
            len < (size_t)(end - record) + 3 || record[len - 1] != '\n') {
            return corrupt("an extended header", err);
        }
        record[len - 1] = '\0';
        WEIR_TRY(take_record(tar, end + 1, err));
        record += len;
    }
    return WEIR_OK;
}

/* Is it an extension? Then it is taken in, and the entry comes later. */
static weir_status take_extension(struct weir_tar *tar, const struct weir_tar_header *header,
                                  uint64_t bytes, bool *out_is_one, struct weir_error *err)
{
    struct weir_tar_entry *entry = &tar->entry;
    *out_is_one = true;
    switch (header->type) {
    case 'L':
        tar->has_path = true;
        return read_text(tar, bytes, entry->path, sizeof entry->path, err);
    case 'K':
        tar->has_link = true;
        return read_text(tar, bytes, entry->link, sizeof entry->link, err);
    case 'x':
        return read_pax(tar, bytes, err);
    case 'g': /* for all entries: a comment, as git writes it */
        return read_text(tar, bytes, tar->text, sizeof tar->text, err);
    default:
        *out_is_one = false;
        return WEIR_OK;
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

static weir_status fill_entry(struct weir_tar *tar, const struct weir_tar_header *header,
                              uint64_t bytes, struct weir_error *err)
{
    struct weir_tar_entry *entry = &tar->entry;
    uint64_t mode;
    if (!tar->has_path) {
        bool has_prefix =
            memcmp(header->magic, "ustar", sizeof header->magic) == 0 && header->prefix[0] != '\0';
        (void)snprintf(entry->path, sizeof entry->path, "%.*s%s%.*s",
                       has_prefix ? (int)sizeof header->prefix : 0, header->prefix,
                       has_prefix ? "/" : "", (int)sizeof header->name, header->name);
    }
    if (!tar->has_link) {
        (void)snprintf(entry->link, sizeof entry->link, "%.*s", (int)sizeof header->link,
                       header->link);
    }
    entry->bytes = tar->has_size ? entry->bytes : bytes;
    entry->type = header->type;
    entry->mode = read_number(header->mode, sizeof header->mode, &mode) ? (unsigned)mode : 0;
    entry->offset = tar->offset;
    if (entry->bytes > INT64_MAX - WEIR_TAR_BLOCK_BYTES) {
        return corrupt("a size", err);
    }
    tar->left = padded(entry->bytes);
    return WEIR_OK;
}

/* A header; *out_is_end: there is none, and that is no damage. */
static weir_status read_header(struct weir_tar *tar, struct weir_tar_header *out, bool *out_is_end,
                               struct weir_error *err)
{
    size_t n;
    WEIR_TRY(tar->source(tar->context, out, sizeof *out, &n, err));
    tar->offset += n;
    tar->is_ended = n == sizeof *out && is_zero(out);
    *out_is_end = n == 0 || tar->is_ended;
    return *out_is_end || n == sizeof *out ? WEIR_OK : corrupt("it ends in the middle", err);
}

static weir_status pass_over(struct weir_tar *tar, struct weir_error *err)
{
    while (tar->left > 0) {
        size_t n = (size_t)WEIR_MIN(tar->left, (uint64_t)1 << 30);
        WEIR_TRY(take(tar, NULL, n, err));
        tar->left -= n;
    }
    return WEIR_OK;
}

weir_status weir_tar_next(struct weir_tar *tar, const struct weir_tar_entry **out,
                          struct weir_error *err)
{
    struct weir_tar_header header;
    bool is_end, is_extension = true;
    uint64_t sum, bytes = 0;
    *out = NULL;
    tar->has_path = tar->has_link = tar->has_size = false;
    WEIR_TRY(pass_over(tar, err));
    for (int n = 0; is_extension; n++) {
        WEIR_TRY(read_header(tar, &header, &is_end, err));
        if (is_end) {
            return n == 0 ? WEIR_OK : corrupt("an extended header without an entry", err);
        }
        if (!read_number(header.checksum, sizeof header.checksum, &sum) ||
            sum != weir_tar_sum(&header) || !read_size(&header, &bytes)) {
            return corrupt("a header (is it a tar archive?)", err);
        }
        if (n > EXTENSIONS_MAX) {
            return corrupt("extended headers without an end", err);
        }
        WEIR_TRY(take_extension(tar, &header, bytes, &is_extension, err));
    }
    WEIR_TRY(fill_entry(tar, &header, bytes, err));
    *out = &tar->entry;
    return WEIR_OK;
}

weir_status weir_tar_read(struct weir_tar *tar, void *out, size_t len, struct weir_error *err)
{
    WEIR_TRY(take(tar, out, len, err));
    tar->left -= len;
    return WEIR_OK;
}

bool weir_tar_is_ended(const struct weir_tar *tar)
{
    return tar->is_ended;
}

struct weir_tar *weir_tar_open(weir_tar_source source, void *context)
{
    struct weir_tar *tar = weir_xalloc(sizeof *tar);
    memset(tar, 0, sizeof *tar);
    tar->source = source;
    tar->context = context;
    return tar;
}

void weir_tar_close(struct weir_tar *tar)
{
    free(tar);
}
