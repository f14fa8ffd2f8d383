#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# beside
# CPython's own tests pass, fail and skip exactly as without the library. FULL=1 for more.
# SMALL=strict or SMALL=reads: below that instead of limits, with an eager build (test/README.md).
# timeout: 1800
. test/guests/common
python=/usr/bin/python3.11
[ -x $python ] || skip "needs $python"
$python -c 'import test.test_os, test.libregrtest' 2>/dev/null ||
  skip 'needs libpython3.11-testsuite'
tests='test_os test_posix test_subprocess test_tempfile test_glob test_fileio'
# Tests that take seconds and say nothing about files.
slow='-i *NoPoll* -i *test_no_leaking* -i *test_double_close* -i *threadsafe_wait*
  -i *test_leaking_fds* -i *timeout* -i *urandom* -i *getrandom*'
# Looks at names with up to 40 links, the kernel's limit. A walk that has to begin anew, because
# somebody changed a directory meanwhile, counts its links twice: ELOOP, without us as well.
ignore='-i *test_selflink*'
if [ -n "${FULL:-}" ]; then
  tests="$tests test_io test_file test_mmap test_shutil test_select test_signal test_fork1"
  tests="$tests test_eintr"
else
  ignore="$ignore $slow"
fi
if [ -n "${SMALL:-}" ]; then
  tests="$tests test_io test_file test_bufio test_univnewlines test_largefile test_shutil test_mmap
    test_zipfile test_gzip test_dbm test_dbm_dumb test_shelve test_mailbox test_pathlib
    test_fileinput"
fi
set -f

# suite NAME COMMAND...: writes NAME.result, one line per test with its verdict.
suite() {
  local name=$1
  shift
  mkdir -p "$SCRATCH/$name"
  (cd "$SCRATCH/$name" && TMPDIR=$SCRATCH/$name "$@" $python -B -m test -v \
    --junit-xml "$SCRATCH/$name.xml" --tempdir "$SCRATCH/$name" $ignore $tests \
    >"$SCRATCH/$name.out" 2>&1 </dev/null)
  echo $? >"$SCRATCH/$name.status"
  # Not from what it prints: other threads write between a name and its verdict.
  python3 - "$SCRATCH/$name.xml" <<'END' | sort -u >"$SCRATCH/$name.result"
import sys
import xml.etree.ElementTree as xml
for case in xml.parse(sys.argv[1]).iter("testcase"):
    verdict = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    print(case.get("name"), case.get("result"), verdict[0] if verdict else "ok")
END
}

suite bare env -u LD_PRELOAD &
if [ -n "${SMALL:-}" ]; then
  suite gated limited --small "$SMALL@/" --
else
  suite gated limited --limit metadata=30000/s --limit mkdir=100/s --
fi
wait
counted=$(wc -l <"$SCRATCH/bare.result")
[ "$counted" -ge 100 ] || fail "only $counted bare tests: $(tail -n 5 "$SCRATCH/bare.out")"
grep -Ec ' (failure|error)$' "$SCRATCH/bare.result" | sed 's/$/ of the bare tests fail here/'
if ! diff "$SCRATCH/bare.result" "$SCRATCH/gated.result" >"$SCRATCH/diff"; then
  cat "$SCRATCH/diff"
  grep -A 25 -E '^(FAIL|ERROR): ' "$SCRATCH/gated.out" | head -n 80
  fail 'verdicts differ'
fi
[ "$(cat "$SCRATCH/bare.status")" = "$(cat "$SCRATCH/gated.status")" ] || fail 'the statuses differ'
if [ -n "${SMALL:-}" ]; then
  asked='sum((d.get(k) or {}).get("leases", 0) for k in ("buffered", "gathered"))'
  met=$(json "$SCRATCH/report" "$asked")
  [ "$met" -gt 500 ] || fail "only $met leases were asked for: is the build eager?"
else
  delayed
fi
echo "$counted tests, the same verdicts"
