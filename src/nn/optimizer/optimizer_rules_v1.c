/* Rules of optimisers for any x86-64; CMakeLists.txt has the flags. */
#define RULE_TABLE optimizer_rules_v1
#include "optimizer_rules_body.h"
