/* Video files, by libavformat on a descriptor: whatever a file says, no other is opened, and nothing of the network. */
#include "camera/input.h"

#include "base/arena.h"
#include "base/clock.h"

#include <libavformat/avformat.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (64 << 10)
#define PROBE_BYTES  (4 << 20)
#define STREAMS_MAX  32
#define UNIT_MAX     (64 << 20)
#define READ_MAX     ((int64_t)128 << 20) /* libavformat keeps all of it until there is a packet */
#define STUCK_MS     20000
#define GAP_MAX_US   10000000 /* a pause in a file that is longer was none */
#define DEFAULT_US   40000
#define MICROSECONDS ((AVRational){1, 1000000})

struct camera_input {
    struct camera_link *link;
    int fd;
    AVFormatContext *format;
    AVIOContext *io;
    AVPacket *packet;
    int i_stream;
    bool is_fast, is_loop, begins_anew;
    /** Until when libavformat may read on: a file can make it search for ever. */
    int64_t deadline_ms;
    int64_t n_read;  /**< Bytes since the last packet, or search. */
    bool is_endless; /**< These were too many: nothing more is read. */
    /* The file's times, made to run on evenly. */
    int64_t last_us, media_us, n_units, n_since_begin;
    int64_t begun_ms; /**< Monotonic, of the first unit. */
    bool is_held;     /**< `packet` waits for its time. */
};

static int read_bytes(void *context, uint8_t *out, int n)
{
    struct camera_input *input = context;
    input->is_endless = input->is_endless || input->n_read > READ_MAX;
    if (input->is_endless) {
        return AVERROR(EFBIG);
    }
    ssize_t got = read(input->fd, out, (size_t)n);
    input->n_read += WEIR_MAX(got, 0);
    return got > 0 ? (int)got : got == 0 ? AVERROR_EOF : AVERROR(EIO);
}

static int64_t seek_bytes(void *context, int64_t offset, int whence)
{
    struct camera_input *input = context;
    if ((whence & AVSEEK_SIZE) != 0) {
        int64_t at = lseek(input->fd, 0, SEEK_CUR), end = lseek(input->fd, 0, SEEK_END);
        (void)lseek(input->fd, at, SEEK_SET);
        return end;
    }
    input->n_read = 0;
    return lseek(input->fd, offset, whence & ~AVSEEK_FORCE);
}

static int is_stuck(void *context)
{
    const struct camera_input *input = context;
    return weir_mono_ms() > input->deadline_ms;
}

/* Playlists and the like name other files, and addresses. */
static int open_nothing(struct AVFormatContext *format, AVIOContext **out, const char *url,
                        int flags, AVDictionary **options)
{
    (void)format;
    (void)out;
    (void)url;
    (void)flags;
    (void)options;
    return AVERROR(EPERM);
}

/* What libavformat did not take. */
static weir_status say_bad(const struct camera_input *input, const char *what,
                           struct weir_error *err)
{
    return input->is_endless
               ? weir_error_set(err, WEIR_ERR_LIMIT, "the file has %lld MiB without a picture",
                                (long long)READ_MAX >> 20)
               : weir_error_set(err, WEIR_ERR_CORRUPT, "%s", what);
}

static weir_status open_format(struct camera_input *input, struct weir_error *err)
{
    uint8_t *buffer = av_malloc(BUFFER_BYTES);
    input->io = buffer != NULL ? avio_alloc_context(buffer, BUFFER_BYTES, 0, input, read_bytes,
                                                    NULL, seek_bytes)
                               : NULL;
    input->format = avformat_alloc_context();
    input->packet = av_packet_alloc();
    if (input->io == NULL || input->format == NULL || input->packet == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a file");
    }
    input->deadline_ms = weir_mono_ms() + STUCK_MS;
    input->format->pb = input->io;
    input->format->io_open = open_nothing;
    input->format->interrupt_callback = (AVIOInterruptCB){is_stuck, input};
    input->format->max_streams = STREAMS_MAX;
    input->format->probesize = PROBE_BYTES;
    if (avformat_open_input(&input->format, "", NULL, NULL) < 0 ||
        avformat_find_stream_info(input->format, NULL) < 0) {
        return say_bad(input, "it is no video file that the libraries of ffmpeg know", err);
    }
    input->i_stream = av_find_best_stream(input->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    return input->i_stream >= 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "there is no video in the file");
}

static void close_input(struct camera_input *input)
{
    if (input != NULL) {
        av_packet_free(&input->packet);
        avformat_close_input(&input->format);
        if (input->io != NULL) {
            av_freep(&input->io->buffer);
            avio_context_free(&input->io);
        }
        free(input);
    }
}

static weir_status open_input(const struct camera_setup *setup, struct camera_link *link,
                              struct camera_input **out, struct weir_error *err)
{
    int fds[2], port;
    WEIR_TRY(camera_link_ask(link, WEIR_VIDEO_FILE, fds, &port, err));
    struct camera_input *input = weir_xalloc(sizeof *input);
    *input = (struct camera_input){.link = link, .fd = fds[0], .last_us = INT64_MIN};
    input->is_fast = strcmp(setup->source->pace, "fast") == 0;
    input->is_loop = setup->source->loop;
    weir_status status = open_format(input, err);
    if (status != WEIR_OK) {
        close_input(input);
        return status;
    }
    *out = input;
    return WEIR_OK;
}

