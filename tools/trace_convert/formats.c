#include "trace_convert/formats.h"

#include "base/macros.h"
#include "base/names.h"

#include <string.h>

const struct weir_sim_format *const convert_formats[] = {
    &convert_alibaba, &convert_philly_json, &convert_philly_csv,
    &convert_pollux,  &convert_helios,      &convert_acme,
};

const size_t convert_n_formats = WEIR_ARRAY_LEN(convert_formats);

weir_status convert_format_named(const char *name, const struct weir_sim_format **out,
                                 struct weir_error *err)
{
    struct weir_names names = {0};
    for (size_t i = 0; i < convert_n_formats; i++) {
        if (strcmp(convert_formats[i]->name, name) == 0) {
            *out = convert_formats[i];
            return WEIR_OK;
        }
        weir_names_add(&names, convert_formats[i]->name, strlen(convert_formats[i]->name));
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "no trace has the format \"%.40s\": there are %s", name, names.text);
}
