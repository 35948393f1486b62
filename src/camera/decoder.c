#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#define ORIGINS  64  /* a decoder holds back 16 pictures at most */
#define WAIT_MAX 300 /* a stream may have no key frames, only parts of them in turn */

struct camera_decoder {
    AVCodecContext *context;
    AVFrame *frame;
    AVPacket *packet;
    int64_t max_pixels;
    bool is_intra, key_frames;
    int n_waited; /**< Units since a damaged one, before a key frame; -1: nothing is waited for. */
    uint64_t n_damaged;
    int64_t n_put;
    struct camera_origin origins[ORIGINS]; /**< By the packet's number. */
    /* Units that are pixels already take this way. */
    struct camera_stream raw;
    struct camera_picture picture;
    bool has_picture;
};

static weir_status check_pixels(const struct camera_decoder *decoder, int width, int height,
                                int64_t n_pixels, struct weir_error *err)
{
    return n_pixels <= decoder->max_pixels
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "its frames have %d × %d pixels, more than max_pixels (%lld)",
                                width, height, (long long)decoder->max_pixels);
}

/* As far as the decoder knows it by now. */
static weir_status check_size(const struct camera_decoder *decoder, struct weir_error *err)
{
    const AVCodecContext *context = decoder->context;
    int64_t n_pixels = WEIR_MAX((int64_t)context->width * context->height,
                                (int64_t)context->coded_width * context->coded_height);
    return check_pixels(decoder, context->width, context->height, n_pixels, err);
}

/* What a JPEG says of itself: its decoder refuses one that is too large without telling the size. */
static weir_status check_jpeg(const struct camera_decoder *decoder, const struct camera_unit *unit,
                              struct weir_error *err)
{
    enum { FIRST_FRAME = 0xc0, LAST_FRAME = 0xcf, DHT = 0xc4, JPG = 0xc8, DAC = 0xcc };

    const uint8_t *bytes = unit->bytes;
    for (size_t at = 2; at + 9 <= unit->n_bytes && bytes[at] == 0xff;) {
        uint8_t marker = bytes[at + 1];
        if (marker >= FIRST_FRAME && marker <= LAST_FRAME && marker != DHT && marker != JPG &&
            marker != DAC) {
            int height = bytes[at + 5] << 8 | bytes[at + 6];
            int width = bytes[at + 7] << 8 | bytes[at + 8];
            return check_pixels(decoder, width, height, (int64_t)width * height, err);
        }
        at += marker == 0xff ? 1 : 2 + (size_t)(bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return WEIR_OK;
}

static weir_status open_codec(struct camera_decoder *decoder, const struct camera_stream *stream,
                              struct weir_error *err)
{
    const AVCodec *codec = avcodec_find_decoder(stream->codec);
    if (codec == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the libraries of ffmpeg here have no decoder for %s",
                              avcodec_get_name(stream->codec));
    }
    AVCodecContext *context = decoder->context = avcodec_alloc_context3(codec);
    decoder->frame = av_frame_alloc();
    decoder->packet = av_packet_alloc();
    if (context == NULL || decoder->frame == NULL || decoder->packet == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a decoder");
    }
    if (stream->parameters != NULL &&
        avcodec_parameters_to_context(context, stream->parameters) < 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "what the file says of its video is damaged");
    }
    WEIR_TRY(check_size(decoder, err));
    if (stream->n_extra > 0) {
        context->extradata = av_mallocz(stream->n_extra + AV_INPUT_BUFFER_PADDING_SIZE);
        if (context->extradata == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a decoder");
        }
        memcpy(context->extradata, stream->extra, stream->n_extra);
        context->extradata_size = (int)stream->n_extra;
    }
    context->thread_count = 1;
    context->thread_type = FF_THREAD_SLICE;
    context->max_pixels = decoder->max_pixels;
    context->skip_frame = decoder->key_frames ? AVDISCARD_NONKEY : AVDISCARD_DEFAULT;
    return avcodec_open2(context, codec, NULL) >= 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "the %s decoder does not take the stream",
                                codec->name);
}

weir_status camera_decoder_open(const struct camera_stream *stream, int64_t max_pixels,
                                bool key_frames, struct camera_decoder **out,
                                struct weir_error *err)
{
    struct camera_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a decoder");
    }
    decoder->max_pixels = max_pixels;
    decoder->key_frames = key_frames;
    decoder->is_intra = stream->is_intra;
    decoder->n_waited = stream->is_intra ? -1 : 0;
    decoder->raw = *stream;
    weir_status status =
        stream->codec != AV_CODEC_ID_NONE ? open_codec(decoder, stream, err) : WEIR_OK;
    if (status != WEIR_OK) {
        camera_decoder_close(decoder);
        return status;
    }
    *out = decoder;
    return WEIR_OK;
}

void camera_decoder_close(struct camera_decoder *decoder)
{
    if (decoder != NULL) {
        av_packet_free(&decoder->packet);
        av_frame_free(&decoder->frame);
        avcodec_free_context(&decoder->context);
        free(decoder);
    }
}

