#include "kube/client.h"
#include "kube/credential.h"
#include "kube/table.h"

#include "base/file.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAW_KEYS 12

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(members_are_found_by_their_path)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    json_t *pod = json_pack("{s:{s:s},s:i}", "spec", "nodeName", "n1", "kind", 3);
    ck_assert_str_eq(weir_kube_text(pod, "spec.nodeName"), "n1");
    ck_assert_ptr_null(weir_kube_text(pod, "spec.other.deep"));
    ck_assert_ptr_null(weir_kube_text(pod, "kind"));
    ck_assert_ptr_null(weir_kube_at(NULL, "kind"));
    ck_assert_str_eq(weir_kube_escape("a/b c=\xc3\xa9", &arena), "a%2Fb%20c%3D%C3%A9");
    ck_assert_int_eq(weir_kube_time_ms("1970-01-01T00:00:02Z"), 2000);
    ck_assert_int_eq(weir_kube_time_ms(NULL), 0);
    json_decref(pod);
    weir_arena_fini(&arena);
}

END_TEST

/* ---- kubeconfigs ----------------------------------------------------------------------------- */

static const char kubeconfig[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: prod\n"
    "clusters:\n"
    "- name: c1\n"
    "  cluster: {server: 'https://10.0.0.1:6443/', certificate-authority-data: Q0E=,"
    " tls-server-name: kube, proxy-url: 'http://proxy:3128'}\n"
    "- name: bad\n"
    "  cluster: {server: 'ftp://x'}\n"
    "users:\n"
    "- name: ann\n"
    "  user: {token: secret, as: bob, as-groups: [g1, g2]}\n"
    "- name: cert\n"
    "  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}\n"
    "- name: half\n"
    "  user: {client-certificate-data: Q0VSVA==}\n"
    "- name: old\n"
    "  user: {username: a, password: b}\n"
    "- name: plugin\n"
    "  user:\n"
    "    exec:\n"
    "      apiVersion: client.authentication.k8s.io/v1\n"
    "      command: sh\n"
    "      args: ['-c', 'echo \"$ANSWER\"']\n"
    "      env: [{name: ANSWER, value: "
    "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
    "\"ExecCredential\",\"status\":{\"token\":\"t1\"}}'}]\n"
    "contexts:\n"
    "- name: prod\n"
    "  context: {cluster: c1, user: ann, namespace: train}\n"
    "- name: cert\n"
    "  context: {cluster: c1, user: cert}\n"
    "- name: half\n"
    "  context: {cluster: c1, user: half}\n"
    "- name: old\n"
    "  context: {cluster: c1, user: old}\n"
    "- name: plugin\n"
    "  context: {cluster: c1, user: plugin}\n"
    "- name: bad\n"
    "  context: {cluster: bad, user: ann}\n"
    "- name: nobody\n"
    "  context: {cluster: c1, user: gone}\n";

struct read_config {
    struct weir_arena arena;
    struct weir_kube_config config;
    struct weir_error err;
    weir_status status;
};

static struct read_config read_context(const char *context)
{
    struct read_config read = {0};
    struct weir_kube_file file = {.path = "/etc/kube/config"};
    const char *more[] = {"https://10.0.0.2:6443"};
    const struct weir_kube_place place = {.context = context, .servers = more, .n_servers = 1};
    weir_arena_init(&read.arena, 0);
    ck_assert_int_eq(
        weir_yaml_parse(kubeconfig, strlen(kubeconfig), "config", false, &file.document, &read.err),
        WEIR_OK);
    read.status = weir_kube_config_read(&file, 1, &place, &read.arena, &read.config, &read.err);
    json_decref(file.document);
    return read;
}

START_TEST(a_context_says_where_and_as_whom)
{
    struct read_config read = read_context(NULL);
    ck_assert_msg(read.status == WEIR_OK, "%s", read.err.message);
    const struct weir_kube_config *config = &read.config;
    ck_assert_uint_eq(config->n_servers, 2);
    ck_assert_str_eq(config->servers[0], "https://10.0.0.1:6443");
    ck_assert_str_eq(config->servers[1], "https://10.0.0.2:6443");
    ck_assert_str_eq(config->namespace_name, "train");
    ck_assert_str_eq(config->ca_pem, "CA");
    ck_assert_str_eq(config->server_name, "kube");
    ck_assert_str_eq(config->proxy, "http://proxy:3128");
    ck_assert_str_eq(config->token, "secret");
    ck_assert_str_eq(config->as_user, "bob");
    ck_assert_uint_eq(config->n_as_groups, 2);
    ck_assert_str_eq(config->from, "context prod of /etc/kube/config");
    weir_arena_fini(&read.arena);
    read = read_context("cert");
    ck_assert_str_eq(read.config.cert_pem, "CERT");
    ck_assert_str_eq(read.config.key_pem, "KEY");
    ck_assert_str_eq(read.config.namespace_name, "default");
    weir_arena_fini(&read.arena);
}

END_TEST

START_TEST(what_is_wrong_with_a_kubeconfig_is_said_with_its_place)
{
    static const struct {
        const char *context;
        weir_status status;
        const char *said;
    } cases[] = {
        {"none", WEIR_ERR_NOT_FOUND, "contexts has no \"none\": there are prod, cert"},
        {"nobody", WEIR_ERR_NOT_FOUND, "users has no \"gone\""},
        {"half", WEIR_ERR_INVALID, "users half: client-certificate"},
        {"old", WEIR_ERR_UNSUPPORTED, "users old: username is not supported"},
        {"bad", WEIR_ERR_INVALID, "\"ftp://x\" is no address"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct read_config read = read_context(cases[i].context);
        ck_assert_int_eq(read.status, cases[i].status);
        ck_assert_msg(strstr(read.err.message, cases[i].said) != NULL, "%s", read.err.message);
        weir_arena_fini(&read.arena);
    }
}

END_TEST

/* ---- credentials ----------------------------------------------------------------------------- */

#define EXEC_HEAD "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\""

START_TEST(a_program_prints_the_credential)
{
    struct read_config read = read_context("plugin");
    struct kube_credential credential = {.config = &read.config};
    bool is_other;
    ck_assert_msg(read.status == WEIR_OK, "%s", read.err.message);
    ck_assert_int_eq(kube_credential_get(&credential, &is_other, &read.err), WEIR_OK);
    ck_assert_str_eq(credential.token, "t1");
    ck_assert(!is_other);
    ck_assert(kube_credential_refused(&credential));
    ck_assert_int_eq(credential.got_ms, 0);
    static const char *const bad[] = {
        "{\"apiVersion\":\"v0\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"x\"}}",
        EXEC_HEAD "}", EXEC_HEAD ",\"status\":{\"clientCertificateData\":\"x\"}}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *printed = json_loads(bad[i], 0, NULL);
        ck_assert_int_eq(kube_credential_take(&credential, printed, &is_other, &read.err),
                         WEIR_ERR_INVALID);
        json_decref(printed);
    }
    kube_credential_fini(&credential);
    weir_arena_fini(&read.arena);
}

END_TEST

START_TEST(a_token_in_a_file_is_read_again_when_it_was_refused)
{
    char path[] = "/tmp/kube-token-XXXXXX";
    int fd = mkstemp(path);
    const struct weir_kube_config config = {.from = "a test", .token_file = path};
    struct kube_credential credential = {.config = &config};
    struct weir_error err;
    bool is_other;
    ck_assert_int_eq(dprintf(fd, "one\n"), 4);
    ck_assert_int_eq(kube_credential_get(&credential, &is_other, &err), WEIR_OK);
    ck_assert_str_eq(credential.token, "one");
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, "two", 3, 0), 3);
    ck_assert_int_eq(kube_credential_get(&credential, &is_other, &err), WEIR_OK);
    ck_assert_str_eq(credential.token, "one"); /* it is young */
    ck_assert(kube_credential_refused(&credential));
    ck_assert_int_eq(kube_credential_get(&credential, &is_other, &err), WEIR_OK);
    ck_assert_str_eq(credential.token, "two");
    kube_credential_fini(&credential);
    (void)close(fd);
    (void)unlink(path);
}

