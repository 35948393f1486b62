#include "predict/contact.h"

#include "base/clock.h"

void contact_init(struct contact *contact)
{
    *contact = (struct contact){.since_ms = weir_time_ms()};
    pthread_mutex_init(&contact->lock, NULL);
}

void contact_fini(struct contact *contact)
{
    pthread_mutex_destroy(&contact->lock);
}

static void set(struct contact *contact, bool is_lost, const char *why)
{
    pthread_mutex_lock(&contact->lock);
    if (contact->is_lost != is_lost) {
        contact->is_lost = is_lost;
        contact->since_ms = weir_time_ms();
    }
    if (why != NULL) {
        (void)snprintf(contact->error, sizeof contact->error, "%s", why);
    }
    pthread_mutex_unlock(&contact->lock);
}

void contact_is_good(struct contact *contact)
{
    set(contact, false, NULL);
}

void contact_is_lost(struct contact *contact, const char *why)
{
    set(contact, true, why);
}

json_t *contact_to_json(struct contact *contact)
{
    char since[WEIR_TIME_TEXT_BYTES];
    pthread_mutex_lock(&contact->lock);
    weir_time_format(contact->since_ms, since);
    json_t *json = json_pack(
        "{s:b,s:s,s:o}", "connected", !contact->is_lost, "since", since, "error",
        contact->error[0] == '\0' ? json_null()
                                  : weir_json_string(contact->error, "its text is no UTF-8"));
    pthread_mutex_unlock(&contact->lock);
    return json;
}
