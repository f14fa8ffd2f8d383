# SPDX-License-Identifier: Apache-2.0
# Memory of a user's that never comes: a file of a FUSE whose server is stopped. A call that reads
# or writes it goes on holding what it holds. Sourced after $SCRATCH, $ann and until_true are there.
need python3 bindfs
mkdir -m 755 "$SCRATCH"/{real,hung}
head -c 65536 /dev/zero >"$SCRATCH/real/memory"
chmod 666 "$SCRATCH/real/memory"
bindfs -f -o attr_timeout=0,entry_timeout=0 "$SCRATCH/real" "$SCRATCH/hung" \
  >"$SCRATCH/bindfs.log" 2>&1 &
server=$!
memory_comes() { kill -CONT "$server"; }
end_memory() { # and her processes of this test: others have the same uids
  memory_comes
  pkill -9 -u "$ann" -f "$SCRATCH/"
  umount -l "$SCRATCH/hung"
}
trap 'end_memory; rm -rf "$SCRATCH"' EXIT
until_true 20 test -e "$SCRATCH/hung/memory" || skip "no FUSE here: $(cat "$SCRATCH/bindfs.log")"

memory_is_mapped() {
  holder=$(pgrep -u "$ann" -f "$SCRATCH/hold.py") && grep -q hung/memory "/proc/$holder/maps"
}
# CALL FILE: ann runs $SCRATCH/hold.py FILE MEMORY READY, which maps MEMORY, waits until READY is
# gone, and then holds FILE in a call that the kernel names CALL.
hold() {
  touch "$SCRATCH/ready"
  as "$ann" python3 "$SCRATCH/hold.py" "$2" "$SCRATCH/hung/memory" "$SCRATCH/ready" &
  until_true 20 memory_is_mapped || fail 'nothing is mapped'
  kill -STOP "$server"
  rm "$SCRATCH/ready"
  until_true 20 grep -q "$1" "/proc/$holder/stack" ||
    fail "it holds nothing: $(cat "/proc/$holder/stack")"
}
