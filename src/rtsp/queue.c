#include "queue.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

/* How far a number may be ahead, or behind, and still be of the same row (RFC 3550, A.1; pictures come in bursts, so that
 * more may be late). */
enum { AHEAD_MAX = 3000, BEHIND_MAX = 1000, HEAD_BYTES = 12 };

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

weir_status rtsp_packet_parse(const uint8_t *bytes, size_t n, struct rtsp_packet *out)
{
    enum { VERSION = 0x80, VERSION_BITS = 0xc0, PADDING = 0x20, EXTENSION = 0x10 };

    if (n < HEAD_BYTES || (bytes[0] & VERSION_BITS) != VERSION) {
        return WEIR_ERR_CORRUPT;
    }
    size_t n_head = HEAD_BYTES + (size_t)4 * (bytes[0] & 0x0f);
    if ((bytes[0] & EXTENSION) != 0) {
        if (n < n_head + 4) {
            return WEIR_ERR_CORRUPT;
        }
        n_head += 4 + (size_t)4 * ((size_t)bytes[n_head + 2] << 8 | bytes[n_head + 3]);
    }
    size_t n_padding = (bytes[0] & PADDING) != 0 ? bytes[n - 1] : 0;
    if (n_head + n_padding > n) {
        return WEIR_ERR_CORRUPT;
    }
    *out = (struct rtsp_packet){
        .number = (uint16_t)(bytes[2] << 8 | bytes[3]),
        .payload_type = bytes[1] & 0x7f,
        .has_marker = (bytes[1] & 0x80) != 0,
        .rtp_time = u32_at(bytes + 4),
        .source = u32_at(bytes + 8),
        .payload = bytes + n_head,
        .n = n - n_head - n_padding,
    };
    return WEIR_OK;
}

static struct rtsp_slot *slot_of(struct rtsp_queue *queue, uint16_t number)
{
    return &queue->slots[number % RTSP_QUEUE_PACKETS];
}

/* All up to `number` are over: those that are held can not be told from those that are missing any more. */
static void jump(struct rtsp_queue *queue, uint16_t number, uint64_t n_lost)
{
    for (size_t i = 0; i < RTSP_QUEUE_PACKETS; i++) {
        queue->slots[i].is_held = false;
    }
    queue->n_held = 0;
    queue->n_lost += n_lost;
    queue->next = number;
    queue->has_jumped = false;
}

static weir_status hold(struct rtsp_queue *queue, const struct rtsp_packet *packet)
{
    struct rtsp_slot *slot = slot_of(queue, packet->number);
    if (slot->is_held) {
        queue->n_late++;
        return WEIR_OK;
    }
    if (slot->cap < packet->n) {
        uint8_t *bytes = realloc(slot->bytes, packet->n);
        if (bytes == NULL) {
            return WEIR_ERR_NOMEM;
        }
        slot->bytes = bytes;
        slot->cap = packet->n;
    }
    if (packet->n > 0) {
        memcpy(slot->bytes, packet->payload, packet->n);
    }
    slot->packet = *packet;
    slot->packet.payload = slot->bytes;
    slot->is_held = true;
    queue->n_held++;
    return WEIR_OK;
}

weir_status rtsp_queue_offer(struct rtsp_queue *queue, const struct rtsp_packet *packet)
{
    if (!queue->has_begun) {
        queue->has_begun = true;
        queue->next = packet->number;
    }
    uint16_t ahead = (uint16_t)(packet->number - queue->next);
    if (ahead < RTSP_QUEUE_PACKETS) {
        queue->has_jumped = false;
        return hold(queue, packet);
    }
    if (ahead < AHEAD_MAX) {
        jump(queue, packet->number, ahead);
        return hold(queue, packet);
    }
    if (ahead > UINT16_MAX - BEHIND_MAX) {
        queue->n_late++;
        return WEIR_OK;
    }
    /* Far off: two in a row, and the sender has begun to count from another number. */
    if (queue->has_jumped && packet->number == queue->jump_to) {
        jump(queue, packet->number, queue->n_held + 1);
        return hold(queue, packet);
    }
    queue->has_jumped = true;
    queue->jump_to = (uint16_t)(packet->number + 1);
    return WEIR_OK;
}

/* The first that is held, and how many are missing before it. */
static const struct rtsp_slot *first_held(const struct rtsp_queue *queue, uint16_t *out_missing)
{
    for (uint16_t i = 0; i < RTSP_QUEUE_PACKETS && queue->n_held > 0; i++) {
        const struct rtsp_slot *slot =
            &queue->slots[(uint16_t)(queue->next + i) % RTSP_QUEUE_PACKETS];
        if (slot->is_held) {
            *out_missing = i;
            return slot;
        }
    }
    return NULL;
}

uint64_t rtsp_queue_due_ns(const struct rtsp_queue *queue)
{
    uint64_t first_ns = 0;
    for (size_t i = 0; i < RTSP_QUEUE_PACKETS && queue->n_held > 0; i++) {
        const struct rtsp_slot *slot = &queue->slots[i];
        if (slot->is_held && (first_ns == 0 || slot->packet.received_ns < first_ns)) {
            first_ns = slot->packet.received_ns;
        }
    }
    return first_ns == 0 ? 0 : first_ns + queue->wait_ns;
}

const struct rtsp_packet *rtsp_queue_peek(struct rtsp_queue *queue, uint64_t now_ns)
{
    uint16_t n_missing = 0;
    const struct rtsp_slot *slot = first_held(queue, &n_missing);
    if (slot == NULL || (n_missing > 0 && now_ns < rtsp_queue_due_ns(queue))) {
        return NULL;
    }
    queue->n_lost += n_missing;
    queue->next = (uint16_t)(queue->next + n_missing);
    return &slot->packet;
}

void rtsp_queue_pop(struct rtsp_queue *queue)
{
    slot_of(queue, queue->next)->is_held = false;
    queue->n_held--;
    queue->next++;
}

void rtsp_queue_restart(struct rtsp_queue *queue)
{
    jump(queue, 0, queue->n_held);
    queue->has_begun = false;
}

void rtsp_queue_fini(struct rtsp_queue *queue)
{
    for (size_t i = 0; i < RTSP_QUEUE_PACKETS; i++) {
        free(queue->slots[i].bytes);
    }
}
