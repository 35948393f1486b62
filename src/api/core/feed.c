#include "api/core/feed.h"

#include "base/arena.h"
#include "http/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct feed_entry {
    enum feed_topic topic;
    char *data; /**< NULL: it was too large. */
};

struct feed {
    pthread_mutex_t lock;
    uint64_t n_published; /**< Entries ever; entry k lies at k % FEED_MAX_ENTRIES. */
    struct feed_entry entries[FEED_MAX_ENTRIES];
};

static const char *const topic_texts[FEED_N_TOPICS] = {
    [FEED_RUNS] = "runs",
    [FEED_JOBS] = "jobs",
    [FEED_ALERTS] = "alerts",
    [FEED_IONS] = "ions",
    [FEED_MODELS] = "models",
    [FEED_NODES] = "nodes",
    [FEED_DEPLOYMENTS] = "deployments",
    [FEED_SWEEPS] = "sweeps",
};

int feed_topic_from_text(const char *text)
{
    for (int i = 0; i < FEED_N_TOPICS; i++) {
        if (strcmp(text, topic_texts[i]) == 0) {
            return i;
        }
    }
    return -1;
}

const char *feed_topic_text(enum feed_topic topic)
{
    return topic_texts[topic];
}

struct feed *feed_create(void)
{
    struct feed *feed = weir_xalloc(sizeof *feed);
    pthread_mutex_init(&feed->lock, NULL);
    return feed;
}

void feed_destroy(struct feed *feed)
{
    if (feed == NULL) {
        return;
    }
    for (size_t i = 0; i < FEED_MAX_ENTRIES; i++) {
        free(feed->entries[i].data);
    }
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

void feed_publish(struct feed *feed, enum feed_topic topic, const char *data)
{
    char *copy = strlen(data) <= FEED_MAX_ENTRY_BYTES ? weir_xstrdup(data) : NULL;
    pthread_mutex_lock(&feed->lock);
    struct feed_entry *entry = &feed->entries[feed->n_published % FEED_MAX_ENTRIES];
    char *old = entry->data;
    *entry = (struct feed_entry){topic, copy};
    feed->n_published++;
    pthread_mutex_unlock(&feed->lock);
    free(old);
}

uint64_t feed_position(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    uint64_t position = feed->n_published;
    pthread_mutex_unlock(&feed->lock);
    return position;
}

weir_status feed_read(struct feed *feed, uint64_t *position, unsigned mask, int max_events,
                      struct weir_buf *out)
{
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&feed->lock);
    if (feed->n_published - *position > FEED_MAX_ENTRIES) {
        *position = feed->n_published - FEED_MAX_ENTRIES;
        status = weir_http_event_append(out, "resync", NULL, "{}");
    }
    for (; status == WEIR_OK && *position < feed->n_published && max_events > 0; ++*position) {
        const struct feed_entry *entry = &feed->entries[*position % FEED_MAX_ENTRIES];
        if (mask & (1u << entry->topic)) {
            status = entry->data != NULL
                         ? weir_http_event_append(out, topic_texts[entry->topic], NULL, entry->data)
                         : weir_http_event_append(out, "resync", NULL, "{}");
            max_events--;
        }
    }
    pthread_mutex_unlock(&feed->lock);
    return status;
}

weir_status feed_read_hidden(struct feed *feed, uint64_t *position, unsigned mask,
                             struct weir_buf *out)
{
    bool is_news = false;
    pthread_mutex_lock(&feed->lock);
    if (feed->n_published - *position > FEED_MAX_ENTRIES) {
        *position = feed->n_published - FEED_MAX_ENTRIES;
        is_news = true;
    }
    for (; *position < feed->n_published; ++*position) {
        is_news =
            is_news || (mask & (1u << feed->entries[*position % FEED_MAX_ENTRIES].topic)) != 0;
    }
    pthread_mutex_unlock(&feed->lock);
    return is_news ? weir_http_event_append(out, "resync", NULL, "{}") : WEIR_OK;
}
