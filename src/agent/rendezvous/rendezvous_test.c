#include "agent/rendezvous/rendezvous.h"

#include "base/test_main.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct weir_arena arena;
static struct weir_error err;
static const struct rendezvous_member members[] = {
    {"10.0.0.1", 20001, "a"}, {"10.0.0.2", 20002, "b"}, {"fe80::3", 20003, "c"}};

/* NULL: refused. */
static const char *filled(const char *text)
{
    char *out = NULL;
    const struct rendezvous_known known = {members, 3, "eth7", "10.0.0.9", 2};
    weir_status status = rendezvous_fill(text, &known, &arena, &out, &err);
    ck_assert(status == WEIR_OK || status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT);
    return status == WEIR_OK ? out : NULL;
}

START_TEST(texts_name_ranks_by_number_and_range)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", ""},
        {"plain {text} @address", "plain {text} @address"},
        {"{{0|@address}}", "10.0.0.1"},
        {"tcp://{{2|[@address]:@port}}/", "tcp://[fe80::3]:20003/"},
        {"{{0-2|@address:@port|,}}", "10.0.0.1:20001,10.0.0.2:20002,fe80::3:20003"},
        {"{{0-1|@address slots=4\n}}", "10.0.0.1 slots=4\n10.0.0.2 slots=4\n"},
        {"{{1-1|@rank/@node|,}} on {{interface}}", "1/b on eth7"},
        {"{\"w\":[{{0-1|\"@address:@port\"|,}}]}",
         "{\"w\":[\"10.0.0.1:20001\",\"10.0.0.2:20002\"]}"},
        {"{{0|@addresses}}", "10.0.0.1es"},
        {"{{restarts}} times", "2 times"},
        {"{{address}}", "10.0.0.9"},
    };

    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        const char *out = filled(cases[i].text);
        ck_assert_msg(out != NULL && strcmp(out, cases[i].wanted) == 0, "%s: %s", cases[i].text,
                      out);
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_is_no_such_text_is_refused)
{
    static const char *const bad[] = {
        "{{",        "{{0",   "{{0|@port}", "{{|x}}",   "{{a|x}}",      "{{3|x}}", "{{0-3|x|,}}",
        "{{2-1|x}}", "{{0}}", "{{0-|x}}",   "{{-1|x}}", "{{123456|x}}", "{{}}",    "{{interfac}}"};
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(filled(bad[i]) == NULL, "%s", bad[i]);
        ck_assert_int_eq(err.status, WEIR_ERR_INVALID);
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_filled_text_is_bounded)
{
    weir_arena_init(&arena, 0);
    size_t size = RENDEZVOUS_TEXT_MAX / 3 + 100;
    char *text = weir_arena_alloc(&arena, size + 16);
    (void)snprintf(text, size + 16, "{{0-2|%0*d}}", (int)size, 0);
    ck_assert_ptr_null(filled(text));
    ck_assert_int_eq(err.status, WEIR_ERR_LIMIT);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(members_survive_their_text_and_strangers_do_not)
{
    static const char *const bad[] = {
        "",
        "x",
        "[]",
        "{}",
        "{\"address\":\"a.example\",\"port\":1,\"node\":\"n\"}",
        "{\"address\":\"10.0.0.1\",\"port\":70000,\"node\":\"n\"}",
        "{\"address\":\"10.0.0.1\",\"port\":-1,\"node\":\"n\"}",
        "{\"address\":\"10.0.0.1\",\"port\":1}",
        "{\"address\":\"10.0.0.1; rm\",\"port\":1,\"node\":\"n\"}",
        "{\"address\":\"10.0.0.1\",\"port\":1,\"node\":\"n\\nslots=9\"}",
    };
    struct rendezvous_member read;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        json_t *written = rendezvous_member_write(&members[i]);
        char *text = json_dumps(written, 0);
        ck_assert_int_eq(rendezvous_member_read(text, &read, &err), WEIR_OK);
        ck_assert_str_eq(read.address, members[i].address);
        ck_assert_str_eq(read.node, members[i].node);
        ck_assert_int_eq(read.port, members[i].port);
        free(text);
        json_decref(written);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(rendezvous_member_read(bad[i], &read, &err) == WEIR_ERR_INVALID, "%s",
                      bad[i]);
    }
}

END_TEST

