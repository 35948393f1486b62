#include "endpoint/door/modbus.h"

#include "base/clock.h"
#include "base/log.h"
#include "predict/door.h"

#include <errno.h>
#include <modbus.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLEAR_TIMEOUT_MS 1000
#define CLEAR_AGAIN_MS   1000

/* A module takes few connections at once, and holds them for long: each order makes its own, one after the other. */
struct door {
    const struct weir_door_modbus *options;
    struct door_config config;
    int64_t clear_ms; /**< Monotonic: when the coil is to be cleared; 0: it is clear. */
};

static const struct weir_door_modbus *options_at(const struct door_board *board, size_t i)
{
    return board->doors[i].by.kind == &weir_door_modbus_kind ? board->doors[i].by.options : NULL;
}

/* The lock of a module is that of the first door of it. */
static pthread_mutex_t *module_lock(struct door *door)
{
    struct door_board *board = door->config.board;
    for (size_t i = 0; i < board->n; i++) {
        const struct weir_door_modbus *other = options_at(board, i);
        if (other != NULL && other->port == door->options->port &&
            strcmp(other->host, door->options->host) == 0) {
            return &board->modules[i];
        }
    }
    return &board->modules[door->config.i_door];
}

static weir_status fail(const struct door *door, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "module %s:%lld, %s: %s", door->options->host,
                          (long long)door->options->port, what, modbus_strerror(errno));
}

static weir_status connect_to(const struct door *door, int64_t timeout_ms, modbus_t **out,
                              struct weir_error *err)
{
    char service[16];
    (void)snprintf(service, sizeof service, "%lld", (long long)door->options->port);
    modbus_t *module = modbus_new_tcp_pi(door->options->host, service);
    if (module == NULL) {
        return fail(door, "its address", err);
    }
    (void)modbus_set_slave(module, (int)door->options->unit);
    (void)modbus_set_response_timeout(module, (uint32_t)(timeout_ms / 1000),
                                      (uint32_t)(timeout_ms % 1000 * 1000 + 1));
    if (modbus_connect(module) != 0) {
        weir_status status = fail(door, "connecting", err);
        modbus_free(module);
        return status;
    }
    *out = module;
    return WEIR_OK;
}

static weir_status write_and_read(const struct door *door, modbus_t *module, bool is_set,
                                  bool *out_is_so, struct weir_error *err)
{
    uint8_t bit = 0;
    int coil = (int)door->options->coil;
    if (modbus_write_bit(module, coil, is_set) != 1) {
        return fail(door, "writing the coil", err);
    }
    if (modbus_read_bits(module, coil, 1, &bit) != 1) {
        return fail(door, "reading the coil back", err);
    }
    *out_is_so = (bit != 0) == is_set;
    return WEIR_OK;
}

static weir_status connect_and_set(const struct door *door, bool is_set, int64_t timeout_ms,
                                   bool *out_is_so, struct weir_error *err)
{
    modbus_t *module = NULL;
    WEIR_TRY(connect_to(door, timeout_ms, &module, err));
    weir_status status = write_and_read(door, module, is_set, out_is_so, err);
    modbus_close(module);
    modbus_free(module);
    return status;
}

/* Three waits at most, to connect, to write, to read, in what other doors of the module leave of the time: later it may not be set. */
static weir_status set_coil(struct door *door, bool is_set, int64_t timeout_ms, bool *out_is_so,
                            struct weir_error *err)
{
    int64_t until_ms = weir_mono_ms() + timeout_ms;
    const struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_t *lock = module_lock(door);
    if (pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until) != 0) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "module %s:%lld is busy with another door",
                              door->options->host, (long long)door->options->port);
    }
    int64_t left_ms = WEIR_MAX(until_ms - weir_mono_ms(), (int64_t)0);
    weir_status status =
        connect_and_set(door, is_set, WEIR_MAX(left_ms / 3, (int64_t)1), out_is_so, err);
    pthread_mutex_unlock(lock);
    return status;
}

static weir_status send_command(struct door *door, const struct door_command *command,
                                int64_t timeout_ms, struct door_answer *answer,
                                struct weir_error *err)
{
    bool is_so = false;
    int64_t clear_ms = command->is_lock ? 0 : weir_mono_ms() + command->pulse_ms;
    /* A write without an answer may have set it. */
    door->clear_ms = command->is_lock ? weir_mono_ms() : WEIR_MAX(door->clear_ms, clear_ms);
    WEIR_TRY(set_coil(door, !command->is_lock, timeout_ms, &is_so, err));
    door->clear_ms = command->is_lock && is_so ? 0 : door->clear_ms;
    answer->word = is_so ? DOOR_DONE : DOOR_JAMMED;
    answer->at_ms = weir_time_ms();
    (void)snprintf(answer->said, sizeof answer->said, "%s",
                   is_so ? "" : "the coil does not read as it was written");
    return WEIR_OK;
}

static weir_status tick(struct door *door, struct weir_error *err)
{
    bool is_so = false;
    if (door->clear_ms == 0 || weir_mono_ms() < door->clear_ms) {
        return WEIR_OK;
    }
    door->clear_ms = weir_mono_ms() + CLEAR_AGAIN_MS;
    WEIR_TRY(set_coil(door, false, CLEAR_TIMEOUT_MS, &is_so, err));
    door->clear_ms = is_so ? 0 : door->clear_ms;
    door_board_jammed(door->config.board, door->config.i_door, !is_so);
    return WEIR_OK;
}

/* What a process before it may have left set is cleared first. */
static weir_status open_module(const struct door_config *config, struct door **out,
                               struct weir_error *err)
{
    (void)err;
    struct door *door = weir_xalloc(sizeof *door);
    *door = (struct door){.options = config->options, .config = *config, .clear_ms = 1};
    *out = door;
    return WEIR_OK;
}

static void close_module(struct door *door)
{
    bool is_so;
    struct weir_error why;
    if (door->clear_ms != 0 && set_coil(door, false, CLEAR_TIMEOUT_MS, &is_so, &why) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "door_coil_left_set", WEIR_KV_STR("reason", why.message));
    }
    free(door);
}

const struct door_ops door_modbus = {
    .open = open_module, .send = send_command, .tick = tick, .close = close_module};
