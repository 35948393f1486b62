/**
 * For the tests of predict: a tiny net in a file, pictures of people, and a server that plays the
 * part of Weir's (deployment, blobs, decisions, health reports).
 */
#ifndef WEIR_PREDICT_TEST_SUPPORT_H
#define WEIR_PREDICT_TEST_SUPPORT_H

#include "base/file.h"
#include "base/json.h"
#include "base/test_main.h"
#include "predict/replica.h"
#include "predict/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_server;

/** A folder of its own under /tmp; removed by test_dir_drop. */
struct test_dir {
    char path[64];
};

void test_dir_make(struct test_dir *dir);
void test_dir_drop(struct test_dir *dir);

/** "<dir>/<rest>", in a static ring of 16 buffers. */
const char *test_path(const struct test_dir *dir, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Wait until `is_done(context)`, at most 20 s (120 under sanitizers); false if it never was. */
bool test_wait(bool (*is_done)(void *context), void *context);

#define TEST_SIDE 16

/** A picture of person `i_person`, the `i_photo`-th: the same person looks alike. PGM bytes. */
size_t test_picture(int i_person, int i_photo, char out[1024]);

/** Write beside and rename, as a camera should. */
void test_write_file(const char *path, const void *bytes, size_t len);

/** Write a net that gives 32-d embeddings, with random weights from `seed`. `baseline`: may be
 *  NULL. */
void test_write_model(const char *path, uint64_t seed, const char *baseline);

/** Write a classifier of the labels "a" and "b" with random weights from `seed`. */
void test_write_classifier(const char *path, uint64_t seed, const char *baseline);

/* ---- a replica in this process ----------------------------------------------------------------
 */

/** Start one by the specification test_write_spec would write. */
struct replica *test_replica_start(const struct test_dir *dir, int server_port, const char *source,
                                   const char *sink);
void test_replica_stop(struct replica *replica);

/** {"kind":"directory",…} over <dir>/frames. In a static buffer. */
const char *test_directory_source(const struct test_dir *dir);

/** Put a frame where a directory source finds it. */
void test_put_frame(const struct test_dir *dir, const char *camera, int64_t frame,
                    const void *bytes, size_t len);

size_t test_count_files(const char *path);

/** A text of a decision; "" if there is none. */
const char *test_text(const json_t *decision, const char *key);
int64_t test_int(const json_t *decision, const char *key);

/**
 * POST a frame to a replica's http source, on a connection of its own unless `client` is given.
 * Returns the HTTP status; *out (may be NULL): the answer as JSON, new reference.
 */
struct weir_http_client;
int test_post_frame(struct weir_http_client *client, const char *url, const char *camera,
                    int64_t frame, const void *bytes, size_t len, const char *token, json_t **out);

/** The same, with what stands behind /frames/. */
int test_post_named(struct weir_http_client *client, const char *url, const char *name,
                    const void *bytes, size_t len, const char *token, json_t **out);

/** The "url" of <dir>/replica/endpoint.json. */
const char *test_endpoint(const struct test_dir *dir);

/** Wait until the server has n decisions; fails the test if they do not come. */
void test_wait_for_decisions(struct test_server *server, size_t n);

struct outbox;

/** Put a decision of which no more is known than this. */
void test_outbox_put(struct outbox *outbox, const char *id, const char *camera, int64_t frame,
                     void *ticket);

/* ---- the server ------------------------------------------------------------------------------ */

struct test_server *test_server_start(const struct test_dir *dir, int port);
void test_server_stop(struct test_server *server);
int test_server_port(const struct test_server *server);

/** Put a file's bytes into the blob store; out: its digest. */
void test_server_blob(struct test_server *server, const char *path, char out[65]);

/** Deploy; takes the reference. "revision" is set to the next one. */
void test_server_deploy(struct test_server *server, json_t *deployment);

/** Refuse everything with 503 while true. */
void test_server_set_down(struct test_server *server, bool is_down);

/** Answer LIMIT to more decisions at once, and to any call with this frame; 0: to none. */
void test_server_limit(struct test_server *server, size_t most_at_once, int64_t refused_frame);

/** Decisions stored so far, by (camera, frame), and how many came a second time. */
size_t test_server_n_decisions(struct test_server *server, size_t *out_n_again);

/** New reference to the decision, or NULL. */
json_t *test_server_decision(struct test_server *server, const char *camera, int64_t frame);
json_t *test_server_health_reports(struct test_server *server);

/** New reference: every report of a threshold, in order. */
json_t *test_server_thresholds(struct test_server *server);

/** New reference: what the replica said of itself last; {} if nothing. */
json_t *test_server_heartbeat(struct test_server *server);
/** Ask the replica's desk for this; takes the reference. "looks" are handed out once. */
void test_server_ask_desk(struct test_server *server, json_t *asked);

/** New reference: all that the replica's desk sent in the list "live" or "looks", in order. */
json_t *test_server_desk_said(struct test_server *server, const char *list);
bool test_server_has_blob(struct test_server *server, const char *digest);

/**
 * Write n_people × n_photos pictures to <dir>/people, make the manifest a blob, and give the
 * deployment of a model (a file) as JSON. `with_path`: the replica may read the folder; else it
 * must fetch the photos.
 */
json_t *test_deployment(struct test_server *server, const struct test_dir *dir, const char *model,
                        int64_t model_version, int n_people, int n_photos, int64_t gallery_version,
                        bool with_path);

/** The deployment of a classifier; stages: JSON text, or NULL for the chain that stands for none. */
json_t *test_classifier_deployment(struct test_server *server, const char *model,
                                   int64_t model_version, const char *stages);

/**
 * Write pictures of n_people people from number `first` on to <dir>/impostors, and give them as a
 * deployment's $.gallery.impostors.
 */
json_t *test_impostors(struct test_server *server, const struct test_dir *dir, int first,
                       int n_people, int n_photos, int64_t version);

/** Write <dir>/spec.json for a replica. source: JSON text. */
const char *test_write_spec(const struct test_dir *dir, int server_port, const char *source,
                            const char *sink);

#endif