static struct camera_stream stream_of(const struct camera_input *input)
{
    const AVCodecParameters *parameters = input->format->streams[input->i_stream]->codecpar;
    const AVCodecDescriptor *about = avcodec_descriptor_get(parameters->codec_id);
    return (struct camera_stream){
        .codec = parameters->codec_id,
        .parameters = parameters,
        .is_intra = about != NULL && (about->props & AV_CODEC_PROP_INTRA_ONLY) != 0,
    };
}

/* The next packet of the video. */
static weir_status read_packet(struct camera_input *input, struct weir_error *err)
{
    input->deadline_ms = weir_mono_ms() + STUCK_MS;
    for (;;) {
        int rc = av_read_frame(input->format, input->packet);
        bool is_over = rc == AVERROR_EOF && !input->is_endless; /* it takes any error for an end */
        if (is_over && input->is_loop && input->n_since_begin > 0) {
            input->n_since_begin = 0;
            input->begins_anew = true;
            input->last_us = INT64_MIN;
            rc = av_seek_frame(input->format, -1, INT64_MIN, AVSEEK_FLAG_BACKWARD);
            rc = rc >= 0 ? rc : av_seek_frame(input->format, -1, 0, AVSEEK_FLAG_BYTE);
            if (rc < 0) {
                return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                      "the file cannot be begun again: leave loop out");
            }
            continue;
        }
        if (rc < 0) {
            return is_over ? weir_error_set(err, WEIR_ERR_END, "the file is over")
                           : say_bad(input, "the file is damaged here", err);
        }
        input->n_read = 0;
        if (input->packet->stream_index == input->i_stream && input->packet->size > 0 &&
            input->packet->size <= UNIT_MAX) {
            return WEIR_OK;
        }
        av_packet_unref(input->packet);
    }
}

/* The packet's time, by which it is played: that of the one before and what lies between them. */
static void advance(struct camera_input *input)
{
    const AVStream *stream = input->format->streams[input->i_stream];
    const AVPacket *packet = input->packet;
    int64_t at = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    int64_t us =
        at != AV_NOPTS_VALUE ? av_rescale_q(at, stream->time_base, MICROSECONDS) : INT64_MIN;
    int64_t gap_us = us == INT64_MIN || input->last_us == INT64_MIN
                         ? DEFAULT_US
                         : (int64_t)((uint64_t)us - (uint64_t)input->last_us);
    if (input->n_units > 0) {
        input->media_us += gap_us >= 0 && gap_us <= GAP_MAX_US ? gap_us : DEFAULT_US;
    }
    input->last_us = us;
    input->n_units++;
    input->n_since_begin++;
}

/* By how much later it is shown than it is decoded: frames that come after one of years ahead would never be due. */
static int64_t shown_later_us(const struct camera_input *input)
{
    const AVPacket *packet = input->packet;
    bool is_later =
        packet->dts != AV_NOPTS_VALUE && packet->pts != AV_NOPTS_VALUE && packet->pts > packet->dts;
    int64_t us =
        is_later ? av_rescale_q((int64_t)((uint64_t)packet->pts - (uint64_t)packet->dts),
                                input->format->streams[input->i_stream]->time_base, MICROSECONDS)
                 : 0;
    return us >= 0 && us <= GAP_MAX_US ? us : 0;
}

static weir_status next(struct camera_input *input, int64_t deadline_ms, struct camera_unit *out,
                        struct weir_error *err)
{
    if (!input->is_held) {
        av_packet_unref(input->packet);
        WEIR_TRY(read_packet(input, err));
        advance(input);
        input->is_held = true;
        input->begun_ms = input->n_units == 1 ? weir_mono_ms() : input->begun_ms;
    }
    int64_t due_ms = input->begun_ms + input->media_us / 1000;
    while (!input->is_fast && due_ms > weir_mono_ms()) {
        int64_t wait_ms = WEIR_MIN(due_ms, deadline_ms) - weir_mono_ms();
        if (wait_ms <= 0) {
            return WEIR_ERR_TIMEOUT;
        }
        if (camera_link_listen(input->link, (int)wait_ms) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_PEER, "nobody takes its frames");
        }
    }
    input->is_held = false;
    *out = (struct camera_unit){.bytes = input->packet->data,
                                .n_bytes = (size_t)input->packet->size,
                                .media_us = input->media_us + shown_later_us(input),
                                .received_ns = weir_mono_ns(),
                                .is_key = (input->packet->flags & AV_PKT_FLAG_KEY) != 0,
                                .begins_anew = input->begins_anew};
    input->begins_anew = false;
    return WEIR_OK;
}

const struct camera_input_ops camera_input_video = {
    .kind = "video", .open = open_input, .stream = stream_of, .next = next, .close = close_input};
