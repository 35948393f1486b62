#include "base/test_main.h"
#include "cli/job/sbatch.h"
START_TEST(x){}
END_TEST
WEIR_TEST_MAIN("sbatch", x)
