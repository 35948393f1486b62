#include "gang/mpi.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

static const char *joined(char *const *words)
{
    const char *text = "";
    for (size_t i = 0; words[i] != NULL; i++) {
        text = weir_arena_printf(&arena, "%s%s%s", text, i > 0 ? "|" : "", words[i]);
    }
    return text;
}

START_TEST(each_launcher_gets_its_own_words)
{
    char *argv[] = {"./a", "--n", "x y", NULL};
    struct mpi_launch launch = {MPI_OPENMPI, 6, argv, "/w"};
    ck_assert_str_eq(joined(mpi_launch_words(&launch, "/b/mpirun", &arena)),
                     "/b/mpirun|-n|6|./a|--n|x y");
    launch.mpi = MPI_MPICH;
    ck_assert_str_eq(joined(mpi_launch_words(&launch, "/b/mpiexec", &arena)),
                     "/b/mpiexec|-n|6|-wdir|.|./a|--n|x y");
    launch.mpi = MPI_OWN;
    ck_assert_str_eq(joined(mpi_launch_words(&launch, NULL, &arena)), "./a|--n|x y");
    const char *environment = joined(mpi_launch_environment(&launch, &arena));
    ck_assert_ptr_nonnull(strstr(environment, "OMPI_MCA_plm_rsh_agent=weir-worker mpi-agent|"));
    ck_assert_ptr_nonnull(
        strstr(environment, "OMPI_MCA_orte_default_hostfile=/w/mpi.hosts.openmpi|"));
    ck_assert_ptr_nonnull(strstr(environment, "HYDRA_LAUNCHER_EXEC=/w/mpi-agent|"));
    ck_assert_int_eq(mpi_from_text("mpich"), MPI_MPICH);
    ck_assert_int_eq(mpi_from_text("lam"), -1);
}

END_TEST

START_TEST(an_agent_takes_what_ssh_would)
{
    static const struct {
        const char *words[6];
        int rank; /* -1: refused */
        const char *command;
    } cases[] = {
        {{"rank-3", "orted", "-mca", "ess \"env\""}, 3, "orted -mca ess \"env\""},
        {{"-x", "-q", "rank-0", "true"}, 0, "true"},
        {{"rank-12", " orted --daemonize"}, 12, " orted --daemonize"},
        {{"rank-1"}, -1, NULL},
        {{"rank-", "a"}, -1, NULL},
        {{"rank-1x", "a"}, -1, NULL},
        {{"rank--1", "a"}, -1, NULL},
        {{"rank-10000", "a"}, -1, NULL},
        {{"host", "a"}, -1, NULL},
        {{NULL}, -1, NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        int rank = -1, argc = 0;
        char *command = NULL;
        while (argc < 6 && cases[i].words[argc] != NULL) {
            argc++;
        }
        weir_status status =
            mpi_agent_parse(argc, (char *const *)cases[i].words, &arena, &rank, &command, &err);
        ck_assert_int_eq(status, cases[i].rank < 0 ? WEIR_ERR_INVALID : WEIR_OK);
        ck_assert_int_eq(rank, cases[i].rank);
        ck_assert_pstr_eq(command, cases[i].command);
    }
}

END_TEST

START_TEST(a_command_is_bounded)
{
    size_t size = 70 << 10;
    char *large = weir_arena_alloc(&arena, size), *command;
    int rank;
    memset(large, 'x', size - 1);
    large[size - 1] = '\0';
    char *words[] = {"rank-1", large};
    ck_assert_int_eq(mpi_agent_parse(2, words, &arena, &rank, &command, &err), WEIR_ERR_LIMIT);
}

END_TEST

static void setup(void)
{
    weir_arena_init(&arena, 0);
}

static void teardown(void)
{
    weir_arena_fini(&arena);
}

WEIR_TEST_MAIN_WITH("mpi", setup, teardown, each_launcher_gets_its_own_words,
                    an_agent_takes_what_ssh_would, a_command_is_bounded)