static void damage(struct camera_decoder *decoder)
{
    decoder->n_damaged++;
    decoder->n_waited = decoder->is_intra ? -1 : 0;
}

static weir_status put_raw(struct camera_decoder *decoder, const struct camera_unit *unit)
{
    const struct camera_stream *raw = &decoder->raw;
    int stride = av_pix_fmt_desc_get(raw->pixels)->comp[0].step * raw->width;
    decoder->has_picture = unit->n_bytes >= (size_t)stride * (size_t)raw->height;
    decoder->n_damaged += !decoder->has_picture;
    decoder->picture = (struct camera_picture){.pixels = raw->pixels,
                                               .width = raw->width,
                                               .height = raw->height,
                                               .planes = {unit->bytes},
                                               .strides = {stride}};
    return WEIR_OK;
}

weir_status camera_decoder_put(struct camera_decoder *decoder, const struct camera_unit *unit,
                               int64_t seq, bool is_wanted, struct weir_error *err)
{
    if (unit != NULL) {
        decoder->origins[decoder->n_put % ORIGINS] = (struct camera_origin){
            seq, unit->media_us, unit->wall_ms, unit->received_ns, unit->epoch};
        decoder->n_put++;
    }
    if (decoder->context == NULL) {
        return unit != NULL && is_wanted ? put_raw(decoder, unit) : WEIR_OK;
    }
    if (unit == NULL) {
        (void)avcodec_send_packet(decoder->context, NULL);
        return WEIR_OK;
    }
    if ((decoder->is_intra && !is_wanted) || (decoder->key_frames && !unit->is_key)) {
        return WEIR_OK;
    }
    WEIR_TRY(decoder->context->codec_id == AV_CODEC_ID_MJPEG ? check_jpeg(decoder, unit, err)
                                                             : WEIR_OK);
    decoder->context->skip_frame = decoder->key_frames ? AVDISCARD_NONKEY
                                   : is_wanted         ? AVDISCARD_DEFAULT
                                                       : AVDISCARD_NONREF;
    if (av_new_packet(decoder->packet, (int)unit->n_bytes) < 0) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a picture");
    }
    memcpy(decoder->packet->data, unit->bytes, unit->n_bytes);
    decoder->packet->pts = decoder->n_put - 1;
    decoder->packet->dts = decoder->n_put - 1;
    decoder->packet->flags = unit->is_key ? AV_PKT_FLAG_KEY : 0;
    if (decoder->n_waited >= 0) {
        decoder->n_waited =
            unit->is_key || decoder->n_waited >= WAIT_MAX ? -1 : decoder->n_waited + 1;
    }
    int rc = avcodec_send_packet(decoder->context, decoder->packet);
    av_packet_unref(decoder->packet);
    if (rc < 0 && rc != AVERROR(EAGAIN)) {
        WEIR_TRY(check_size(decoder, err));
        damage(decoder);
    }
    return WEIR_OK;
}

static void show(const struct camera_decoder *decoder, struct camera_picture *out)
{
    const AVFrame *frame = decoder->frame;
    bool is_full = frame->color_range == AVCOL_RANGE_JPEG || frame->format == AV_PIX_FMT_YUVJ420P ||
                   frame->format == AV_PIX_FMT_YUVJ422P || frame->format == AV_PIX_FMT_YUVJ444P ||
                   frame->format == AV_PIX_FMT_YUVJ440P;
    *out = (struct camera_picture){.pixels = frame->format,
                                   .is_full_range = is_full,
                                   .width = frame->width,
                                   .height = frame->height};
    for (int i = 0; i < 4; i++) {
        out->planes[i] = frame->data[i];
        out->strides[i] = frame->linesize[i];
    }
}

weir_status camera_decoder_take(struct camera_decoder *decoder, struct camera_picture *out,
                                struct camera_origin *out_origin)
{
    if (decoder->context == NULL) {
        bool has_picture = decoder->has_picture;
        decoder->has_picture = false;
        *out = decoder->picture;
        *out_origin = decoder->origins[(decoder->n_put + ORIGINS - 1) % ORIGINS];
        return has_picture ? WEIR_OK : WEIR_ERR_END;
    }
    for (;;) {
        int rc = avcodec_receive_frame(decoder->context, decoder->frame);
        if (rc < 0) {
            if (rc != AVERROR(EAGAIN) && rc != AVERROR_EOF) {
                damage(decoder);
            }
            return WEIR_ERR_END;
        }
        const AVFrame *frame = decoder->frame;
        if (frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
            damage(decoder);
        } else if (decoder->n_waited < 0 && frame->pts >= 0 && frame->width > 0) {
            *out_origin = decoder->origins[frame->pts % ORIGINS];
            show(decoder, out);
            return WEIR_OK;
        }
    }
}

void camera_decoder_reset(struct camera_decoder *decoder)
{
    if (decoder->context != NULL) {
        avcodec_flush_buffers(decoder->context);
        decoder->n_waited = decoder->is_intra ? -1 : 0;
    }
}

uint64_t camera_decoder_n_damaged(const struct camera_decoder *decoder)
{
    return decoder->n_damaged;
}
