#include "predict/mqtt_link.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEEPALIVE_S   10
#define CONNECT_MS    3000
#define LOOP_MS       200
#define AGAIN_MS      100
#define AGAIN_MAX_MS  1000
#define REFUSED_FROM  0x80 /* reason codes of MQTT 5 */
#define SYSTEM_TRUSTS "/etc/ssl/certs"

struct mqtt_link {
    struct mqtt_link_config config;
    struct weir_broker_place place;
    pthread_t thread;
    /** The link's thread's own: what the broker said to the last try; NULL: nothing. */
    const char *refusal;
    /** The link's thread's own: the first error of this connection that the library has logged. */
    char logged[160];
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mosquitto *client; /**< Connected; NULL: it is not. */
    bool is_stopping, is_cancelled;
    bool is_acked;
    int acked_mid, acked_reason;
    char why[WEIR_ERROR_MESSAGE_BYTES]; /**< There is no connection. */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_library(void)
{
    (void)mosquitto_lib_init();
}

static void say_why(struct mqtt_link *link, const char *why)
{
    pthread_mutex_lock(&link->lock);
    (void)snprintf(link->why, sizeof link->why, "broker %s: %.240s", link->place.host, why);
    pthread_mutex_unlock(&link->lock);
}

static bool is_stopping(struct mqtt_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool is_over = link->is_stopping;
    pthread_mutex_unlock(&link->lock);
    return is_over;
}

/* ---- what the library says; on the link's thread ---------------------------------------------- */

static void send_to(struct mosquitto *client, const struct mqtt_message *message, int *out_mid,
                    int *out_rc)
{
    mosquitto_property *properties = NULL;
    if (message->expiry_ms > 0) {
        (void)mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                           (uint32_t)((message->expiry_ms + 999) / 1000));
    }
    *out_rc = mosquitto_publish_v5(client, out_mid, message->topic, (int)strlen(message->text),
                                   message->text, 1, message->is_retained, properties);
    mosquitto_property_free_all(&properties);
}

static void greet(struct mqtt_link *link, struct mosquitto *client)
{
    int mid, rc;
    const struct mqtt_link_config *config = &link->config;
    for (size_t i = 0; i < MQTT_LINK_TOPICS_MAX && config->topics[i] != NULL; i++) {
        (void)mosquitto_subscribe_v5(client, NULL, config->topics[i], 1, 0, NULL);
    }
    if (config->availability != NULL) {
        send_to(client,
                &(struct mqtt_message){
                    .topic = config->availability, .text = "online", .is_retained = true},
                &mid, &rc);
    }
}

static void on_connect(struct mosquitto *client, void *context, int reason, int flags,
                       const mosquitto_property *properties)
{
    struct mqtt_link *link = context;
    (void)flags, (void)properties;
    if (reason != 0) {
        link->refusal = mosquitto_reason_string(reason);
        return;
    }
    greet(link, client);
    pthread_mutex_lock(&link->lock);
    link->client = client;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    if (link->config.connected != NULL) {
        link->config.connected(link->config.context, link);
    }
}

