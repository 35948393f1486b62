/** The one seam to a camera at the machine: the system call. A test puts a camera behind it. */
#ifndef WEIR_CAMERA_V4L2_H
#define WEIR_CAMERA_V4L2_H

extern int (*camera_v4l2_ioctl)(int fd, unsigned long request, void *argument);

#endif
