# SPDX-License-Identifier: Apache-2.0
# What every test script sources. A test says what it needs, does one thing, and ends with one
# of three statuses: 0 passed, 77 skipped (the reason is its last line), anything else failed.
# The runner gives SLUICE, SLUICE_LIB, PROGRAMS and an empty SCRATCH; by hand they are made here.

if [ -z "${SLUICE:-}" ]; then
  sluice_top=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)
  export SLUICE="$sluice_top/build/bin/sluice"
  export SLUICE_LIB="$sluice_top/build/lib/libinterpose.so"
  export PROGRAMS="$sluice_top/build/test/programs"
fi
if [ -z "${SCRATCH:-}" ]; then
  SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test.XXXXXX")
  export SCRATCH
  trap 'rm -rf "$SCRATCH"' EXIT
fi

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

skip() {
  echo "$*"
  exit 77
}

# need CMD...: skip when a command is not installed.
need() {
  local cmd
  for cmd in "$@"; do
    command -v "$cmd" >/dev/null 2>&1 || skip "needs $cmd"
  done
}

# json FILE EXPR: the value of a Python expression over the parsed file, which is called `d`.
json() {
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

# between LOW VALUE HIGH WHAT: fail when the number is outside.
between() {
  awk -v lo="$1" -v x="$2" -v hi="$3" 'BEGIN { exit !(x + 0 >= lo + 0 && x + 0 <= hi + 0) }' ||
    fail "$4 is $2, wanted $1 to $3"
}
