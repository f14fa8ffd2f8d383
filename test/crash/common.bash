# SPDX-License-Identifier: Apache-2.0
# Power cuts on a recorded disk: `cuts MODE FS [STATES]` tries CRASH_STATES of them, or what is
# said, or 600. CRASH_SEED chooses them.
. test/lib/lib.sh

tool=${BUILD:-build}/test/crash/power_cut
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -x "$tool" ] || skip 'needs libfuse3-dev to be built'

cuts() {
  need "mkfs.$2"
  local status=0
  nice "$tool" "$1" "$2" "${CRASH_STATES:-${3:-600}}" "${CRASH_SEED:-1}" || status=$?
  [ $status != 77 ] || exit 77
  [ $status = 0 ] || fail "$1 on $2"
}
