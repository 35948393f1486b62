/* Cameras at the machine (Video4Linux 2): memory of the driver's is mapped, filled, looked at, and given back. JPEG or YUYV. */
#include "camera/v4l2.h"

#include "camera/input.h"

#include "base/arena.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_BUFFERS 4

static int call_kernel(int fd, unsigned long request, void *argument)
{
    int rc;
    do {
        rc = ioctl(fd, request, argument);
    } while (rc < 0 && errno == EINTR);
    return rc;
}

int (*camera_v4l2_ioctl)(int fd, unsigned long request, void *argument) = call_kernel;

struct camera_input {
    int fd;
    struct v4l2_pix_format format;

    struct {
        void *bytes;
        size_t n;
    } buffers[N_BUFFERS];

    uint32_t n_buffers;
    struct v4l2_buffer given; /**< What the last unit lies in. */
    bool is_given;
    int64_t first_us;
};

static weir_status set_format(struct camera_input *input, const struct weir_source_video *source,
                              struct weir_error *err)
{
    static const uint32_t forms[] = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_JPEG, V4L2_PIX_FMT_YUYV};
    struct v4l2_capability about = {0};
    if (camera_v4l2_ioctl(input->fd, VIDIOC_QUERYCAP, &about) != 0) {
        return weir_error_set_errno(err, errno, "it is no camera of Video4Linux");
    }
    uint32_t can =
        (about.capabilities & V4L2_CAP_DEVICE_CAPS) != 0 ? about.device_caps : about.capabilities;
    if ((can & V4L2_CAP_VIDEO_CAPTURE) == 0 || (can & V4L2_CAP_STREAMING) == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the device gives no video through mapped memory");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        struct v4l2_format format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
        format.fmt.pix = (struct v4l2_pix_format){.width = (uint32_t)source->width,
                                                  .height = (uint32_t)source->height,
                                                  .pixelformat = forms[i],
                                                  .field = V4L2_FIELD_ANY};
        if (camera_v4l2_ioctl(input->fd, VIDIOC_S_FMT, &format) == 0 &&
            format.fmt.pix.pixelformat == forms[i]) {
            input->format = format.fmt.pix;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "the camera gives neither JPEG nor YUYV");
}

/* It may give them slower; what it does not know it leaves. */
static void set_rate(struct camera_input *input, double fps)
{
    struct v4l2_streamparm rate = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    if (fps > 0) {
        rate.parm.capture.timeperframe = (struct v4l2_fract){1000, (uint32_t)(fps * 1000)};
        (void)camera_v4l2_ioctl(input->fd, VIDIOC_S_PARM, &rate);
    }
}

