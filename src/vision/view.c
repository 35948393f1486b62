#include "vision/view.h"

struct weir_view weir_view_of(const struct weir_image *image)
{
    return (struct weir_view){
        .form = image->channels == 1 ? WEIR_VIEW_GREY : WEIR_VIEW_RGB,
        .width = image->width,
        .height = image->height,
        .planes = {image->pixels},
        .strides = {image->width * image->channels},
        .is_full_range = true,
    };
}