static void on_publish(struct mosquitto *client, void *context, int mid, int reason,
                       const mosquitto_property *properties)
{
    struct mqtt_link *link = context;
    (void)client, (void)properties;
    pthread_mutex_lock(&link->lock);
    link->is_acked = link->is_acked || mid == link->acked_mid;
    link->acked_reason = mid == link->acked_mid ? reason : link->acked_reason;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

static void on_message(struct mosquitto *client, void *context,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    struct mqtt_link *link = context;
    (void)client, (void)properties;
    if (link->config.heard != NULL && message->payload != NULL) {
        link->config.heard(link->config.context, message->topic, message->payload,
                           (size_t)message->payloadlen);
    }
}

/* ---- one connection --------------------------------------------------------------------------- */

/* Its codes do not say what is wrong with a certificate; what it logs does. */
static void on_log(struct mosquitto *client, void *context, int level, const char *text)
{
    struct mqtt_link *link = context;
    (void)client;
    if (level == MOSQ_LOG_ERR && link->logged[0] == '\0') { /* the others follow from it */
        (void)snprintf(link->logged, sizeof link->logged, "%s", text);
    }
}

static const char *tls_words(const char *logged)
{
    static const struct {
        const char *logged, *words;
    } rows[] = {
        {"host name", "its certificate is for another name: write the name that it is for"},
        {"verify failed", "its certificate is out of date, or by an authority that is not trusted: "
                          "name the file of its own as ca_file"},
        {"wrong version number", "it does not speak TLS at this port: mqtts has 8883 mostly"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        if (strstr(logged, rows[i].logged) != NULL) {
            return rows[i].words;
        }
    }
    return logged[0] != '\0' ? logged : mosquitto_strerror(MOSQ_ERR_TLS);
}

static weir_status refuse(const struct mqtt_link *link, int rc, const char *what,
                          struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s: %s", what,
                          rc == MOSQ_ERR_ERRNO ? strerror(errno)
                          : rc == MOSQ_ERR_TLS ? tls_words(link->logged)
                                               : mosquitto_strerror(rc));
}

static weir_status configure(struct mqtt_link *link, struct mosquitto *client,
                             struct weir_error *err)
{
    const struct weir_broker *broker = link->config.broker;
    int rc = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    if (rc == 0 && broker->user != NULL) {
        rc = mosquitto_username_pw_set(client, broker->user, broker->password);
    }
    if (rc == 0 && link->config.availability != NULL) {
        rc = mosquitto_will_set_v5(client, link->config.availability, 7, "offline", 1, true, NULL);
    }
    if (rc == 0 && link->place.is_tls) {
        rc = mosquitto_tls_set(client, broker->ca_file,
                               broker->ca_file == NULL ? SYSTEM_TRUSTS : NULL, NULL, NULL, NULL);
    }
    if (rc != 0) {
        return refuse(link, rc, link->place.is_tls ? "user, or authorities to trust" : "user", err);
    }
    (void)mosquitto_threaded_set(client, true);
    mosquitto_log_callback_set(client, on_log);
    mosquitto_connect_v5_callback_set(client, on_connect);
    mosquitto_publish_v5_callback_set(client, on_publish);
    mosquitto_message_v5_callback_set(client, on_message);
    return WEIR_OK;
}

/* Try an address for a while. The library's own connect would wait for minutes, and nothing could end it. */
static bool answers(struct mqtt_link *link, const struct addrinfo *address, int64_t until_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), failed = 0;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof failed;
    bool is_begun = fd >= 0 && (connect(fd, address->ai_addr, address->ai_addrlen) == 0 ||
                                errno == EINPROGRESS);
    int n = 0;
    while (is_begun && n == 0 && weir_mono_ms() < until_ms && !is_stopping(link)) {
        n = poll(&ready, 1, LOOP_MS);
    }
    bool is_there =
        n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0;
    errno = failed != 0 ? failed : n == 0 && is_begun ? ETIMEDOUT : errno;
    int why = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = why;
    return is_there;
}

static weir_status reach(struct mqtt_link *link, struct weir_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[16];
    bool is_there = false;
    (void)snprintf(port, sizeof port, "%lld", (long long)link->place.port);
    int rc = getaddrinfo(link->place.host, port, &hints, &found);
    if (rc != 0) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "its address: %s", gai_strerror(rc));
    }
    int64_t until_ms = weir_mono_ms() + CONNECT_MS;
    for (const struct addrinfo *a = found; a != NULL && !is_there; a = a->ai_next) {
        is_there = answers(link, a, until_ms);
    }
    int why = errno;
    freeaddrinfo(found);
    return is_there ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_UNAVAILABLE, "port %s: %s", port, strerror(why));
}

/* Until it breaks, or is to stop. */
static weir_status use(struct mqtt_link *link, struct mosquitto *client, struct weir_error *err)
{
    link->refusal = NULL;
    link->logged[0] = '\0';
    int rc = mosquitto_connect_bind_v5(client, link->place.host, (int)link->place.port, KEEPALIVE_S,
                                       NULL, NULL);
    if (rc != 0) {
        return refuse(link, rc, "connecting", err);
    }
    while (rc == 0 && !is_stopping(link)) {
        rc = mosquitto_loop(client, LOOP_MS, 1);
    }
    pthread_mutex_lock(&link->lock);
    bool was_connected = link->client != NULL;
    link->client = NULL;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    if (rc != 0 && !was_connected && link->refusal != NULL) {
        return weir_error_set(err, WEIR_ERR_DENIED, "%s", link->refusal);
    }
    return rc != 0 ? refuse(link, rc, "the connection", err) : WEIR_OK;
}

/* A message of its own, and the end that is meant: the broker keeps its last will to itself. */
static void part(struct mqtt_link *link, struct mosquitto *client)
{
    int mid, rc;
    if (link->config.availability != NULL) {
        send_to(client,
                &(struct mqtt_message){
                    .topic = link->config.availability, .text = "offline", .is_retained = true},
                &mid, &rc);
    }
    int64_t until_ms = weir_mono_ms() + LOOP_MS;
    while (mosquitto_want_write(client) && weir_mono_ms() < until_ms) {
        if (mosquitto_loop(client, 10, 1) != 0) {
            return;
        }
    }
    (void)mosquitto_disconnect(client);
}

static weir_status configure_and_use(struct mqtt_link *link, struct mosquitto *client,
                                     struct weir_error *err)
{
    WEIR_TRY(configure(link, client, err));
    WEIR_TRY(use(link, client, err));
    part(link, client);
    return WEIR_OK;
}

static weir_status connect_once(struct mqtt_link *link, struct weir_error *err)
{
    WEIR_TRY(reach(link, err));
    struct mosquitto *client = mosquitto_new(NULL, true, link);
    if (client == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a connection");
    }
    weir_status status = configure_and_use(link, client, err);
    mosquitto_destroy(client);
    return status;
}

