#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A library after ours may change what is written and read. Nothing may pass it by, so nothing waits
# and nothing is read ahead in its programs.
. test/lib/lib.sh
. test/libinterpose/small/runs.bash
need python3

cat >"$SCRATCH/records.py" <<'P'
import os, sys
def opened(flags):
    f = os.open(sys.argv[1], flags, 0o600)
    os.dup2(f, 9)
    os.close(f)
opened(os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for i in range(20000): assert os.write(9, b"%07d\n" % i) == 8
opened(os.O_RDONLY)
for i in range(20000): assert os.read(9, 8) == b"%07d\n" % i, i
os.close(9)
P
records=(sh -c "LD_PRELOAD=\$LD_PRELOAD:$PROGRAMS/cipher exec \"\$@\"" sh
  python3 "$SCRATCH/records.py")
"${records[@]}" "$DIR/bare" || fail "bare: status $?"
cmp -s <(seq -f %07.0f 0 19999) "$DIR/bare" && fail 'it is no cipher'
for word in close-to-open strict reads; do
  mkdir "$DIR/$word"
  below $word "$DIR/$word" "${records[@]}" "$DIR/$word/f" || fail "$word: status $?"
  cmp "$DIR/bare" "$DIR/$word/f" || fail "$word: other bytes"
  of=gathered
  [ $word = reads ] && of=buffered
  json "$report" "d['$of']['why_none']" | grep -q 'of its own' ||
    fail "$word: $(json "$report" "d['$of']")"
done
exit 0
