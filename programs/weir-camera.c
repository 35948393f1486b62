/** weir-camera: the pictures of one camera. */
#include "camera/camera.h"

int main(int argc, char **argv)
{
    return weir_camera_main(argc, argv);
}
