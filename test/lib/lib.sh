# SPDX-License-Identifier: Apache-2.0
# What every test script sources. A test says what it needs, does one thing, and ends with one
# of three statuses: 0 passed, 77 skipped (the reason is its last line), anything else failed.
# Tests are started at the top of the repository, `top`. The runner gives SLUICE, SLUICE_LIB,
# PROGRAMS and an empty SCRATCH; by hand they are made here.

top=$PWD
if [ -z "${SLUICE:-}" ]; then
  export SLUICE="$top/build/bin/sluice"
  export SLUICE_LIB="$top/build/lib/libinterpose.so"
  export PROGRAMS="$top/build/test/programs"
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

# free_port: of 127.0.0.1, one that nobody listens at now.
free_port() {
  python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# own_mounts: what the script mounts from here on nobody else sees, and it goes with the script.
# /dev/shm is empty and its own: jobs that other tests left there are not seen.
# Starts the script anew, so it comes right after this file. Nothing happens without root.
own_mounts() {
  [ "$(id -u)" = 0 ] && command -v unshare >/dev/null || return 0
  if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm || fail 'cannot mount on /dev/shm'
    return 0
  fi
  HAS_OWN_MOUNTS=1 exec unshare --mount --propagation private bash "$0"
}

# own_ext4 DIR [OPTION…]: makes it, with an ext4 of its own there, for the disk of this machine may
# have no uuid, and then nothing goes to a journal. False where that cannot be: DIR is a plain one
# then.
own_ext4() {
  mkdir -p "$1" && [ -n "${HAS_OWN_MOUNTS:-}" ] && truncate -s 64M "$SCRATCH/ext4.image" &&
    mkfs.ext4 -q "${@:2}" "$SCRATCH/ext4.image" 2>/dev/null &&
    mount -o loop "$SCRATCH/ext4.image" "$1"
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

# until_true [SECONDS] COMMAND...: as soon as the command is; false when it has been waited for 30 s
# or so many. The time that the command itself takes does not count.
until_true() {
  local tries=600
  case $1 in [0-9]*) tries=$(($1 * 20)) && shift ;; esac
  until "$@" >/dev/null 2>&1; do
    [ $((tries -= 1)) -gt 0 ] || return 1
    sleep 0.05
  done
}

# Two ordinary users, $ann and $bob, who reach the build and $SCRATCH/data/file: `as UID COMMAND`.
ann=64001 bob=64002
as() {
  local uid=$1
  shift
  setpriv --reuid="$uid" --regid="$uid" --clear-groups env HOME=/ "$@"
}
two_users() {
  need setpriv
  [ "$(id -u)" = 0 ] || skip "needs root"
  chmod 755 "$SCRATCH"
  mkdir -p "$SCRATCH/data"
  chmod 777 "$SCRATCH/data"
  printf x >"$SCRATCH/data/file"
  as $ann test -x "$SLUICE" -a -r "$SLUICE_LIB" -a -r "$SCRATCH/data/file" ||
    skip "other users cannot reach the build"
}
