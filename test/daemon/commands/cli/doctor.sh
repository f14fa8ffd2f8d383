#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# doctor: says which programs cannot be limited and why; run warns once and runs them anyway.
set -u
. test/lib/lib.sh
S="$SLUICE --run-dir $SCRATCH/run"
need gcc
kind() {
  "$SLUICE" --json doctor "$1" >"$SCRATCH/d.json"
  json "$SCRATCH/d.json" 'd["kind"] + " " + str(d["limited"])'
}
echo 'int main(void) { return 4; }' >"$SCRATCH/m.c"
is() { # WANTED FILE
  local got
  got=$(kind "$2")
  [ "$got" = "$1" ] || fail "$2 is \"$got\", wanted \"$1\""
}
runs() { # FILE STATUS
  $S run -- "$1" 2>"$SCRATCH/err"
  local got=$?
  [ $got = "$2" ] || fail "$1 ended with $got: $(cat "$SCRATCH/err")"
  [ "$(grep -c 'will not be limited' "$SCRATCH/err")" = 1 ] ||
    fail "$1: not one warning: $(cat "$SCRATCH/err")"
  [ "$(wc -l <"$SCRATCH/err")" = 1 ] || fail "$1: more than one line: $(cat "$SCRATCH/err")"
}
gcc -o "$SCRATCH/dynamic" "$SCRATCH/m.c" || fail "gcc"
is 'dynamic True' "$SCRATCH/dynamic"
gcc -static -o "$SCRATCH/static" "$SCRATCH/m.c" && is 'static False' "$SCRATCH/static" &&
  runs "$SCRATCH/static" 4
gcc -static-pie -o "$SCRATCH/static-pie" "$SCRATCH/m.c" &&
  is 'static-pie False' "$SCRATCH/static-pie"
if command -v musl-gcc >/dev/null; then
  musl-gcc -o "$SCRATCH/musl" "$SCRATCH/m.c" && is 'musl False' "$SCRATCH/musl" &&
    runs "$SCRATCH/musl" 4
fi
printf '#!%s\n' "$SCRATCH/dynamic" >"$SCRATCH/script"
printf '#!/usr/bin/env -S %s\n' "$SCRATCH/static" >"$SCRATCH/by-env"
printf 'exit 0\n' >"$SCRATCH/text"
head -c 100 "$SCRATCH/dynamic" >"$SCRATCH/cut"
printf '#!%s\n' "$SCRATCH/circle" >"$SCRATCH/circle"
chmod +x "$SCRATCH"/{script,by-env,text,cut,circle}
is 'dynamic True' "$SCRATCH/script"
is 'static False' "$SCRATCH/by-env"
is 'not a program True' "$SCRATCH/text"
is 'not a program False' "$SCRATCH/circle"
is 'static-pie False' "$SCRATCH/cut"
cp "$SCRATCH/dynamic" "$SCRATCH/foreign"
printf '\267\0' | dd of="$SCRATCH/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
is 'foreign False' "$SCRATCH/foreign"
if [ "$(id -u)" = 0 ]; then
  cp "$SCRATCH/dynamic" "$SCRATCH/setuid"
  chown 1 "$SCRATCH/setuid" && chmod u+s "$SCRATCH/setuid" && is 'setuid False' "$SCRATCH/setuid"
fi
if command -v go >/dev/null; then is 'go False' "$(command -v go)"; fi
"$SLUICE" doctor "$SCRATCH/dynamic" >/dev/null || fail "status of a good program"
"$SLUICE" doctor no-such-program 2>/dev/null
[ $? = 127 ] || fail "status of a missing program"
mkdir "$SCRATCH/"$'beep\a\e]0;title\a' || fail "mkdir"
"$SLUICE" doctor "$SCRATCH"/beep* >"$SCRATCH/out"
grep -q "^$SCRATCH/beep??\]0;title?\$" "$SCRATCH/out" || fail "$(cat -v "$SCRATCH/out")"
