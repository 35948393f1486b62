/**
 * Tar: the entries of an archive, one after the other, as its bytes come.
 *
 *     struct weir_tar *tar = weir_tar_open(read_file, &file);
 *     while (weir_tar_next(tar, &entry, err) == WEIR_OK && entry != NULL) {
 *         … weir_tar_read(tar, bytes, n, err) …       // what is not read is passed over
 *     }
 *     weir_tar_close(tar);
 *
 * Read are ustar, the extensions of GNU tar for long names and large numbers, and those of pax (path, linkpath, size).
 * An archive comes from anybody: extensions are bounded in length and in number, and a name is given as it stands there:
 * it may be absolute, have ".." or be used twice. Nothing is unpacked here.
 */
#ifndef WEIR_BASE_TAR_H
#define WEIR_BASE_TAR_H

#include "base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_TAR_BLOCK_BYTES 512

/** The header of an entry, as it lies in the archive. */
struct weir_tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], unused[12];
};

_Static_assert(sizeof(struct weir_tar_header) == WEIR_TAR_BLOCK_BYTES, "a header is a block");

/** Sum of a header's bytes, its field `checksum` taken for blanks. */
uint64_t weir_tar_sum(const struct weir_tar_header *header);

struct weir_tar_entry {
    char type; /**< '0' or '\0' a file, '1' a hard link, '2' a link, '5' a folder … */
    char path[PATH_MAX], link[PATH_MAX];
    uint64_t bytes;  /**< Of its content. */
    uint64_t offset; /**< Where that lies in the archive. */
    unsigned mode;
};

struct weir_tar;

/**
 * Where the archive's bytes come from.
 * @param out  Where to put them; NULL: pass over them.
 * @param out_n  How many there were: fewer than `len` at the archive's end alone.
 */
typedef weir_status (*weir_tar_source)(void *context, void *out, size_t len, size_t *out_n,
                                       struct weir_error *err);

/** A reader at the archive's first byte. Aborts if no memory. One thread. */
struct weir_tar *weir_tar_open(weir_tar_source source, void *context);

/** NULL is accepted. */
void weir_tar_close(struct weir_tar *tar);

/**
 * The next entry, behind what is left of the one before.
 * @param out  Lives until the next call. NULL: there is none, the archive is at its end.
 * @return CORRUPT with what is wrong, and errors of the source.
 */
weir_status weir_tar_next(struct weir_tar *tar, const struct weir_tar_entry **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The next bytes of the entry's content, at most what is left of it. @return As weir_tar_next; CORRUPT if the archive
 *  ends before. */
weir_status weir_tar_read(struct weir_tar *tar, void *out, size_t len,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Has the archive an end, two blocks of zeros? Else it just stopped behind an entry. After weir_tar_next gave NULL. */
bool weir_tar_is_ended(const struct weir_tar *tar);

#endif