static void wait_again(struct mqtt_link *link, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&link->lock);
    while (!link->is_stopping &&
           weir_cond_wait_until(&link->changed, &link->lock, &deadline) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&link->lock);
}

static void *link_main(void *context)
{
    struct mqtt_link *link = context;
    int64_t wait_ms = AGAIN_MS;
    while (!is_stopping(link)) {
        struct weir_error why = {0};
        int64_t begun_ms = weir_mono_ms();
        if (connect_once(link, &why) != WEIR_OK) {
            say_why(link, why.message);
        }
        bool was_long = weir_mono_ms() - begun_ms > AGAIN_MAX_MS;
        wait_ms = was_long ? AGAIN_MS : WEIR_MIN(wait_ms * 2, (int64_t)AGAIN_MAX_MS);
        wait_again(link, wait_ms);
    }
    return NULL;
}

/* ---- for its users ----------------------------------------------------------------------------- */

static weir_status unconnected(struct mqtt_link *link, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s", link->why);
}

static weir_status wait_for_ack(struct mqtt_link *link, const struct mosquitto *client,
                                int64_t timeout_ms, struct weir_error *err)
{
    struct timespec deadline = weir_deadline_after(timeout_ms);
    int rc = 0;
    while (!link->is_acked && link->client == client && !link->is_cancelled && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&link->changed, &link->lock, &deadline);
    }
    if (link->is_acked && link->acked_reason >= REFUSED_FROM) {
        return weir_error_set(err, WEIR_ERR_DENIED, "broker %s: %s", link->place.host,
                              mosquitto_reason_string(link->acked_reason));
    }
    if (link->is_acked) {
        return WEIR_OK;
    }
    if (link->is_cancelled) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "the replica stops");
    }
    return link->client != client
               ? weir_error_set(err, WEIR_ERR_UNAVAILABLE, "broker %s: the connection broke",
                                link->place.host)
               : weir_error_set(err, WEIR_ERR_TIMEOUT,
                                "broker %s: it did not answer within %lld ms", link->place.host,
                                (long long)timeout_ms);
}

/* Under the lock no acknowledgement passes by before its number is known. */
static weir_status publish_locked(struct mqtt_link *link, const struct mqtt_message *message,
                                  int64_t timeout_ms, struct weir_error *err)
{
    int rc;
    if (link->client == NULL) {
        return unconnected(link, err);
    }
    link->is_acked = false;
    link->acked_reason = 0;
    send_to(link->client, message, &link->acked_mid, &rc);
    if (rc != 0) {
        return refuse(link, rc, message->topic, err);
    }
    WEIR_TRY(wait_for_ack(link, link->client, timeout_ms, err));
    return message->needs_listener && link->acked_reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS
               ? weir_error_set(err, WEIR_ERR_UNAVAILABLE, "nobody listens to %s", message->topic)
               : WEIR_OK;
}

weir_status mqtt_link_publish(struct mqtt_link *link, const struct mqtt_message *message,
                              int64_t timeout_ms, struct weir_error *err)
{
    pthread_mutex_lock(&link->lock);
    weir_status status = publish_locked(link, message, timeout_ms, err);
    pthread_mutex_unlock(&link->lock);
    return status;
}

void mqtt_link_say(struct mqtt_link *link, const struct mqtt_message *message)
{
    int mid, rc;
    pthread_mutex_lock(&link->lock);
    if (link->client != NULL) {
        send_to(link->client, message, &mid, &rc);
    }
    pthread_mutex_unlock(&link->lock);
}

weir_status mqtt_link_look(struct mqtt_link *link, struct weir_error *err)
{
    pthread_mutex_lock(&link->lock);
    weir_status status = link->client == NULL ? unconnected(link, err) : WEIR_OK;
    pthread_mutex_unlock(&link->lock);
    return status;
}

void mqtt_link_cancel(struct mqtt_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->is_cancelled = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

static void link_free(struct mqtt_link *link)
{
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

weir_status mqtt_link_open(const struct mqtt_link_config *config, struct mqtt_link **out,
                           struct weir_error *err)
{
    struct mqtt_link *link = weir_xalloc(sizeof *link);
    *link = (struct mqtt_link){.config = *config};
    pthread_mutex_init(&link->lock, NULL);
    pthread_cond_init(&link->changed, NULL);
    (void)pthread_once(&once, init_library);
    weir_status status = weir_broker_place_read(config->broker->url, &link->place, err);
    (void)snprintf(link->why, sizeof link->why, "broker %s: not connected yet", link->place.host);
    int failed = status == WEIR_OK ? pthread_create(&link->thread, NULL, link_main, link) : 0;
    if (failed != 0) {
        status = weir_error_set_errno(err, failed, "starting a thread");
    }
    if (status != WEIR_OK) {
        link_free(link);
        return status;
    }
    *out = link;
    return WEIR_OK;
}

void mqtt_link_close(struct mqtt_link *link)
{
    if (link == NULL) {
        return;
    }
    pthread_mutex_lock(&link->lock);
    link->is_stopping = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->thread, NULL);
    link_free(link);
}
