/**
 * Tar: POSIX archives (ustar; a name that does not fit has a pax header), written to a file that
 * is renamed when it is whole, and read where they lie.
 *
 *     WEIR_TRY(tar_create(&writer, "/…/s.tar.tmp", max_bytes, time_ms, err));
 *     WEIR_TRY(tar_begin(&writer, "events.csv", err));
 *     WEIR_TRY(tar_write(&writer, bytes, len, err));
 *     WEIR_TRY(tar_end(&writer, &made, err));
 *     WEIR_TRY(tar_finish(&writer, "/…/s.tar", err));
 *     tar_abandon(&writer);    // also after tar_finish: then it does nothing
 *
 * Nothing is ever unpacked to a path that an archive names: a reader gets a list of members with
 * their places in the file, and reads those it knows. So a hostile archive can be refused or waste
 * what it takes itself, and nothing else: names that could lead out, links, devices, sizes beyond
 * the file, two members of one name and more than TAR_MEMBERS_MAX are all INVALID.
 */
#ifndef WEIR_CAPTURE_TAR_H
#define WEIR_CAPTURE_TAR_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK_BYTES      512
#define TAR_NAME_MAX_BYTES   512
#define TAR_MEMBERS_MAX      4096
#define TAR_MEMBER_MAX_BYTES ((((uint64_t)1) << 33) - 1) /* 11 octal digits */

/** A member that was written. */
struct tar_made {
    uint64_t bytes;
    char sha256[WEIR_SHA256_TEXT_BYTES];
};

/** One archive being written. Fields are private. One thread. */
struct tar_writer {
    int fd; /**< -1: none. */
    char *path;
    uint64_t max_bytes, offset; /**< Of the file. */
    uint64_t header_offset, bytes;
    char name[TAR_NAME_MAX_BYTES + 1]; /**< Of the member in progress; "": none. */
    int64_t time_s;
    crypto_hash_sha256_state hash;
    char *buffer;
    size_t n_buffered;
};

/** Make the file again. @return NOSPACE, IO. */
weir_status tar_create(struct tar_writer *writer, const char *path, uint64_t max_bytes,
                       int64_t time_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** A new member; its size is found by its end. @return INVALID: a name that tar_list would refuse. */
weir_status tar_begin(struct tar_writer *writer, const char *name,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** @return LIMIT: it or the archive becomes too large; NOSPACE, IO. */
weir_status tar_write(struct tar_writer *writer, const void *data, size_t len,
                      struct weir_error *err) WEIR_MUST_CHECK;
weir_status tar_end(struct tar_writer *writer, struct tar_made *out,
                    struct weir_error *err) WEIR_MUST_CHECK;

/** End the archive, make it durable, and rename it to `path` with its folder made durable. On error
 *  nothing of that name is made. */
weir_status tar_finish(struct tar_writer *writer, const char *path,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Close, and remove what was written unless it was finished. Twice is harmless. */
void tar_abandon(struct tar_writer *writer);

/** A regular file in an archive. */
struct tar_member {
    char *name;
    uint64_t offset, bytes; /**< Of its content, in the archive. */
};

/**
 * The regular files of an archive, in its order; folders are passed over.
 * @param fd  Read from its start by offset; its own offset does not matter.
 * @return INVALID with what is wrong; IO. Cost: one read per member.
 */
weir_status tar_list(int fd, uint64_t file_bytes, struct weir_arena *arena, struct tar_member **out,
                     size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Is it relative, without "." and ".." as parts, of A-Z a-z 0-9 . _ - / alone, and short enough? */
bool tar_name_is_valid(const char *name);

#endif
