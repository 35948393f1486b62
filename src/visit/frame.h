/**
 * Frames: what a stream of a visit carries. A frame is a type (1 byte), the length of its payload (4 bytes, the
 * highest first), and that.
 *
 *     to the task      INPUT bytes · INPUT_END · WINDOW rows, columns (2 bytes each) · SIGNAL number (1 byte)
 *                      · PING
 *     from the task    READY · OUTPUT bytes · ERRORS bytes · OUTPUT_END · TAKEN number (4 bytes: so much
 *                      INPUT was taken) · PONG · EXIT status, signal (1 byte each) · FAILED text
 *
 * EXIT or FAILED is the last. A sender of INPUT has at most WEIR_VISIT_WINDOW bytes under way that are not
 * TAKEN: so a program that does not read holds up its input alone, and no signal. A frame of the other
 * side's, of a type that is none, or of a length that its type cannot have is an error, and its stream is over.
 */
#ifndef WEIR_VISIT_FRAME_H
#define WEIR_VISIT_FRAME_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_FRAME_HEAD_BYTES 5
#define WEIR_FRAME_MAX_BYTES  ((size_t)16 << 10) /**< Of a payload. */
#define WEIR_FRAME_TEXT_BYTES 512                /**< Of FAILED. */

enum weir_frame_type {
    WEIR_FRAME_INPUT = 1,
    WEIR_FRAME_INPUT_END,
    WEIR_FRAME_WINDOW,
    WEIR_FRAME_SIGNAL,
    WEIR_FRAME_PING,
    WEIR_FRAME_READY = 17,
    WEIR_FRAME_OUTPUT,
    WEIR_FRAME_ERRORS,
    WEIR_FRAME_OUTPUT_END,
    WEIR_FRAME_TAKEN,
    WEIR_FRAME_PONG,
    WEIR_FRAME_EXIT,
    WEIR_FRAME_FAILED,
};

/** Reads frames from bytes that come in any parts. All zero but is_from_task: at the beginning of one. */
struct weir_frames {
    bool is_from_task;
    unsigned char head[WEIR_FRAME_HEAD_BYTES];
    size_t n_head;
    enum weir_frame_type type; /**< Once the head is whole. */
    size_t len, n_payload;
    bool is_broken;
    char *payload;     /**< Where it goes; NULL: nowhere. */
    size_t size;       /**< Of that; what of a payload is beyond it is left out. */
    bool is_text_kept; /**< Payloads of EXIT and FAILED alone go there. */
};

/**
 * Take bytes up to the end of one frame. Pure.
 * @param out_used   How many of them were taken.
 * @param out_whole  A frame is whole: type, len and payload are its until the next call.
 * @return CORRUPT: what came is no frame, and so is all that comes after it.
 */
weir_status weir_frames_take(struct weir_frames *frames, const void *bytes, size_t n,
                             size_t *out_used, bool *out_whole) WEIR_MUST_CHECK;

/** Frames that wait to be sent, in bounded memory. All zero: none. */
#define WEIR_FRAME_BOX_BYTES (2 * (WEIR_FRAME_HEAD_BYTES + WEIR_FRAME_MAX_BYTES) + 1024)

struct weir_frame_box {
    size_t begin, end;
    char bytes[WEIR_FRAME_BOX_BYTES];
};

/** How long a payload may be that still fits; 0: none. What is small (all but bytes) always fits once a payload of
 *  WEIR_FRAME_MAX_BYTES does. */
size_t weir_frame_room(const struct weir_frame_box *box);
/** Add a frame; false: there is no room, and nothing was added. */
bool weir_frame_put(struct weir_frame_box *box, enum weir_frame_type type, const void *payload,
                    size_t len);
/** FAILED with this text, cut. */
bool weir_frame_put_failed(struct weir_frame_box *box, const char *text);
/** The first n bytes were sent. */
void weir_frame_sent(struct weir_frame_box *box, size_t n);

/** Numbers in payloads, the highest byte first. */
uint32_t weir_frame_u32(const char *bytes);
uint16_t weir_frame_u16(const char *bytes);
void weir_frame_set_u32(char *bytes, uint32_t value);
void weir_frame_set_u16(char *bytes, uint16_t value);

/** Text of a job's for a terminal: control characters, also those of UTF-8, become "?". In place. */
void weir_frame_disarm(char *text);

#endif
