/* What is wrong with a camera, and what to do about it: tables. */
#include "base/macros.h"
#include "ion/camera.h"

#include <string.h>

// clang-format off
/* The first row that fits: its status, and words that the error has. NULL: any. */
static const struct {
    const char *cause, *words, *cure;
} errors[] = {
    {"UNAUTH", NULL, "Name the user in the camera's url, put the password into a secret (`weir secret set NAME`), and let the camera have it: secrets: [\"password=NAME\"]."},
    {"DENIED", "does not let this user", "Give the user the right to watch the stream, in the camera's own settings, or name another user."},
    {"DENIED", NULL, "Let the user of the replica read the file or the device on its node (`weir agent --share`), or name another."},
    {"NOT_FOUND", "name is not known", "The node does not know the camera's name: correct it, or write the camera's address (192.0.2.7) in its place."},
    {"NOT_FOUND", "path", "The camera is there, and the path of its url is wrong: its manual says which it has, as rtsp://HOST/Streaming/Channels/101."},
    {"NOT_FOUND", NULL, "There is no such file or device on the replica's node: correct the path."},
    {"UNAVAILABLE", "refused", "The host is there and nothing listens at the port: switch RTSP on in the camera's settings, or correct the port."},
    {"UNAVAILABLE", "cannot connect", "There is no way from the replica's node to the camera: is it switched on, plugged in, and in a network that the node reaches?"},
    {"UNAVAILABLE", "no way to", "There is no way from the replica's node to the camera: is it switched on, plugged in, and in a network that the node reaches?"},
    {"UNAVAILABLE", "others watch", "The camera serves no more viewers: end others, or take its second stream. A camera that starts serves in a minute."},
    {"UNAVAILABLE", "name is not known", "The node cannot ask for names now: is its name server there? Or write the camera's address in place of its name."},
    {"UNAVAILABLE", NULL, "The camera refuses for now, and is tried again: if it goes on, restart it, and see how many others watch it."},
    {"INVALID", "is no ", "The path is of something else: name a file of video, or with the kind v4l2 a /dev/videoN."},
    {"TIMEOUT", "cannot connect", "The camera does not answer: is it switched on, and is its address right? A firewall between the node and the camera is silent, too."},
    {"TIMEOUT", "sent no picture", "It is connected and sends no frames: look at the cable and the camera's load; over Wi-Fi or through a router set transport: tcp."},
    {"TIMEOUT", "sends no picture", "It is connected and sends no frames: look at the cable and the camera's load; over Wi-Fi or through a router set transport: tcp."},
    {"TIMEOUT", NULL, "The camera answers too slowly: restart it, and see how many others watch it."},
    {"PEER", "weir-camera", "The program that decodes its stream ended: `weir logs ION/PIPELINE` says more. If it comes again, set the camera to H.264."},
    {"PEER", NULL, "The camera hung up, and is tried again: if it goes on, restart the camera, and see whether others take its stream."},
    {"UNSUPPORTED", "rtsps", "Use the camera's rtsp:// address, in a network of the cameras' own."},
    {"UNSUPPORTED", "transport", "Set transport of the source to what the error says."},
    {"UNSUPPORTED", "another address", "Write the address that it points to (`curl -I ADDRESS` shows it) in the place of this one."},
    {"UNSUPPORTED", "a proof", "Switch Basic or Digest authentication on, in the camera's own settings."},
    {"UNSUPPORTED", "its answer", "The address gives no JPEG as cameras do: the camera's manual says where a stream of JPEG is (MJPEG), or a snapshot."},
    {"UNSUPPORTED", "no decoder", "Set the camera's stream to H.264, H.265 or JPEG, or install ffmpeg's libraries with that decoder on the node."},
    {"UNSUPPORTED", "weir-camera", "Install the package weir-camera on the replica's node."},
    {"UNSUPPORTED", NULL, "Set the camera's stream to H.264 (main profile), H.265 or JPEG, in the camera's own settings."},
    {"LIMIT", "pixels", "Set a smaller size in the camera's settings or take its second stream; or raise max_pixels of the source."},
    {"LIMIT", NULL, "No camera sends so much at once: is this the address of its stream? Restart it; a file is damaged."},
    {"CORRUPT", "not RTSP", "Something else listens at this port: correct the port (RTSP has 554 mostly), or take the kind mjpeg for a camera that speaks HTTP."},
    {"CORRUPT", "can be decoded", "Packets come and no picture of them: set the camera's stream to H.264 (main profile), H.265 or JPEG without encryption, in its own settings; or restart it."},
    {"CORRUPT", "HTTP", "Something else listens at this port: correct the port, or take the kind rtsp for a camera that speaks RTSP."},
    {"CORRUPT", "boundary", "The address gives no stream of JPEG as cameras do: restart the camera, take another of its addresses, or its stream over RTSP (kind rtsp)."},
    {"CORRUPT", "file", "It is no video, or damaged: `weir-camera FILE`, on the replica's node, says how far it can be played."},
    {"CORRUPT", "is no picture", "The camera's page is at this address, not its pictures: its manual says where a stream of JPEG is (MJPEG), or a snapshot."},
    {"CORRUPT", NULL, "What it sends is damaged: look at the cable, set transport: tcp, and set the stream to H.264."},
    {"NOMEM", NULL, "The replica's node has no memory left: give it fewer cameras, or set a smaller size in the camera's settings."},
    {"END", NULL, "The file is over, and nothing more comes of it: loop: true begins it again; else take it out of the document."},
};

static const struct {
    const char *reported, *name, *cure;
} healths[] = {
    {"black", "dark", "Nearly all of its picture is black: switch the light or the camera's infrared lamp on, and see whether something is over the lens."},
    {"dazzled", "dazzled", "Nearly all of its picture is white: a lamp or the sun shines into the lens. Turn it, shade it, or lower its exposure."},
    {"frozen", "frozen", "The same picture comes again and again: restart the camera, or the recorder between."},
    {"covered", "covered", "Something is in front of the lens: look at it and clean it."},
    {"blurred", "blurred", "Its picture has become blurred: clean the lens, or focus it."},
    {"moved", "moved", "It does not look at its place any more: turn it back. If it is right as it is now, pause and resume the pipeline, which learns the place again."},
    {"wrong clock", "clock", "Set the camera's clock by NTP: frames are taken as of when they come, and the picture's own stamp is wrong."},
};

// clang-format on

const char *weir_camera_cure(const char *cause, const char *error)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(errors) && cause != NULL; i++) {
        bool has_words =
            errors[i].words == NULL || (error != NULL && strstr(error, errors[i].words) != NULL);
        if (strcmp(errors[i].cause, cause) == 0 && has_words) {
            return errors[i].cure;
        }
    }
    return NULL;
}

const char *weir_camera_health(const char *reported)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(healths); i++) {
        if (strcmp(healths[i].reported, reported) == 0) {
            return healths[i].name;
        }
    }
    return NULL;
}

const char *weir_camera_health_cure(const char *health)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(healths); i++) {
        if (strcmp(healths[i].name, health) == 0) {
            return healths[i].cure;
        }
    }
    return NULL;
}
