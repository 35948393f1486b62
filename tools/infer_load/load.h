/**
 * An HTTP load in an open loop: requests are due at a fixed rate whether or not earlier ones were answered, and a latency
 * counts from when its request was due. A server that stalls for a second so shows it in every
 * request that was due meanwhile, not in one.
 *
 * One thread, epoll, connections that are kept. A request that is due while every connection is
 * busy waits for one. Answers must say their Content-Length.
 */
#ifndef INFER_LOAD_LOAD_H
#define INFER_LOAD_LOAD_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LOAD_REQUESTS_MAX    ((size_t)5000000) /* 40 bytes each are kept */
#define LOAD_CONNECTIONS_MAX 4096

struct load_options {
    const char *url;     /**< "http://host:port/path". */
    const char *headers; /**< Whole lines with their "\r\n"; "" for none. */
    const void *body;    /**< Sent by POST; NULL: GET. Borrowed. */
    size_t body_len;
    double rate_s; /**< Requests a second; 0: each connection asks again when it is answered. */
    size_t n_requests;
    int n_connections;
    int64_t patience_ms; /**< How long to wait for answers after the last request was due. */
};

/** One request. Times are of CLOCK_MONOTONIC, as Python's time.monotonic_ns(). */
struct load_record {
    uint64_t due_ns, sent_ns; /**< sent_ns 0: it was never begun. */
    uint64_t done_ns;         /**< 0: not answered. */
    int64_t version;          /**< Of the header Weir-Model-Version; 0: none. */
    int http_status;          /**< 0: none came, the connection ended or patience did. */
};

struct load_result {
    struct load_record *records; /**< In order of due_ns; the caller frees them. */
    size_t n;
    double seconds; /**< From when the first was due to the last answer. */
};

/** @return INVALID for options that cannot be; PEER if the address cannot be resolved or nothing
 *          there takes the first connection. Failures later are in the records. */
weir_status load_run(const struct load_options *options, struct load_result *out,
                     struct weir_error *err);

/** What the records tell. Quantiles are exact, of answers of any status 200 to 299. */
struct load_summary {
    size_t n, n_failed; /**< Failed: any other status, or none. */
    double p50_ms, p90_ms, p99_ms, p999_ms, max_ms;
    double late_p99_ms; /**< How long requests waited for the generator or a free connection. */
    double answered_s;  /**< Good answers a second. */
};

void load_summarise(const struct load_result *result, struct load_summary *out);

void load_print_text(const struct load_result *result, FILE *to);
void load_print_json(const struct load_result *result, FILE *to);
/** A line for each request: due_ns sent_ns done_ns status version. */
void load_print_trace(const struct load_result *result, FILE *to);

#endif
