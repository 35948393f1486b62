#include "cluster/kubernetes/manifest_check.h"

#include <string.h>

#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define UPPER       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS      "0123456789"
#define LABEL_MAX   63
#define DOMAIN_MAX  253
#define CLUSTER_MAX 40 /* As of any cluster's name. */
#define IMAGE_MAX   512

/* ---- what a text is ---------------------------------------------------------------------------- */

static bool is_of(const char *text, size_t len, const char *bytes)
{
    return strspn(text, bytes) >= len;
}

/* A label of DNS (RFC 1123), in lower case. */
static bool is_label(const char *text, size_t len)
{
    return len > 0 && len <= LABEL_MAX && is_of(text, len, LOWER DIGITS "-") && text[0] != '-' &&
           text[len - 1] != '-';
}

static bool is_label_text(const char *text)
{
    return is_label(text, strlen(text));
}

static bool is_cluster(const char *text)
{
    return is_label_text(text) && strlen(text) <= CLUSTER_MAX;
}

/* Labels with dots between them. */
static bool is_domain(const char *text)
{
    bool is_good = strlen(text) <= DOMAIN_MAX;
    for (const char *at = text; is_good && at != NULL;) {
        size_t len = strcspn(at, ".");
        is_good = is_label(at, len);
        at = at[len] == '.' ? at + len + 1 : NULL;
    }
    return is_good;
}

/* [REGISTRY/]NAME[:TAG][@DIGEST]: what stands in it, not whether it is there. */
static bool is_image(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= IMAGE_MAX && is_of(text, len, LOWER UPPER DIGITS "._/:@-") &&
           is_of(text, 1, LOWER UPPER DIGITS);
}

/* A number, with a fraction perhaps, and a unit. */
static bool is_quantity(const char *text)
{
    static const char *const units[] = {"",  "m",  "k",  "M",  "G",  "T",  "P",
                                        "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t n = strspn(text, DIGITS);
    size_t n_fraction = text[n] == '.' ? 1 + strspn(text + n + 1, DIGITS) : 0;
    if (n == 0 || n_fraction == 1) {
        return false;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(units); i++) {
        if (strcmp(text + n + n_fraction, units[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* "cpu" or "nvidia.com/gpu", each with its amount, and commas between. */
static bool is_quota(const char *text)
{
    char amount[32];
    for (size_t len; text != NULL; text = text[len] == ',' ? text + len + 1 : NULL) {
        len = strcspn(text, ",");
        size_t n = strspn(text, LOWER UPPER DIGITS "./-");
        if (n == 0 || n >= len || text[n] != '=' || len - n - 1 >= sizeof amount) {
            return false;
        }
        memcpy(amount, text + n + 1, len - n - 1);
        amount[len - n - 1] = '\0';
        if (!is_quantity(amount)) {
            return false;
        }
    }
    return true;
}

static bool is_scheduler(const char *text)
{
    return strcmp(text, "cluster") == 0 || strcmp(text, "kueue") == 0 || strcmp(text, "weir") == 0;
}

/* ---- the values -------------------------------------------------------------------------------- */

weir_status kubernetes_manifest_check(const struct weir_kubernetes_manifest *wanted,
                                      struct weir_error *err)
{
    const struct {
        const char *what, *text;
        bool (*is_right)(const char *text);
        const char *expected;
    } values[] = {
        {"NAME", wanted->name, is_cluster, "at most 40 of a-z 0-9 -, and no - at an end"},
        {"--namespace", wanted->namespace, is_label_text,
         "at most 63 of a-z 0-9 -, and no - at an end"},
        {"--team", wanted->team, is_label_text, "at most 63 of a-z 0-9 -, and no - at an end"},
        {"--image", wanted->image, is_image, "an image, as registry.example/weir:1.0"},
        {"--host", wanted->host, is_domain, "a host in lower case, as weir.example.org"},
        {"--ingress-class", wanted->ingress_class, is_domain, "the name of a class of ingresses"},
        {"--ingress-namespace", wanted->ingress_namespace, is_label_text, "a namespace"},
        {"--storage", wanted->storage, is_quantity, "an amount, as 20Gi"},
        {"--storage-class", wanted->storage_class, is_domain, "the name of a class of storage"},
        {"--quota", wanted->quota, is_quota, "amounts, as cpu=64,memory=256Gi,nvidia.com/gpu=8"},
        {"--scheduler", wanted->scheduler, is_scheduler, "cluster, kueue or weir"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        if (values[i].text != NULL && !values[i].is_right(values[i].text)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s \"%.60s\": expected %s",
                                  values[i].what, values[i].text, values[i].expected);
        }
    }
    bool is_own = wanted->team != NULL && strcmp(wanted->team, wanted->namespace) == 0;
    return is_own ? weir_error_set(err, WEIR_ERR_INVALID,
                                   "--team \"%.63s\": that is the server's own namespace",
                                   wanted->team)
                  : WEIR_OK;
}
