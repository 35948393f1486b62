/** weir-demo: plays an example against a running server. `weir demo` starts it. */
#include "demo/demo.h"

int main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    struct cli_call call = {
        .arena = &arena, .command = &weir_demo, .argc = argc - 1, .argv = argv + 1};
    weir_status status = cli_call_run(&call, &err);
    return cli_call_end(&call, status, &err);
}