START_TEST(an_own_address_is_one_of_an_interface_of_ours)
{
    char address[RENDEZVOUS_ADDRESS_BYTES], interface[64];
    static const char *const servers[] = {"http://127.0.0.1:8440", "http://localhost:1",
                                          "https://127.0.0.1", "127.0.0.1:80"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(servers); i++) {
        ck_assert_msg(rendezvous_own_address(servers[i], address, &err) == WEIR_OK, "%s",
                      err.message);
        rendezvous_interface(address, interface, sizeof interface);
        ck_assert_str_ne(interface, "");
    }
    rendezvous_interface("192.0.2.77", interface, sizeof interface);
    ck_assert_str_eq(interface, "");
    ck_assert_int_eq(rendezvous_own_address("http://", address, &err), WEIR_ERR_INVALID);
}

END_TEST

/* Networks of random length around addresses that this machine has, or has not. */
START_TEST(a_setting_means_an_address_of_this_machine)
{
    char address[RENDEZVOUS_ADDRESS_BYTES], setting[RENDEZVOUS_NETWORK_BYTES];
    static const char *const good[] = {"127.0.0.1", "lo", "127.0.0.0/8", "127.0.0.1/32",
                                       "126.0.0.0/7"};
    static const char *const none[] = {"240.0.0.0/4", "127.0.0.2/32", "128.0.0.0/8", "nosuch0",
                                       "2001:db8::/32"};
    static const char *const bad[] = {
        "",     "127.0.0.0/33", "127.0.0.0/",         "/8",          "127.0.0/8", "::/129", "a/b",
        "lo/8", "an interface", "averylonginterface", "127.0.0.0/8x"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(rendezvous_address_by(good[i], address, &err) == WEIR_OK, "%s", err.message);
        ck_assert_str_eq(address, "127.0.0.1");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(none); i++) {
        ck_assert_msg(rendezvous_address_by(none[i], address, &err) == WEIR_ERR_NOT_FOUND, "%s",
                      none[i]);
        ck_assert_ptr_nonnull(strstr(err.message, none[i]));
        ck_assert_ptr_nonnull(strstr(err.message, "lo 127.0.0.1"));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(rendezvous_address_by(bad[i], address, &err) == WEIR_ERR_INVALID, "%s",
                      bad[i]);
    }
    uint32_t own = 0x7F000001;
    for (unsigned n_bits = 0; n_bits <= 32;
         n_bits++) { /* what the prefix leaves out is without meaning */
        uint32_t mask = n_bits == 0 ? 0 : 0xFFFFFFFFU << (32 - n_bits);
        uint32_t network = (own & mask) | (0x00A5C396U & ~mask),
                 other = own ^ (n_bits == 0 ? 0 : 1U << (32 - n_bits));
        (void)snprintf(setting, sizeof setting, "%u.%u.%u.%u/%u", network >> 24,
                       network >> 16 & 255, network >> 8 & 255, network & 255, n_bits);
        ck_assert_msg(rendezvous_address_by(setting, address, &err) == WEIR_OK, "%s", setting);
        ck_assert(n_bits < 8 || strcmp(address, "127.0.0.1") == 0);
        (void)snprintf(setting, sizeof setting, "%u.%u.%u.%u/%u", other >> 24, other >> 16 & 255,
                       other >> 8 & 255, other & 255, n_bits);
        ck_assert(n_bits < 8 ||
                  rendezvous_address_by(setting, address, &err) == WEIR_ERR_NOT_FOUND);
    }
}

END_TEST

START_TEST(a_free_port_can_be_listened_on)
{
    for (int i = 0; i < 16; i++) {
        int port = rendezvous_free_port();
        const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert(port >= 20000 && port < 32000);
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&any, sizeof any), 0);
        ck_assert_int_eq(listen(fd, 1), 0);
        ck_assert_int_ne(rendezvous_free_port(), port);
        close(fd);
    }
}

END_TEST

WEIR_TEST_MAIN("rendezvous", texts_name_ranks_by_number_and_range, what_is_no_such_text_is_refused,
               a_filled_text_is_bounded, members_survive_their_text_and_strangers_do_not,
               an_own_address_is_one_of_an_interface_of_ours,
               a_setting_means_an_address_of_this_machine, a_free_port_can_be_listened_on)
