# SPDX-License-Identifier: Apache-2.0
# An experiment in its short form, whose aims have to hold: experiment NAME. Two tries: a machine
# that is busy with other things stops programs and daemons for longer than they control. A test
# that needs this "starves", and is run again when the others have ended.
. test/lib/lib.sh

experiment() {
  local try left status
  need python3
  [ -x "$(dirname "$SLUICE")/sluice-replay" ] || skip "needs sluice-replay"
  mkdir "$SCRATCH/called-here" "$SCRATCH/results"
  for try in 1 2; do
    (cd "$SCRATCH/called-here" && TMPDIR="$SCRATCH/results" \
      "$top/scripts/experiments/$1" --short --check)
    status=$?
    mv "$SCRATCH"/results/sluice-results-*/"$1".{json,svg} "$SCRATCH/"
    left=$(ls -A "$SCRATCH/called-here")
    [ -z "$left" ] || fail "$1 left in the directory where it was called: $left"
    [ $status = 0 ] && break
    [ -s "$SCRATCH/$1.json" ] || fail "$1 did not come to its end"
    echo "try $try missed an aim; load average $(cut -d' ' -f1 /proc/loadavg)"
    [ "$try" = 1 ] && mv "$SCRATCH/$1.json" "$SCRATCH/$1.first.json" && continue
    fail "$1 missed an aim twice"
  done
  python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$SCRATCH/$1.svg" ||
    fail "$1.svg is no XML"
  grep -qE 'href|url\(|src=' "$SCRATCH/$1.svg" && fail "$1.svg asks for other files"
  left=$(find "$SCRATCH" -mindepth 1 -maxdepth 1 -name 'sluice-*')
  [ -z "$left" ] || fail "$1 left $(find "$left" | head -n 5)"
}
