/* Rules of optimisers for AVX2; CMakeLists.txt has the flags. */
#define RULE_TABLE optimizer_rules_v3
#include "optimizer_rules_body.h"
