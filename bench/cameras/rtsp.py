"""An RTSP server (GStreamer's) that plays clips as cameras do, and notes when each frame left.

rtsp.py --clip FILE [--clip FILE …] [--log FILE] [--port N]

Camera i is rtsp://127.0.0.1:PORT/camera-i and plays clip i at its own pace, from its beginning, once somebody watches. The port is printed; without
--port it is the kernel's choice. FILE gets a line a frame: {"camera", "play", "frame", "time_ms"}; a play goes from
the beginning on, and there may be two at a time, for two that watch.
"""

import argparse
import json
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402


class Camera(GstRtspServer.RTSPMediaFactory):
    def __init__(self, number, clip, note):
        super().__init__()
        self.number, self.note, self.n_plays = number, note, 0
        self.set_launch(f'( filesrc location="{clip}" ! qtdemux ! h264parse config-interval=-1 ! identity name=pace sync=true ! rtph264pay name=pay0 pt=96 )')
        self.set_shared(True)

    def do_configure(self, media):  # of GstRtspServer.RTSPMediaFactory: when somebody begins to watch
        play = {"camera": self.number, "play": self.n_plays, "frame": 0}
        self.n_plays += 1
        pad = media.get_element().get_by_name_recurse_up("pace").get_static_pad("src")
        pad.add_probe(Gst.PadProbeType.BUFFER, self.sent, play)

    def sent(self, _pad, _info, play):
        self.note({**play, "time_ms": time.time() * 1000})
        play["frame"] += 1
        return Gst.PadProbeReturn.OK


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", action="append", required=True)
    parser.add_argument("--log")
    parser.add_argument("--port", default="0")
    given = parser.parse_args()
    Gst.init(None)
    log = open(given.log, "w", buffering=1) if given.log else None

    def note(line):
        if log:
            log.write(json.dumps(line) + "\n")

    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(given.port)
    cameras = [Camera(i, clip, note) for i, clip in enumerate(given.clip)]
    for camera in cameras:
        server.get_mount_points().add_factory(f"/camera-{camera.number}", camera)
    server.attach(None)
    print(f"port {server.get_bound_port()}", flush=True)
    GLib.timeout_add_seconds(2, lambda: server.get_session_pool().cleanup() or True)
    try:
        GLib.MainLoop().run()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
