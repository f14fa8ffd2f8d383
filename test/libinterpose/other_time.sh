#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs in a time namespace of their own, whose clock is years before or after ours, end with
# their output, and hold up nobody: they pass, and that is counted. Its maker passes from then on.
. test/libinterpose/common.bash

need unshare
unshare -T true 2>/dev/null || skip 'no time namespace for us here'
for i in $(seq 40); do echo "$i" >"$DIR/n$i"; done
cat "$DIR"/n? "$DIR"/n?? >"$SCRATCH/expected"
for offset in 100000000 -1; do
  [ "$offset" = -1 ] && offset=-$(($(cut -d. -f1 /proc/uptime) - 1))
  limited "open=100/s" sh -c "unshare -T --monotonic $offset --fork cat $DIR/n? $DIR/n??
    exec cat $DIR/n1" >"$SCRATCH/out" || fail "$offset: $?"
  cat "$DIR/n1" | cat "$SCRATCH/expected" - | cmp - "$SCRATCH/out" || fail "$offset: other output"
  counted 1 1000 passthrough sandboxed calls
done
