/**
 * Outbox log: records on disk in segments, addressed by one position that only grows.
 *
 * A segment is the file DIR/<16 hexadecimal digits>.log; the digits are the position of its first
 * byte. A record is length (4 bytes, little-endian), CRC-32 of length and text (4 bytes), text. The
 * writer appends whole groups of records and calls them written after fdatasync; a group that was
 * cut short by a kill or a loss of power fails its checksum and is cut off at the next open.
 *
 * One thread appends and trims; any thread reads what was appended.
 */
#ifndef WEIR_PREDICT_OUTBOX_LOG_H
#define WEIR_PREDICT_OUTBOX_LOG_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTBOX_RECORD_HEADER_BYTES 8
#define OUTBOX_RECORD_MAX_BYTES    ((size_t)64 << 10)
#define OUTBOX_SEGMENT_BYTES       ((size_t)16 << 20)

struct outbox_log;

/**
 * Open or make the folder and cut a torn end. Older segments are not read.
 * @param segment_bytes  A new segment is begun before this is passed; 0: OUTBOX_SEGMENT_BYTES.
 */
weir_status outbox_log_open(const char *dir, size_t segment_bytes, struct outbox_log **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
void outbox_log_close(struct outbox_log *log);

/** Append one framed record to `group`. @return LIMIT if the text is too long; NOMEM. */
weir_status outbox_log_frame(struct weir_buf *group, const char *text, size_t len) WEIR_MUST_CHECK;

/**
 * Append a group and make it durable. On error (NOSPACE, IO) nothing of it counts: the same group
 * may be given again.
 * @param[out] out_position  Of the first record.
 */
weir_status outbox_log_append(struct outbox_log *log, const void *group, size_t len,
                              uint64_t *out_position, struct weir_error *err) WEIR_MUST_CHECK;

/** Position of the first record kept, and behind the last. */
uint64_t outbox_log_begin(struct outbox_log *log);
uint64_t outbox_log_end(struct outbox_log *log);

/**
 * The record at `position`, appended to `out`; *out_next is the position to go on with. A position
 * before the first record kept means the first one.
 * @return END if there is none yet; CORRUPT for a damaged one (*out_next then skips the rest of its
 *         segment); IO, NOMEM.
 */
weir_status outbox_log_read(struct outbox_log *log, uint64_t position, struct weir_buf *out,
                            uint64_t *out_position, uint64_t *out_next,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Start of the segment before the one that holds `position` (or ends there); false: none. */
bool outbox_log_segment_before(struct outbox_log *log, uint64_t position, uint64_t *out_start);

/** Remove segments that lie wholly before `position`; never the last one. */
void outbox_log_trim(struct outbox_log *log, uint64_t position);

#endif
