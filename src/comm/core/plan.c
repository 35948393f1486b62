#include "comm/core/plan.h"

#include "base/file.h"
#include "base/json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1 << 20 };

static const char *const wire_names[COMM_N_WIRES] = {"f32", "bf16", "fp16"};

/** "f32", "bf16" or "fp16". */
static const char *wire_name(enum comm_wire wire)
{
    return wire_names[wire];
}

weir_status comm_wire_parse(const char *text, enum comm_wire *out, struct weir_error *err)
{
    if (text == NULL) {
        *out = COMM_WIRE_F32;
        return WEIR_OK;
    }
    for (int i = 0; i < COMM_N_WIRES; i++) {
        if (strcmp(text, wire_names[i]) == 0) {
            *out = (enum comm_wire)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "wire \"%.40s\": expected f32, bf16 or fp16",
                          text);
}

void comm_plan_default(const struct comm_plan_key *key, struct comm_plan *out)
{
    int n_members = key->n_hosts > 1 ? key->n_hosts : key->n_ranks;
    if (n_members <= COMM_PLAN_FEW) {
        *out = (struct comm_plan){.n_rules = 2,
                                  .rules = {{.up_to_bytes = 8192, .algorithm = COMM_FLAT},
                                            {.up_to_bytes = UINT64_MAX, .algorithm = COMM_DIRECT}}};
        return;
    }
    /* A ring rounds each sum to 16 bits once per member. */
    uint32_t large = key->wire == COMM_WIRE_F32 ? COMM_RING : COMM_HALVING;
    *out = (struct comm_plan){.n_rules = 3,
                              .rules = {{.up_to_bytes = 512, .algorithm = COMM_FLAT},
                                        {.up_to_bytes = 262144, .algorithm = COMM_TREE},
                                        {.up_to_bytes = UINT64_MAX, .algorithm = large}}};
}

const struct comm_rule *comm_plan_choose(const struct comm_plan *plan, uint64_t bytes)
{
    uint32_t i = 0;
    while (i + 1 < plan->n_rules && bytes > plan->rules[i].up_to_bytes) {
        i++;
    }
    return &plan->rules[i];
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool read_size(const char **at, uint64_t most, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end = NULL;
    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    unsigned long long number = strtoull(*at, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    unsigned shift = unit != NULL ? 10 * ((unsigned)(unit - units) + 1) : 0;
    *at = end + (unit != NULL);
    *out = (uint64_t)number << shift;
    return number > 0 && number <= most >> shift;
}

static bool read_algorithm(const char **at, struct comm_rule *out)
{
    for (int i = 0; i < COMM_N_ALGORITHMS; i++) {
        const char *name = comm_algorithm_name((enum comm_algorithm)i);
        size_t len = strlen(name);
        if (strncmp(*at, name, len) == 0 && !isalnum((unsigned char)(*at)[len])) {
            uint64_t chunk_bytes = 0;
            *at += len;
            if (**at == '#') {
                ++*at;
                if (!read_size(at, 1 << 30, &chunk_bytes)) {
                    return false;
                }
            }
            out->algorithm = (uint32_t)i;
            out->chunk_bytes = (uint32_t)chunk_bytes;
            return true;
        }
    }
    return false;
}

static bool read_plan(const char *text, struct comm_plan *out)
{
    const char *at = text;
    uint64_t before = 0;
    *out = (struct comm_plan){.n_rules = 0};
    while (out->n_rules < WEIR_COMM_MAX_RULES) {
        struct comm_rule *rule = &out->rules[out->n_rules++];
        if (!read_algorithm(&at, rule)) {
            return false;
        }
        rule->up_to_bytes = UINT64_MAX;
        if (*at == '\0') {
            return true;
        }
        if (*at++ != ':' || !read_size(&at, UINT64_C(1) << 40, &rule->up_to_bytes) ||
            rule->up_to_bytes <= before || *at++ != ':') {
            return false;
        }
        before = rule->up_to_bytes;
    }
    return false;
}

weir_status comm_plan_parse(const char *text, struct comm_plan *out, struct weir_error *err)
{
    struct comm_plan plan;
    if (!read_plan(text, &plan)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "algorithm \"%.80s\": expected auto, flat, direct, ring, halving or tree, or these by "
            "growing size as flat:8K:direct#256K:4M:ring, with at most %d of them",
            text, WEIR_COMM_MAX_RULES);
    }
    *out = plan;
    return WEIR_OK;
}

static size_t print_size(char *out, size_t room, uint64_t bytes)
{
    static const char *const units[] = {"", "K", "M", "G"};
    int i = 0;
    while (i < 3 && bytes % 1024 == 0) {
        bytes /= 1024;
        i++;
    }
    return (size_t)snprintf(out, room, "%llu%s", (unsigned long long)bytes, units[i]);
}

void comm_plan_print(const struct comm_plan *plan, char out[WEIR_COMM_ALGORITHM_BYTES])
{
    /* At most 16 rules of 8 + 1 + 11 + 1 + 14 + 1 characters: it always fits. */
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < plan->n_rules; i++) {
        const struct comm_rule *rule = &plan->rules[i];
        len += (size_t)snprintf(out + len, WEIR_COMM_ALGORITHM_BYTES - len, "%s",
                                comm_algorithm_name((enum comm_algorithm)rule->algorithm));
        if (rule->chunk_bytes > 0) {
            out[len++] = '#';
            len += print_size(out + len, WEIR_COMM_ALGORITHM_BYTES - len, rule->chunk_bytes);
        }
        if (i + 1 < plan->n_rules) {
            out[len++] = ':';
            len += print_size(out + len, WEIR_COMM_ALGORITHM_BYTES - len, rule->up_to_bytes);
            out[len++] = ':';
            out[len] = '\0';
        }
    }
}

/* ---- tuning files --------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static bool is_for(const json_t *entry, const struct comm_plan_key *key)
{
    return strcmp(text_of(entry, "transport"), key->transport) == 0 &&
           strcmp(text_of(entry, "wire"), wire_name(key->wire)) == 0;
}

/* How far an entry is from the key; 0: it is the key's. */
static double distance(const json_t *entry, const struct comm_plan_key *key)
{
    double n_ranks = (double)json_integer_value(json_object_get(entry, "ranks"));
    bool is_same = json_integer_value(json_object_get(entry, "hosts")) == key->n_hosts;
    return fabs(log2(WEIR_MAX(n_ranks, 1) / key->n_ranks)) + (is_same ? 0 : 100);
}

static weir_status open_file(const char *path, json_t **out, struct weir_error *err)
{
    json_t *whole = NULL;
    WEIR_TRY(weir_json_load(path, FILE_MAX_BYTES, &whole, err));
    if (strcmp(text_of(whole, "kind"), "allreduce-tuning") != 0 ||
        !json_is_array(json_object_get(whole, "entries"))) {
        json_decref(whole);
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected what weir-worker bench-allreduce --tune writes", path);
    }
    *out = whole;
    return WEIR_OK;
}

weir_status comm_plan_load(const char *path, const struct comm_plan_key *key, struct comm_plan *out,
                           struct weir_error *err)
{
    json_t *whole = NULL;
    WEIR_TRY(open_file(path, &whole, err));
    const json_t *nearest = NULL, *entry;
    size_t i;
    json_array_foreach(json_object_get(whole, "entries"), i, entry)
    {
        if (is_for(entry, key) &&
            (nearest == NULL || distance(entry, key) < distance(nearest, key))) {
            nearest = entry;
        }
    }
    weir_status status = WEIR_OK;
    if (nearest == NULL) {
        comm_plan_default(key, out);
    } else {
        status = comm_plan_parse(text_of(nearest, "algorithm"), out, err);
        if (status != WEIR_OK) {
            (void)weir_error_prefix(err, "%s: ", path);
        }
    }
    json_decref(whole);
    return status;
}

weir_status comm_plan_save(const char *path, const struct comm_plan_key *key,
                           const struct comm_plan *plan, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *whole = NULL;
    if (weir_path_exists(path)) {
        WEIR_TRY(open_file(path, &whole, err));
    } else {
        whole = json_pack("{s:s,s:[]}", "kind", "allreduce-tuning", "entries");
    }
    json_t *entries = json_object_get(whole, "entries");
    for (size_t i = json_array_size(entries); i > 0; i--) {
        const json_t *entry = json_array_get(entries, i - 1);
        if (is_for(entry, key) && distance(entry, key) == 0) {
            (void)json_array_remove(entries, i - 1);
        }
    }
    char text[WEIR_COMM_ALGORITHM_BYTES];
    comm_plan_print(plan, text);
    (void)json_array_append_new(entries,
                                json_pack("{s:s,s:i,s:i,s:s,s:s}", "transport", key->transport,
                                          "ranks", key->n_ranks, "hosts", key->n_hosts, "wire",
                                          wire_name(key->wire), "algorithm", text));
    WEIR_AUTO(weir_auto_free) char *bytes = json_dumps(whole, JSON_INDENT(1));
    return bytes == NULL ? weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %s", path)
                         : weir_file_write_atomic(path, bytes, strlen(bytes), 0644, err);
}
