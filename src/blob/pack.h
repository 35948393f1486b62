/**
 * Packs: many small things in few large files, each found by the place that its writer was given.
 *
 *     DIR/0001700000000000.pack     one file per pack; its name is its number
 *
 * Pictures of decisions are such things: one file each would cost a page of disk and an inode for
 * two kilobytes. A thing is appended to the current pack, and whoever writes the record about it
 * keeps the place in that record: there is no other index. A new pack is begun when the current one
 * is full or an hour old, and at each start, so that what a kill has torn is never written behind.
 * Packs go whole (weir_packs_remove); a place in one that is gone is NOT_FOUND from then on, and a
 * number is never given twice.
 *
 * Nothing is synced: packs hold what helps people and can be missed. A place that a loss of power
 * has emptied is NOT_FOUND too, since each thing bears its identifier.
 *
 * All functions are safe from any thread.
 */
#ifndef WEIR_BLOB_PACK_H
#define WEIR_BLOB_PACK_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_PACK_BYTES          ((int64_t)4 << 20)
#define WEIR_PACK_SPAN_MS        ((int64_t)3600000)
#define WEIR_PACK_ITEM_MAX_BYTES ((size_t)1 << 20)

struct weir_packs;

/** Where a thing lies. pack 0: nowhere. */
struct weir_pack_place {
    int64_t pack, offset, bytes;
};

/** Open the folder; made if missing. @param pack_bytes  0: WEIR_PACK_BYTES. */
weir_status weir_packs_open(const char *dir, int64_t pack_bytes, struct weir_packs **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_packs_close(struct weir_packs *packs);

/**
 * Append a thing.
 * @param id  Its identifier: a UUID.
 * @return LIMIT if it is larger than WEIR_PACK_ITEM_MAX_BYTES; NOSPACE, IO: then nothing of it is
 *         there.
 */
weir_status weir_packs_append(struct weir_packs *packs, const char *id, const void *bytes,
                              size_t len, struct weir_pack_place *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Read a thing into the arena. @return NOT_FOUND if its pack is gone, or holds no such thing
 *  there; IO. */
weir_status weir_packs_read(struct weir_packs *packs, const char *id,
                            const struct weir_pack_place *place, struct weir_arena *arena,
                            char **out_data, size_t *out_len,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Overwrite a thing with zeros, on the disk when this returns; reading it is NOT_FOUND from then on. One
 * that is gone already is OK.
 * @return IO, also if it cannot be seen whether it is there: nothing is said to be erased that may not be.
 */
weir_status weir_packs_erase(struct weir_packs *packs, const char *id,
                             const struct weir_pack_place *place,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Remove a pack by the name of its file. One that is gone already is OK. */
weir_status weir_packs_remove(struct weir_packs *packs, const char *name,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
