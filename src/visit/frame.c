#include "visit/frame.h"

#include "base/macros.h"
#include "visit/visit.h"

#include <string.h>

static const char *const kind_names[WEIR_VISIT_N_KINDS] = {"shell", "exec",    "read",
                                                           "write", "forward", "top"};

const char *weir_visit_kind_name(enum weir_visit_kind kind)
{
    return kind_names[kind];
}

bool weir_visit_kind_of(const char *name, enum weir_visit_kind *out)
{
    for (size_t i = 0; i < WEIR_VISIT_N_KINDS; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (enum weir_visit_kind)i;
            return true;
        }
    }
    return false;
}

/* Which frames there are, from whom, and how long. */
static const struct {
    enum weir_frame_type type;
    bool is_from_task;
    size_t min, max;
} rows[] = {
    {WEIR_FRAME_INPUT, false, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_INPUT_END, false, 0, 0},
    {WEIR_FRAME_WINDOW, false, 4, 4},
    {WEIR_FRAME_SIGNAL, false, 1, 1},
    {WEIR_FRAME_PING, false, 0, 0},
    {WEIR_FRAME_READY, true, 0, 0},
    {WEIR_FRAME_OUTPUT, true, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_ERRORS, true, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_OUTPUT_END, true, 0, 0},
    {WEIR_FRAME_TAKEN, true, 4, 4},
    {WEIR_FRAME_PONG, true, 0, 0},
    {WEIR_FRAME_EXIT, true, 2, 2},
    {WEIR_FRAME_FAILED, true, 1, WEIR_FRAME_TEXT_BYTES},
};

static bool is_allowed(bool is_from_task, unsigned type, size_t len)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        if (rows[i].type == type) {
            return rows[i].is_from_task == is_from_task && len >= rows[i].min && len <= rows[i].max;
        }
    }
    return false;
}

static bool is_kept(const struct weir_frames *frames)
{
    return frames->payload != NULL && (!frames->is_text_kept || frames->type == WEIR_FRAME_EXIT ||
                                       frames->type == WEIR_FRAME_FAILED);
}

static void take_payload(struct weir_frames *frames, const char *bytes, size_t n)
{
    if (is_kept(frames) && frames->n_payload < frames->size) {
        memcpy(frames->payload + frames->n_payload, bytes,
               WEIR_MIN(n, frames->size - frames->n_payload));
    }
    frames->n_payload += n;
}

weir_status weir_frames_take(struct weir_frames *frames, const void *bytes, size_t n,
                             size_t *out_used, bool *out_whole)
{
    const char *from = bytes;
    size_t used = 0;
    if (frames->n_head == WEIR_FRAME_HEAD_BYTES && frames->n_payload == frames->len) {
        frames->n_head = 0; /* the one before was whole */
    }
    while (used < n && frames->n_head < WEIR_FRAME_HEAD_BYTES && !frames->is_broken) {
        frames->head[frames->n_head++] = (unsigned char)from[used++];
        if (frames->n_head == WEIR_FRAME_HEAD_BYTES) {
            frames->type = frames->head[0];
            frames->len = weir_frame_u32((const char *)frames->head + 1);
            frames->n_payload = 0;
            frames->is_broken = !is_allowed(frames->is_from_task, frames->head[0], frames->len);
        }
    }
    if (frames->is_broken) {
        return WEIR_ERR_CORRUPT;
    }
    if (frames->n_head == WEIR_FRAME_HEAD_BYTES) {
        size_t part = WEIR_MIN(n - used, frames->len - frames->n_payload);
        take_payload(frames, from + used, part);
        used += part;
    }
    *out_used = used;
    *out_whole = frames->n_head == WEIR_FRAME_HEAD_BYTES && frames->n_payload == frames->len;
    return WEIR_OK;
}

/* ---- to be sent ---------------------------------------------------------------------------------- */

size_t weir_frame_room(const struct weir_frame_box *box)
{
    size_t used = box->end - box->begin + WEIR_FRAME_HEAD_BYTES;
    size_t room = used < WEIR_FRAME_BOX_BYTES ? WEIR_FRAME_BOX_BYTES - used : 0;
    return WEIR_MIN(room, WEIR_FRAME_MAX_BYTES);
}

bool weir_frame_put(struct weir_frame_box *box, enum weir_frame_type type, const void *payload,
                    size_t len)
{
    size_t used = box->end - box->begin;
    if (len > WEIR_FRAME_MAX_BYTES || used + WEIR_FRAME_HEAD_BYTES + len > WEIR_FRAME_BOX_BYTES) {
        return false;
    }
    if (box->end + WEIR_FRAME_HEAD_BYTES + len > WEIR_FRAME_BOX_BYTES) {
        memmove(box->bytes, box->bytes + box->begin, used);
        box->begin = 0;
        box->end = used;
    }
    box->bytes[box->end] = (char)type;
    weir_frame_set_u32(box->bytes + box->end + 1, (uint32_t)len);
    if (len > 0) {
        memcpy(box->bytes + box->end + WEIR_FRAME_HEAD_BYTES, payload, len);
    }
    box->end += WEIR_FRAME_HEAD_BYTES + len;
    return true;
}

bool weir_frame_put_failed(struct weir_frame_box *box, const char *text)
{
    size_t len = strlen(text);
    return len > 0 &&
           weir_frame_put(box, WEIR_FRAME_FAILED, text, WEIR_MIN(len, WEIR_FRAME_TEXT_BYTES));
}

void weir_frame_sent(struct weir_frame_box *box, size_t n)
{
    box->begin += n;
    if (box->begin == box->end) {
        box->begin = box->end = 0;
    }
}

/* ---- payloads ------------------------------------------------------------------------------------ */

uint32_t weir_frame_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

uint16_t weir_frame_u16(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint16_t)(b[0] << 8 | b[1]);
}

void weir_frame_set_u32(char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        bytes[i] = (char)(value >> (24 - 8 * i));
    }
}

void weir_frame_set_u16(char *bytes, uint16_t value)
{
    bytes[0] = (char)(value >> 8);
    bytes[1] = (char)value;
}

void weir_frame_disarm(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        if (*at < 0x20 || *at == 0x7f) {
            *at = '?';
        } else if (*at == 0xc2 && (at[1] & 0xe0) == 0x80) {
            at[0] = at[1] = '?';
        }
    }
}
