/** weir: the command line, the server and the agent. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return weir_cli_main(argc, argv);
}
