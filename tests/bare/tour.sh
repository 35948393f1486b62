#!/bin/bash
# tour.sh: the tour of the README, command by command.
set -u
. /check/common.sh
cd /src/weir || exit 1
remember
bash /check/tour_commands.sh || fail "the last command of the tour failed"
grep -q 'model version 3 serves' build/story.txt || fail "the story is another: $(tail -n 5 build/story.txt)"
grep -q '^lost: 0$' build/report.txt || fail "the report is another: $(head -n 5 build/report.txt)"
assert_nothing_left "the tour"
