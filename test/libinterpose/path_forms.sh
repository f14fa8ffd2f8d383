#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names lead to the target, or not, by relative paths, directory descriptors, dots and links.
. test/libinterpose/common.bash

mkdir -p "$DIR/t/d" "$DIR/out" "$DIR/tt"
for f in t/d/file out/file tt/file; do echo x >"$DIR/$f"; done
ln -s ../t/d "$DIR/out/in"
ln -s ../out "$DIR/t/away"
ln -s ../t/d/file "$DIR/out/shortcut"
bad=
try() {  # OP WANTED FORM…
  local op=$1 wanted=$2 form n
  shift 2
  for form in "$@"; do
    limited "$op=5000/s@$DIR/t" "$PROGRAMS/path_forms" "$form" "$DIR" 40 || fail "$form: $?"
    n=$(count channel "$op@$DIR/t" calls)
    [ "$n" = "$wanted" ] || bad="$bad $form:$n(not $wanted)"
  done
}
try stat 40 absolute slashes dotdot_in cwd cwd_dotdot fchdir dirfd dirfd_dotdot dirfd_absolute \
  o_path dirfd_dup
try stat 0 outside prefix dotdot_out cwd_leaves
try read 40 link_in file_link_in cwd_by_link
try read 0 link_out
[ -z "$bad" ] || fail "stats or reads on the target:$bad"
