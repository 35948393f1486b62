#include "comm/elastic/door.h"

#include "base/file.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

enum { LONGEST_WAIT_MS = 1000 };

weir_status door_place(const struct address_rendezvous *where, struct address_rendezvous *out,
                       struct weir_error *err)
{
    *out = *where;
    if (!where->is_file) {
        return WEIR_OK;
    }
    int len = snprintf(out->path, sizeof out->path, "%.4000s.door", where->path);
    return (size_t)len == strlen(where->path) + strlen(".door")
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "rendezvous \"%s\": too long", where->path);
}

bool door_has(const struct door *door, int member)
{
    for (int i = 0; i < door->n_guests; i++) {
        if (door->guests[i].member == member) {
            return true;
        }
    }
    return false;
}

static void drop_guest(struct door *door, int i)
{
    link_close(&door->guests[i].link);
    door->n_guests--;
    memmove(&door->guests[i], &door->guests[i + 1],
            sizeof door->guests[0] * (size_t)(door->n_guests - i));
}

static void drop_gone(struct door *door)
{
    struct pollfd poll_fds[WEIR_COMM_MAX_RANKS];
    for (int i = 0; i < door->n_guests; i++) {
        poll_fds[i] = (struct pollfd){.fd = door->guests[i].link.fd, .events = POLLRDHUP};
    }
    if (door->n_guests == 0 || poll(poll_fds, (nfds_t)door->n_guests, 0) <= 0) {
        return;
    }
    for (int i = door->n_guests - 1; i >= 0; i--) {
        if (poll_fds[i].revents != 0) {
            drop_guest(door, i);
        }
    }
}

static weir_status judge(void *context, const struct wire_join *join, struct weir_error *err)
{
    struct door *door = context;
    if (join->size != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the group runs already; a newcomer has to say that it is one");
    }
    if (join->rank >= WEIR_COMM_MAX_RANKS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "member %u: expected 0 to %d", join->rank,
                              WEIR_COMM_MAX_RANKS - 1);
    }
    drop_gone(door); /* its predecessor, for one */
    return door_has(door, (int)join->rank)
               ? weir_error_set(err, WEIR_ERR_CONFLICT, "member %u waits already", join->rank)
               : WEIR_OK;
}

static void admit(void *context, const struct wire_join *join, struct link *link)
{
    struct door *door = context;
    int i = door->n_guests++;
    for (; i > 0 && door->guests[i - 1].member > (int)join->rank; i--) {
        door->guests[i] = door->guests[i - 1];
    }
    door->guests[i] = (struct door_guest){.member = (int)join->rank, .link = *link};
}

static weir_status open_all(struct door *door, struct weir_error *err)
{
    if (door->where.is_file) {
        char path[sizeof door->where.path + 8];
        (void)snprintf(path, sizeof path, "%s.lock", door->where.path);
        WEIR_TRY(weir_file_lock(path, &door->lock_fd, err));
    }
    return reception_open(&door->reception, err);
}

weir_status door_open(const struct address_rendezvous *place, const struct proof_key *key,
                      const char *job_id, int attempt, struct door **out, struct weir_error *err)
{
    struct door *door = calloc(1, sizeof *door);
    if (door == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the group's door");
    }
    door->where = *place;
    door->key = *key;
    door->lock_fd = -1;
    (void)snprintf(door->job_id, sizeof door->job_id, "%s", job_id);
    door->reception = (struct reception){.where = &door->where,
                                         .key = &door->key,
                                         .job_id = door->job_id,
                                         .attempt = attempt,
                                         .context = door,
                                         .judge = judge,
                                         .admit = admit,
                                         .listen_fd = -1};
    weir_status status = open_all(door, err);
    if (status != WEIR_OK) {
        door_close(door, false);
        return status;
    }
    *out = door;
    return WEIR_OK;
}

void door_look(struct door *door)
{
    drop_gone(door);
    if (door->n_guests < WEIR_COMM_MAX_RANKS) {
        reception_serve(&door->reception);
    }
}

void door_wait(struct door *door, const int fds[], int n_fds, uint64_t deadline_ns)
{
    struct pollfd poll_fds[RECEPTION_MAX_FDS + 2 * WEIR_COMM_MAX_RANKS];
    nfds_t n = reception_poll_fds(&door->reception, poll_fds);
    for (int i = 0; i < door->n_guests; i++) {
        poll_fds[n++] = (struct pollfd){.fd = door->guests[i].link.fd, .events = POLLRDHUP};
    }
    for (int i = 0; i < n_fds; i++) {
        poll_fds[n++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    (void)poll(poll_fds, n, link_poll_ms(deadline_ns, LONGEST_WAIT_MS));
}

static void send_away(struct door *door, bool is_over)
{
    const struct wire_problem problem = {.status = is_over ? WEIR_ERR_END : WEIR_ERR_PEER,
                                         .rank = WIRE_NO_RANK,
                                         .text = "the group has done its work and is no more"};
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    for (int i = door->n_guests - 1; i >= 0; i--) {
        if (is_over) {
            (void)!link_send(&door->guests[i].link, WIRE_ABORT, bytes, writer.len, 0);
        }
        drop_guest(door, i);
    }
}

static void publish_end(const struct door *door)
{
    struct weir_buf text;
    struct weir_error err;
    const struct address_notice notice = {.is_over = true};
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    if (text.status == WEIR_OK &&
        weir_file_write_atomic(door->where.path, text.data, text.len, 0600, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_DEBUG, "comm_end_not_published", WEIR_KV_STR("reason", err.message));
    }
    weir_buf_fini(&text);
}

void door_close(struct door *door, bool is_over)
{
    if (door == NULL) {
        return;
    }
    send_away(door, is_over);
    bool was_published = door->reception.is_published;
    reception_close(&door->reception);
    if (is_over && was_published) {
        publish_end(door);
    }
    if (door->lock_fd >= 0) {
        (void)close(door->lock_fd); /* last: the next leader may open its own now */
    }
    free(door);
}
