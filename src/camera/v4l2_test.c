/* A camera at the machine, behind the system call: what it is asked, and what its frames become. */
#include "v4l2.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "input.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 4096

static struct {
    uint32_t form; /**< That the camera has. */
    uint32_t capabilities;
    bool is_queued[4], is_on;
    uint32_t next;
    uint32_t flags, bad_index;
    bool is_gone;
    uint8_t *memory;
} device;

static int take_buffer(struct v4l2_buffer *buffer)
{
    if (device.is_gone || !device.is_on || !device.is_queued[device.next % 4]) {
        errno = device.is_gone ? ENODEV : EAGAIN;
        return -1;
    }
    buffer->index = device.next % 4 + device.bad_index;
    buffer->bytesused = 10 + device.next;
    buffer->flags = device.flags;
    buffer->timestamp.tv_sec = 7;
    buffer->timestamp.tv_usec = 1000 * (int)device.next;
    device.is_queued[device.next % 4] = false;
    device.memory[device.next % 4 * BUFFER_BYTES] = (uint8_t)device.next;
    device.next++;
    return 0;
}

static int act(int fd, unsigned long request, void *argument)
{
    (void)fd;
    struct v4l2_buffer *buffer = argument;
    switch (request) {
    case VIDIOC_QUERYCAP:
        ((struct v4l2_capability *)argument)->capabilities = device.capabilities;
        return 0;
    case VIDIOC_S_FMT: {
        struct v4l2_pix_format *pix = &((struct v4l2_format *)argument)->fmt.pix;
        pix->pixelformat = device.form; /* drivers answer with what they have */
        pix->width = 32;
        pix->height = 16;
        return 0;
    }
    case VIDIOC_REQBUFS:
        return 0;
    case VIDIOC_QUERYBUF:
        buffer->length = BUFFER_BYTES;
        buffer->m.offset = buffer->index * BUFFER_BYTES;
        return 0;
    case VIDIOC_QBUF:
        device.is_queued[buffer->index % 4] = true;
        return 0;
    case VIDIOC_DQBUF:
        return take_buffer(buffer);
    case VIDIOC_STREAMON:
    case VIDIOC_STREAMOFF:
        device.is_on = request == VIDIOC_STREAMON;
        return 0;
    default:
        return request == VIDIOC_S_PARM ? 0 : -1;
    }
}

static struct camera_link parent;
static struct camera_input *input;
static struct weir_error err;
static int pair[2];

static weir_status open_camera(uint32_t form)
{
    static const struct weir_source_video source = {.width = 30, .height = 20, .fps = 10};
    const struct camera_setup setup = {.source = &source};
    struct weir_video_message opened = {.kind = WEIR_VIDEO_OPENED};
    memset(&device, 0, sizeof device);
    device.form = form;
    device.capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    camera_v4l2_ioctl = act;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    int fd = memfd_create("camera", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, 4 * BUFFER_BYTES), 0);
    device.memory = mmap(NULL, 4 * BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_int_eq(weir_video_send(pair[0], &opened, &fd, 1, true), WEIR_OK);
    (void)close(fd);
    parent = (struct camera_link){.socket = pair[1]};
    return camera_input_v4l2.open(&setup, &parent, &input, &err);
}

static void close_all(void)
{
    (void)munmap(device.memory, 4 * BUFFER_BYTES);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

START_TEST(frames_come_in_order_and_their_memory_goes_back)
{
    ck_assert_msg(open_camera(V4L2_PIX_FMT_MJPEG) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(camera_input_v4l2.stream(input).codec, AV_CODEC_ID_MJPEG);
    for (unsigned i = 0; i < 20; i++) {
        struct camera_unit unit;
        ck_assert_int_eq(camera_input_v4l2.next(input, weir_mono_ms() + 1000, &unit, &err),
                         WEIR_OK);
        ck_assert_uint_eq(unit.n_bytes, 10 + i);
        ck_assert_uint_eq(unit.bytes[0], i);
        ck_assert_int_eq(unit.media_us, 1000 * i);
        ck_assert_int_eq(device.is_queued[0] + device.is_queued[1] + device.is_queued[2] +
                             device.is_queued[3],
                         3);
    }
    camera_input_v4l2.close(input);
    ck_assert(!device.is_on);
    close_all();
}

END_TEST

START_TEST(what_a_camera_lacks_or_breaks_is_a_sentence)
{
    struct camera_unit unit;
    ck_assert_int_eq(open_camera(V4L2_PIX_FMT_RGB24), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "neither JPEG nor YUYV"));
    close_all();
    ck_assert_int_eq(open_camera(V4L2_PIX_FMT_YUYV), WEIR_OK);
    struct camera_stream stream = camera_input_v4l2.stream(input);
    ck_assert_int_eq(stream.codec, AV_CODEC_ID_NONE);
    ck_assert_int_eq(stream.pixels, AV_PIX_FMT_YUYV422);
    ck_assert_int_eq(stream.width, 32);
    device.flags = V4L2_BUF_FLAG_ERROR;
    ck_assert_int_eq(camera_input_v4l2.next(input, weir_mono_ms(), &unit, &err), WEIR_OK);
    ck_assert_uint_eq(unit.n_bytes, 0); /* which is counted as damaged */
    device.bad_index = 4;
    ck_assert_int_eq(camera_input_v4l2.next(input, weir_mono_ms(), &unit, &err), WEIR_ERR_CORRUPT);
    device.is_gone = true;
    ck_assert_int_eq(camera_input_v4l2.next(input, weir_mono_ms(), &unit, &err),
                     weir_status_from_errno(ENODEV));
    ck_assert_ptr_nonnull(strstr(err.message, "the camera has gone"));
    camera_input_v4l2.close(input);
    close_all();
}

END_TEST

WEIR_TEST_MAIN("camera_v4l2", frames_come_in_order_and_their_memory_goes_back,
               what_a_camera_lacks_or_breaks_is_a_sentence)