static weir_status map_buffers(struct camera_input *input, struct weir_error *err)
{
    struct v4l2_requestbuffers wanted = {
        .count = N_BUFFERS, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if (camera_v4l2_ioctl(input->fd, VIDIOC_REQBUFS, &wanted) != 0 || wanted.count < 1) {
        return weir_error_set_errno(err, errno, "the camera has no memory for frames");
    }
    for (uint32_t i = 0; i < WEIR_MIN(wanted.count, (uint32_t)N_BUFFERS); i++) {
        struct v4l2_buffer buffer = {
            .index = i, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
        if (camera_v4l2_ioctl(input->fd, VIDIOC_QUERYBUF, &buffer) != 0) {
            return weir_error_set_errno(err, errno, "memory of the camera");
        }
        void *bytes = mmap(NULL, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, input->fd,
                           buffer.m.offset);
        if (bytes == MAP_FAILED) {
            return weir_error_set_errno(err, errno, "memory of the camera");
        }
        input->buffers[i].bytes = bytes;
        input->buffers[i].n = buffer.length;
        input->n_buffers = i + 1;
        if (camera_v4l2_ioctl(input->fd, VIDIOC_QBUF, &buffer) != 0) {
            return weir_error_set_errno(err, errno, "memory of the camera");
        }
    }
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    return camera_v4l2_ioctl(input->fd, VIDIOC_STREAMON, &type) == 0
               ? WEIR_OK
               : weir_error_set_errno(err, errno,
                                      "the camera does not start: another program may "
                                      "have it");
}

static weir_status prepare(struct camera_input *input, const struct weir_source_video *source,
                           struct weir_error *err)
{
    WEIR_TRY(set_format(input, source, err));
    set_rate(input, source->fps);
    return map_buffers(input, err);
}

static void close_input(struct camera_input *input)
{
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    (void)camera_v4l2_ioctl(input->fd, VIDIOC_STREAMOFF, &type);
    for (uint32_t i = 0; i < input->n_buffers; i++) {
        (void)munmap(input->buffers[i].bytes, input->buffers[i].n);
    }
    (void)close(input->fd);
    free(input);
}

static weir_status open_input(const struct camera_setup *setup, struct camera_link *link,
                              struct camera_input **out, struct weir_error *err)
{
    int fds[2], port;
    WEIR_TRY(camera_link_ask(link, WEIR_VIDEO_FILE, fds, &port, err));
    struct camera_input *input = weir_xalloc(sizeof *input);
    *input = (struct camera_input){.fd = fds[0], .first_us = INT64_MIN};
    weir_status status = prepare(input, setup->source, err);
    if (status != WEIR_OK) {
        close_input(input);
        return status;
    }
    *out = input;
    return WEIR_OK;
}

static struct camera_stream stream_of(const struct camera_input *input)
{
    bool is_raw = input->format.pixelformat == V4L2_PIX_FMT_YUYV;
    return (struct camera_stream){.codec = is_raw ? AV_CODEC_ID_NONE : AV_CODEC_ID_MJPEG,
                                  .pixels = AV_PIX_FMT_YUYV422,
                                  .width = (int)input->format.width,
                                  .height = (int)input->format.height,
                                  .is_intra = true};
}

static weir_status next(struct camera_input *input, int64_t deadline_ms, struct camera_unit *out,
                        struct weir_error *err)
{
    struct pollfd poll_fd = {.fd = input->fd, .events = POLLIN};
    struct v4l2_buffer buffer = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if (input->is_given && camera_v4l2_ioctl(input->fd, VIDIOC_QBUF, &input->given) != 0) {
        return weir_error_set_errno(err, errno, "the camera has gone");
    }
    input->is_given = false;
    if (poll(&poll_fd, 1, (int)WEIR_MAX(deadline_ms - weir_mono_ms(), 0)) == 0) {
        return WEIR_ERR_TIMEOUT;
    }
    if (camera_v4l2_ioctl(input->fd, VIDIOC_DQBUF, &buffer) != 0) {
        return errno == EAGAIN ? WEIR_ERR_TIMEOUT
                               : weir_error_set_errno(err, errno, "the camera has gone");
    }
    if (buffer.index >= input->n_buffers) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the camera's driver names no memory of ours");
    }
    input->given = buffer;
    input->is_given = true;
    int64_t at_us = (int64_t)buffer.timestamp.tv_sec * 1000000 + buffer.timestamp.tv_usec;
    input->first_us = input->first_us == INT64_MIN ? at_us : input->first_us;
    bool is_good = (buffer.flags & V4L2_BUF_FLAG_ERROR) == 0;
    *out = (struct camera_unit){
        .bytes = input->buffers[buffer.index].bytes,
        .n_bytes = is_good ? WEIR_MIN(buffer.bytesused, input->buffers[buffer.index].n) : 0,
        .media_us = at_us - input->first_us,
        .received_ns = weir_mono_ns(),
        .is_key = true};
    return WEIR_OK;
}

const struct camera_input_ops camera_input_v4l2 = {
    .kind = "v4l2", .open = open_input, .stream = stream_of, .next = next, .close = close_input};
