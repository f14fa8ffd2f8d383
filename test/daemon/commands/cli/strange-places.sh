#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Root, or one user, writes results where another user may write too: nothing of anybody's is
# overwritten, no mode of a stranger's file is taken over, and a replay works in its own directory
# whatever has its name.
set -u
. test/lib/lib.sh
need python3
need strace
need setfacl
two_users
umask 022
sticky=$SCRATCH/sticky his=$SCRATCH/his
mkdir -m 1777 "$sticky"
mkdir -m 755 "$his"
chown $bob "$his"
"$SLUICE" --run-dir "$SCRATCH/run" run -q --report "$SCRATCH/r.json" -- true || fail "run: $?"
report() { "$SLUICE" report "$SCRATCH/r.json" -o "$1" 2>"$SCRATCH/err"; }
about() { stat -c '%u %a' "$1"; }

# His file is replaced by root's: with root's mode, and nothing special.
as $bob sh -c "echo x >'$sticky/p.html' && chmod 4777 '$sticky/p.html'"
report "$sticky/p.html" || fail "report: $(cat "$SCRATCH/err")"
[ "$(about "$sticky/p.html")" = '0 644' ] || fail "his mode: $(about "$sticky/p.html")"
# One's own keeps its mode, but for special bits.
chmod 4640 "$sticky/p.html"
report "$sticky/p.html" || fail "report: $(cat "$SCRATCH/err")"
[ "$(about "$sticky/p.html")" = '0 640' ] || fail "own mode: $(about "$sticky/p.html")"

# His link leads root nowhere, here or further on; root's own does.
echo secret >"$SCRATCH/secret"
as $bob ln -s "$SCRATCH/secret" "$sticky/l.html"
ln -s "$sticky/l.html" "$SCRATCH/to-his.html"
for link in "$sticky/l.html" "$SCRATCH/to-his.html"; do
  report "$link"
  [ $? = 2 ] || fail "followed: $link"
  grep -q 'symbolic link' "$SCRATCH/err" || fail "$link: $(cat "$SCRATCH/err")"
done
as $ann "$SLUICE" report "$SCRATCH/r.json" -o "$sticky/l.html" 2>/dev/null && fail 'ann followed'
[ "$(cat "$SCRATCH/secret")" = secret ] || fail 'his link was followed'
ln -s "$SCRATCH/own.html" "$sticky/own.html"
report "$sticky/own.html" || fail "own link: $(cat "$SCRATCH/err")"
[ -L "$sticky/own.html" ] && grep -q '<html' "$SCRATCH/own.html" || fail 'own link'
report /dev/stdout >"$SCRATCH/out" && grep -q '<html' "$SCRATCH/out" || fail '/dev/stdout'
# Nor on the way: a directory that his link leads to is not hers to write in.
mkdir -m 700 "$SCRATCH/hers"
chown $ann "$SCRATCH/hers"
as $ann sh -c "echo precious >'$SCRATCH/hers/t.html'"
as $bob ln -s "$SCRATCH/hers" "$sticky/out"
as $ann "$SLUICE" report "$SCRATCH/r.json" -o "$sticky/out/t.html" 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'symbolic link of another' "$SCRATCH/err" ||
  fail "a link on the way: $(cat "$SCRATCH/err")"
as $ann "$SLUICE" --no-daemon --run-dir "$SCRATCH/hers/run" run -q --order "durable@$SCRATCH/hers" \
  --order-journal "$sticky/out/j.log" -- true 2>"$SCRATCH/err"
[ $? != 0 ] && grep -q 'symbolic link of another' "$SCRATCH/err" ||
  fail "a journal beyond a link: $(cat "$SCRATCH/err")"
[ "$(cd "$SCRATCH/hers" && echo *.*)" = t.html ] && grep -q precious "$SCRATCH/hers/t.html" ||
  fail 'his link on the way was followed'
as $ann ln -s "$SCRATCH/hers" "$sticky/her-own"
as $ann "$SLUICE" report "$SCRATCH/r.json" -o "$sticky//./her-own/../hers/new.html" ||
  fail 'her own link on the way'
[ -s "$SCRATCH/hers/new.html" ] || fail 'not beyond her own link'
report "$SCRATCH/own.html/" && fail 'a slash at the end'

