/* Everything the rendezvous reads from strangers: frames, their messages, the published file. */
#include "comm/rendezvous/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_message(const struct wire_frame *frame)
{
    struct wire_challenge challenge;
    struct wire_join join;
    struct wire_problem problem;
    (void)!wire_challenge_parse(frame->payload, frame->len, &challenge);
    if (wire_join_parse(frame->payload, frame->len, &join) == WEIR_OK) {
        /* What parses must be what would be sent for it. */
        uint8_t bytes[WIRE_MAX_HELLO];
        struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
        wire_join_write(&writer, &join);
        wire_put_bytes(&writer, join.mac, sizeof join.mac);
        if (writer.is_bad || writer.len != frame->len ||
            memcmp(bytes, frame->payload, writer.len) != 0) {
            abort();
        }
    }
    if (wire_problem_parse(frame->payload, frame->len, &problem) == WEIR_OK &&
        problem.status >= 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct address_notice notice;
    const uint8_t *at = data;
    size_t left = size, used = 0;
    struct wire_frame frame;
    while (wire_frame_parse(at, left, WIRE_MAX_HELLO, &frame, &used) == WEIR_OK) {
        if (used > left || frame.len > left) {
            abort();
        }
        parse_message(&frame);
        at += used;
        left -= used;
    }
    if (address_notice_parse((const char *)data, size, &notice) == WEIR_OK &&
        (notice.n_addresses < 1 || notice.n_addresses > ADDRESS_MAX)) {
        abort();
    }
    return 0;
}