END_TEST

/* ---- the mirror's table ---------------------------------------------------------------------- */

START_TEST(a_list_takes_out_what_it_has_not)
{
    struct kube_table table = {0};
    static const char *const keys[] = {"b", "a", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        kube_table_put(&table, keys[i], strdup(keys[i]), true);
    }
    kube_table_begin_list(&table);
    kube_table_put(&table, "a", strdup("new"), true);
    kube_table_put(&table, "e", strdup("e"), true);
    kube_table_end_list(&table, 5, true);
    ck_assert_uint_eq(table.n, 5);
    ck_assert_str_eq(table.entries[0].digest, "new");
    ck_assert_int_eq(table.entries[1].deleted_ms, 5);
    ck_assert_int_eq(table.entries[4].deleted_ms, 0);
    kube_table_forget(&table, 6);
    ck_assert_uint_eq(table.n, 2);
    kube_table_delete(&table, "e", NULL, 7);
    kube_table_delete(&table, "none", NULL, 7);
    kube_table_delete(&table, "a", strdup("last"), 7);
    ck_assert_uint_eq(table.n, 1);
    ck_assert_int_eq(table.entries[0].deleted_ms, 7);
    kube_table_put(&table, "a", strdup("again"), true);
    ck_assert_int_eq(table.entries[0].deleted_ms, 0);
    kube_table_fini(&table);
}

