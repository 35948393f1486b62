/* Rules of optimisers for AVX-512; CMakeLists.txt has the flags. */
#define RULE_TABLE optimizer_rules_v4
#include "optimizer_rules_body.h"
