#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A user may mount a FUSE over the name of a file of his job, for the file is his, and stop its
# server. The daemon never asks there, cuts back what he lets grow below it, and serves the others.
# The memory of attributes that he gives his file goes as well, or is not the others'.
set -u
. test/lib/node.bash
own_mounts
two_users
. test/lib/hung_memory.bash
cp /bin/sleep "$SCRATCH/nap"
cp /bin/sleep "$SCRATCH/doze"
over() {
  umount -l "$segment" "$paths" "$order" 2>/dev/null
  end_memory
  end_node
  umount -l "$RUN/jobs"
  rm -rf "$SCRATCH"
}
segment= paths= order=
trap over EXIT
start_small_node 64M
of_bob() { # JOB: it is metered
  as "$bob" timeout 60 "$SLUICE" --run-dir "$RUN" run --job "$1" --no-summary -- true \
    2>"$SCRATCH/err" || fail "bob, $1: $(cat "$SCRATCH/err")"
  grep -q . "$SCRATCH/err" && return 1
  return 0
}
used_kib() { df -k --output=used "$RUN/jobs" | tail -n 1; }
is_small() { [ "$(used_kib)" -lt 30000 ]; }

as "$ann" "$SLUICE" --run-dir "$RUN" run --job hers --paths --no-summary -- \
  "$SCRATCH/nap" 1000 &
segment="$RUN/jobs/$ann@hers/segment"
paths="$RUN/jobs/$ann@hers/paths"
until_true 20 test -e "$paths" || fail 'no job'
cat >"$SCRATCH/grow.py" <<'END'
"""FILE READY: fills its file system from FILE, opened before, whenever READY is there."""
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)
try:
    for i in range(20):
        os.setxattr(file, f"user.x{i}", b"x" * 60000)
except OSError:
    pass  # a kernel without attributes on tmpfs
print("open", flush=True)
while True:
    if os.path.exists(sys.argv[2]):
        try:
            while True:
                os.write(file, b"x" * 65536)
        except OSError:
            print("full", flush=True)
            while os.path.exists(sys.argv[2]):
                time.sleep(0.02)
            print("anew", flush=True)
    time.sleep(0.02)
END
as "$ann" "$python" "$SCRATCH/grow.py" "$segment" "$SCRATCH/ready" >"$SCRATCH/grown" &
until_true 20 grep -q open "$SCRATCH/grown" || fail 'not opened'
attributes() { "$python" -c 'import os, sys; print(len(os.listxattr(sys.argv[1])))' "$segment"; }
no_attributes() { [ "$(attributes)" = 0 ]; }
until_true 60 no_attributes || fail "$(attributes) attributes stay"

# A second job of hers lives when the next daemon starts, which asks whether it has this area.
as "$ann" "$SLUICE" --run-dir "$RUN" run --job other --no-summary -- "$SCRATCH/doze" 1000 &
order="$RUN/jobs/$ann@other/order"
until_true 20 test -e "${order%order}segment" || fail 'no other job'
install -o "$ann" /dev/null "$order"
# It has more attributes than the kernel lists. They take no room from others.
as "$ann" "$python" - "${order%order}segment" <<'END' || fail "attributes: $?"
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
try:
    for i in range(700):
        os.setxattr(file, f"user.{i:0250}", b"x" * 60000)
except OSError as e:
    sys.exit(0 if i == 0 else str(e))  # a kernel without attributes on tmpfs
END
of_bob none || fail "bob has no room: $(cat "$SCRATCH/err")"

for name in "$segment" "$paths" "$order"; do mount --bind "$SCRATCH/hung/memory" "$name"; done
kill -STOP "$server"
full() { [ "$(grep -c full "$SCRATCH/grown")" -ge "$1" ]; }
touch "$SCRATCH/ready"
until_true 20 full 1 || fail 'it does not grow'
until_true 60 is_small || fail "it is not cut back: $(used_kib) KiB, $(cat "$SCRATCH/log")"
as "$ann" timeout 30 "$SLUICE" --run-dir "$RUN" run --job hers --paths --no-summary -- true \
  2>"$SCRATCH/her"
of_bob one || fail "bob is not metered: $(cat "$SCRATCH/err")"

# Her job is over, and she goes on. Also below the next daemon.
pkill -u "$ann" -f "^$SCRATCH/nap"
gone() { compgen -G "$RUN/jobs/.gone-$ann@hers*" >/dev/null; }
until_true 60 gone || fail "her job stays: $(ls -A "$RUN/jobs")"
grows_anew() { [ "$(grep -c anew "$SCRATCH/grown")" -ge "$(grep -c full "$SCRATCH/grown")" ]; }
again() { # N
  rm "$SCRATCH/ready"
  until_true 20 grows_anew || fail 'she does not look'
  touch "$SCRATCH/ready"
  until_true 20 full "$1" || fail "it does not grow again"
  until_true 60 is_small || fail "it is not cut back, $1: $(used_kib) KiB, $(cat "$SCRATCH/log")"
}
again 2
of_bob two || fail "bob is not metered: $(cat "$SCRATCH/err")"
kill_node
rm -f "$RUN/sluiced.sock"
start_node
grep -q "job taken over.*@other" "$SCRATCH/log" || fail "not taken over: $(cat "$SCRATCH/log")"
again 3
of_bob three || fail "bob is not metered: $(cat "$SCRATCH/err")"

# What covers it goes, and she ends: so does the folder.
pkill -9 -u "$ann" -f "$SCRATCH/grow.py"
covered="$(compgen -G "$RUN/jobs/.gone-$ann@hers*")"
memory_comes
for name in segment paths; do
  umount -l "$covered/$name" || fail "nothing covers $covered/$name"
done
away() { ! gone; }
until_true 60 away || fail "it is not cleared away: $(ls -lAR "$RUN/jobs") $(cat "$SCRATCH/log")"
exit 0