END_TEST

/* What a plain array says of the same events. */
struct model {
    int value[LAW_KEYS]; /* 0: it is not there */
    bool is_listed[LAW_KEYS];
};

static void check_against(const struct kube_table *table, const struct model *model)
{
    char key[8];
    size_t n = 0;
    for (size_t i = 0; i < table->n; i++) {
        ck_assert(i == 0 || strcmp(table->entries[i - 1].key, table->entries[i].key) < 0);
    }
    for (int k = 0; k < LAW_KEYS; k++) {
        (void)snprintf(key, sizeof key, "k%02d", k);
        for (size_t i = 0; i < table->n; i++) {
            if (strcmp(table->entries[i].key, key) == 0) {
                ck_assert_int_eq(*(const int *)table->entries[i].digest, model->value[k]);
                n++;
            }
        }
        ck_assert(model->value[k] == 0 || n > 0);
    }
    ck_assert_uint_eq(n, table->n);
}

static int *digest_of(int value)
{
    int *digest = malloc(sizeof *digest);
    ck_assert_ptr_nonnull(digest);
    *digest = value;
    return digest;
}

/* Whatever events and lists come, also lists that are never whole, the table has what was put and not taken away. */
START_TEST(a_table_has_what_there_is)
{
    struct kube_table table = {0};
    struct model model = {0};
    struct weir_rng rng;
    char key[8];
    bool is_listing = false;
    (void)test_seed(&rng);
    for (int step = 1; step < 5000; step++) {
        size_t k = weir_rng_below(&rng, LAW_KEYS);
        (void)snprintf(key, sizeof key, "k%02zu", k);
        switch (weir_rng_below(&rng, 12)) {
        case 0: /* a list begins; one before it may have broken */
            kube_table_begin_list(&table);
            memset(model.is_listed, 0, sizeof model.is_listed);
            is_listing = true;
            break;
        case 1:
            if (is_listing) {
                kube_table_end_list(&table, step, false);
                for (size_t i = 0; i < LAW_KEYS; i++) {
                    model.value[i] = model.is_listed[i] ? model.value[i] : 0;
                }
                is_listing = false;
            }
            break;
        case 2:
        case 3:
        case 4:
            kube_table_delete(&table, key, NULL, step);
            model.value[k] = 0;
            break;
        default:
            kube_table_put(&table, key, digest_of(step), true);
            model.value[k] = step;
            model.is_listed[k] = true;
        }
        check_against(&table, &model);
    }
    kube_table_fini(&table);
}

END_TEST

WEIR_TEST_MAIN("kube", a_table_has_what_there_is, members_are_found_by_their_path,
               a_context_says_where_and_as_whom,
               what_is_wrong_with_a_kubeconfig_is_said_with_its_place,
               a_program_prints_the_credential, a_token_in_a_file_is_read_again_when_it_was_refused,
               a_list_takes_out_what_it_has_not)