# Nor is a pipe of his waited for; an own one is.
as $bob mkfifo "$sticky/f.html" "$his/f.html"
for pipe in "$sticky/f.html" "$his/f.html"; do
  timeout 60 "$SLUICE" report "$SCRATCH/r.json" -o "$pipe" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "his pipe: $?"
  grep -q 'pipe of another user' "$SCRATCH/err" || fail "his pipe: $(cat "$SCRATCH/err")"
done
mkfifo "$SCRATCH/own-pipe"
cat "$SCRATCH/own-pipe" >"$SCRATCH/out" &
report "$SCRATCH/own-pipe" || fail "own pipe: $(cat "$SCRATCH/err")"
wait $!
grep -q '<html' "$SCRATCH/out" || fail 'own pipe'

# Group and list of the old file stay, where the file system has lists, and a long name is a name.
touch "$SCRATCH/kept.html"
chmod 640 "$SCRATCH/kept.html"
chgrp $ann "$SCRATCH/kept.html"
setfacl -m "u:$bob:rw,g::---" "$SCRATCH/kept.html"
lists() { getfacl -nc "$1" 2>/dev/null; }
before=$(stat -c %g "$SCRATCH/kept.html" && lists "$SCRATCH/kept.html")
report "$SCRATCH/kept.html" || fail "report: $(cat "$SCRATCH/err")"
after=$(stat -c %g "$SCRATCH/kept.html" && lists "$SCRATCH/kept.html")
[ "$before" = "$after" ] || fail "was: $before, is: $after"
# Nor does a list of the directory open what had none.
mkdir "$SCRATCH/listed"
echo old >"$SCRATCH/listed/plain.html"
chmod 640 "$SCRATCH/listed/plain.html"
setfacl -d -m "u:$bob:rw,m::rwx" "$SCRATCH/listed"
report "$SCRATCH/listed/plain.html" || fail "report: $(cat "$SCRATCH/err")"
lists "$SCRATCH/listed/plain.html" | grep -q "$bob" &&
  fail "it has the list of its directory: $(lists "$SCRATCH/listed/plain.html")"
[ "$(stat -c %a "$SCRATCH/listed/plain.html")" = 640 ] || fail 'another mode'
# In a sticky directory of a group its members may be strangers, too.
mkdir "$SCRATCH/team"
chgrp $bob "$SCRATCH/team" && chmod 1770 "$SCRATCH/team"
as $bob ln -s "$SCRATCH/secret" "$SCRATCH/team/l.html"
report "$SCRATCH/team/l.html" && fail 'a link of a member was followed'
[ "$(cat "$SCRATCH/secret")" = secret ] || fail 'a link of a member was followed'
long=$(printf 'a%.0s' $(seq 250))
report "$SCRATCH/$long" || fail "a long name: $(cat "$SCRATCH/err")"

# The file beside is opened once: what comes to have its name later is not written.
strace -f -o "$SCRATCH/trace" -e trace=openat,open,creat \
  "$SLUICE" report "$SCRATCH/r.json" -o "$his/x.html" || fail "report: $?"
