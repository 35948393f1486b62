#include "gateway/choose.h"

#include "base/hash.h"

#include <math.h>

/* Steele, Lea and Flood's SplitMix64: every bit of the result depends on every bit of the input. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Above 0 and below 1. */
static double uniform(uint64_t bits)
{
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

static bool is_allowed(const struct weir_gateway_deployment *deployment, uint32_t allowed, size_t i)
{
    return (allowed >> i & 1) != 0 && deployment->versions[i].weight_ppm > 0;
}

static int choose_by_key(const struct weir_gateway_deployment *deployment, uint32_t allowed,
                         const char *key)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, key);
    int best = CHOOSE_NONE;
    double best_score = 0;
    for (size_t i = 0; i < deployment->n_versions; i++) {
        if (is_allowed(deployment, allowed, i)) {
            const struct weir_gateway_version *v = &deployment->versions[i];
            double score = v->weight_ppm / -log(uniform(mix(hash ^ mix((uint64_t)v->version))));
            if (best == CHOOSE_NONE || score > best_score) {
                best = (int)i;
                best_score = score;
            }
        }
    }
    return best;
}

static int choose_by_weight(const struct weir_gateway_deployment *deployment, uint32_t allowed,
                            uint64_t ticket)
{
    double total = 0;
    for (size_t i = 0; i < deployment->n_versions; i++) {
        total += is_allowed(deployment, allowed, i) ? deployment->versions[i].weight_ppm : 0;
    }
    double left = uniform(mix(ticket)) * total;
    int last = CHOOSE_NONE;
    for (size_t i = 0; i < deployment->n_versions; i++) {
        if (is_allowed(deployment, allowed, i)) {
            last = (int)i;
            left -= deployment->versions[i].weight_ppm;
            if (left < 0) {
                break;
            }
        }
    }
    return last;
}

int choose_version(const struct weir_gateway_deployment *deployment, uint32_t allowed,
                   const char *key, uint64_t ticket)
{
    return key != NULL ? choose_by_key(deployment, allowed, key)
                       : choose_by_weight(deployment, allowed, ticket);
}

int choose_replica(const int32_t *n_outstanding, size_t n, uint64_t ticket)
{
    int best = CHOOSE_NONE;
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)((ticket + i) % n);
        if (n_outstanding[at] >= 0 &&
            (best == CHOOSE_NONE || n_outstanding[at] < n_outstanding[best])) {
            best = (int)at;
        }
    }
    return best;
}
