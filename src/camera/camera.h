/**
 * weir-camera: the pictures of one camera, decoded, for the process that has started it.
 *
 *     descriptor 0 ─▸ setup ─▸ sandbox ─▸ input (rtsp, mjpeg, v4l2, video) ─▸ units ─▸ decoder ─▸ cut ─▸ a free slot ─▸ descriptor 0
 *
 * One process is one connection to one camera; when that ends, it says why and ends (video/camera.h starts the next). It gives up its
 * rights before it reads a byte of what the camera sends (sandbox.h), and has its memory bounded. A camera is silent, and so lost, after
 * max(5 s, 10 × its period); until its period is known, after 60 s.
 */
#ifndef WEIR_CAMERA_CAMERA_H
#define WEIR_CAMERA_CAMERA_H

/** The program. */
int weir_camera_main(int argc, char **argv);

/** `weir-camera --serve`: until the connection's end. @return The process's exit status. */
int weir_camera_serve(int socket);

#endif