[ "$(grep -c '"[^"]*x\.html' "$SCRATCH/trace")" = 1 ] || fail "$(grep 'x\.html' "$SCRATCH/trace")"
grep -q 'x\.html.*O_EXCL' "$SCRATCH/trace" || fail "$(grep 'x\.html' "$SCRATCH/trace")"

# What comes to have the name after it was looked at gives the new file no list, and is no pipe to
# write to. The second look is held up while root's file and bob's change places.
mkdir -m 777 "$SCRATCH/both"
cd "$SCRATCH/both" || exit 1
held_up() { # NAME, then how the report is to end
  as $bob mv "$1" was && as $bob mv evil "$1" && as $bob mv was evil
  wait "$reporter"
  status=$?
  [ $status = "$2" ] || fail "$1: status $status: $(cat "$SCRATCH/err")"
}
begin_held_up() { # NAME
  timeout 60 strace -f -o "$SCRATCH/trace" -P "$1" -e trace=openat,newfstatat \
    -e inject=openat:delay_enter=1500000 \
    "$SLUICE" report "$SCRATCH/r.json" -o "$1" 2>"$SCRATCH/err" &
  reporter=$!
}
is_looked_at() { grep -q newfstatat "$SCRATCH/trace" 2>/dev/null; }
as $bob sh -c "echo x >evil && setfacl -m u:$bob:rw evil"
echo old >r.html
chmod 660 r.html
begin_held_up r.html
until_true 30 is_looked_at || fail "no look: $(cat "$SCRATCH/trace")"
held_up r.html 0
getfacl -cn r.html 2>/dev/null | grep -q "user:$bob" && fail "his list: $(getfacl -cn r.html)"
rm -f evil r.html "$SCRATCH/trace"
as $bob mkfifo evil
mkfifo p
begin_held_up p
until_true 30 is_looked_at || fail "no look: $(cat "$SCRATCH/trace")"
held_up p 2
cd "$top" || exit 1

# A replay below his directory is refused, and so below one in which everybody may rename: he could
# have it empty another one. In an own one it does not work where another came to have its name.
cat >"$SCRATCH/t.csv" <<'T'
time,job,read_bytes,write_bytes
0,a,4096,4096
1,a,4096,4096
T
mine=$SCRATCH/mine
mkdir -m 755 "$mine"
mkdir -m 777 "$SCRATCH/everybodys"
for place in "$his" "$SCRATCH/everybodys"; do
  timeout 60 "$SLUICE" replay "$SCRATCH/t.csv" --target "$place" -q 2>"$SCRATCH/err"
  [ $? = 2 ] && grep -q 'may rename' "$SCRATCH/err" || fail "$place: $(cat "$SCRATCH/err")"
  timeout 60 "$SLUICE" calibrate "$place" -o "$SCRATCH/c.json" --short -q --only op/stat \
    2>"$SCRATCH/err"
  [ $? = 2 ] && grep -q 'may rename' "$SCRATCH/err" || fail "$place: $(cat "$SCRATCH/err")"
  [ -z "$(ls -A "$SCRATCH/everybodys")" ] || fail "left: $(ls -A "$SCRATCH/everybodys")"
done
# In a user namespace every stranger seems to be one user, and so does root: neither is believed.
if as $ann unshare -Ur true 2>/dev/null; then
  mkdir "$SCRATCH/bobs"
  chown $bob "$SCRATCH/bobs"
  chmod 1777 "$SCRATCH/bobs"
  inside() { as $ann env HOME=/ unshare -Ur timeout 60 "$SLUICE" "$@" 2>"$SCRATCH/err"; }
  inside report "$SCRATCH/r.json" -o "$sticky/l.html"
  [ $? = 2 ] && grep -q 'symbolic link' "$SCRATCH/err" || fail "inside: $(cat "$SCRATCH/err")"
  inside replay "$SCRATCH/t.csv" --target "$SCRATCH/bobs" -q
  [ $? = 2 ] && grep -q 'may rename' "$SCRATCH/err" || fail "inside: $(cat "$SCRATCH/err")"
  inside --run-dir "$SCRATCH/bobs/run" --no-daemon run -q --limit open=1k/s -- true
  grep -q 'lies below' "$SCRATCH/err" || fail "inside, run: $(cat "$SCRATCH/err")"
  [ "$(cat "$SCRATCH/secret")" = secret ] || fail 'his link was followed in a namespace'
fi
cat >"$SCRATCH/swap" <<T
#!/bin/sh
cd '$mine' && mv sluice-replay.???????? moved && mkdir -p evil/j0/w0 &&
  ln -s '$SCRATCH/secret' evil/j0/w0/own && ln -s '$SCRATCH/secret' evil/j0/data &&
  mv evil "\$(cat '$SCRATCH/name')"
exec "\$@"
T
sed -i "s|^cd '$mine'|& \&\& ls -d sluice-replay.???????? >'$SCRATCH/name'|" "$SCRATCH/swap"
chmod 755 "$SCRATCH/swap"
timeout 60 "$SLUICE" replay "$SCRATCH/t.csv" --target "$mine" --duration 1s --file-size 1MiB \
  --wrap "$SCRATCH/swap" >"$SCRATCH/out" 2>&1
[ $? = 125 ] || fail "replay: $(cat "$SCRATCH/out")"
grep -q 'put another directory' "$SCRATCH/out" || fail "replay: $(cat "$SCRATCH/out")"
[ "$(cat "$SCRATCH/secret")" = secret ] || fail 'the replay wrote through a link'
exit 0
