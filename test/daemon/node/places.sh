#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon looks at no path that a user names: `sluice run` says where its targets lie. So nobody
# learns what lies in another's folder, and who lies about a place lies about his own job alone.
set -u
. test/lib/site.bash
two_users
need python3
mkdir -m 755 "$SCRATCH"/{n1,trees,site,bobs}
mkdir -m 700 "$SCRATCH/bobs/private"
mkdir "$SCRATCH/bobs/private/there"
chown -R "$bob" "$SCRATCH/bobs"
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/site", "capacity": {"metadata": "600/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"default_class": "gold"}}
END
start n1 --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n1"
run() { # UID LIMIT
  as "$1" timeout 60 "$SLUICE" --run-dir "$SCRATCH/n1" run -q --limit "$2" -- printenv LD_PRELOAD \
    >"$SCRATCH/out" 2>&1
}
is_served() { # by the daemon, and without a word
  [ "$(wc -l <"$SCRATCH/out")" = 1 ] && grep -q "^$SCRATCH/n1/jobs/" "$SCRATCH/out"
}
ask() { # UID REQUEST
  as "$1" timeout 60 /usr/bin/python3 - "$SCRATCH/n1/sluiced.sock" "$2" <<'P'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(sys.argv[2].encode())
print(s.recv(1 << 17).decode())
P
}
place() { # TARGET PATH [INODE]
  echo "{\"target\":\"$1\",\"path\":\"$2\",\"device\":7,\"inode\":${3:-2}," \
    '"mount_id":0,"identity":0}'
}
# As `sluice run` does, it asks again where jobs that are over have to go first (status 69).
join() { # UID JOB LIMIT [PLACES]
  local said="$SCRATCH/joined"
  answered() {
    ask "$1" "{\"verb\":\"join\",\"job\":\"$2\",\"limits\":[\"$3\"],\"places\":[${4:-}]}" >"$said"
    ! grep -q '"status":69' "$said"
  }
  until_true 60 answered "$@" || fail "no room in the end: $(cat "$said")"
  cat "$said"
}

# Sixty directories, of two users: a user may have 32 jobs.
for i in {1..30}; do
  for who in $ann $bob; do
    mkdir -m 755 "$SCRATCH/trees/$who-$i"
    run "$who" "open=100/s@$SCRATCH/trees/$who-$i" || fail "refused: $i $(cat "$SCRATCH/out")"
    is_served || fail "$i: $(cat "$SCRATCH/out")"
  done
done
# A directory below the current one, and a target of the policy by its name.
cd "$SCRATCH/trees" || exit 1
run $ann "open=100/s@$ann-1" || fail "relative: $(cat "$SCRATCH/out")"
cd "$top" || exit 1
run $ann "open=100/s@scratch" || fail "by name: $(cat "$SCRATCH/out")"
is_served || fail "by name: $(cat "$SCRATCH/out")"

# What lies in another's folder: the client has no more rights than its user.
run $ann "open=1/s@$SCRATCH/bobs/private/there" && fail 'looked into a private folder'
grep -q 'Permission denied' "$SCRATCH/out" || fail "private: $(cat "$SCRATCH/out")"
# Nor does the daemon say anything of it, whether a place is told or not.
same() { # told, or nothing: no place
  for name in there none; do
    join "$ann" probe "open=1/s@$SCRATCH/bobs/private/$name" \
      "${1:+$(place "$SCRATCH/bobs/private/$name" "$SCRATCH/bobs/private/$name")}" |
      sed "s/private\/$name/private\/X/g; s/\"created\":[a-z]*//" >"$SCRATCH/said.$name"
    until_true 60 gone probe
  done
  cmp -s "$SCRATCH/said.there" "$SCRATCH/said.none" ||
    fail "it tells: $(cat "$SCRATCH/said.there" "$SCRATCH/said.none")"
}
gone() { [ ! -e "$SCRATCH/n1/jobs/$ann@$1" ]; }
same ''
grep -q 'does not say where' "$SCRATCH/said.there" || fail "no place: $(cat "$SCRATCH/said.there")"
same told
grep -q '"segment"' "$SCRATCH/said.there" || fail "a place: $(cat "$SCRATCH/said.there")"

# Fields are checked.
for wrong in '7' '{"target":"/x"}' "$(place /x relative)" "$(place /x /a/../b)" "$(place /x /a/)" \
  "$(place /x /a -1)" "$(place /x /a 1.5)" "$(place /x /a '"2"')"; do
  join $ann wrong 'open=1/s@/x' "$wrong" >"$SCRATCH/out"
  grep -q '"status":2' "$SCRATCH/out" || fail "taken: $wrong: $(cat "$SCRATCH/out")"
done

# Who lies about the policy's directory is not believed, and nobody else's job knows of it.
inode=$(stat -c %i "$SCRATCH/site")
join $ann liar "open=1/s@$SCRATCH/site" "$(place "$SCRATCH/site" /elsewhere)" >"$SCRATCH/out"
grep -q '"segment"' "$SCRATCH/out" || fail "liar: $(cat "$SCRATCH/out")"
ask $bob '{"verb":"join","job":"honest"}' >"$SCRATCH/out"
grep -q '"segment"' "$SCRATCH/out" || fail "honest: $(cat "$SCRATCH/out")"
has() { grep -qaF -- "$2" "$1"; }
for folder in "$ann@liar" "$bob@honest"; do
  has "$SCRATCH/n1/jobs/$folder/segment" "$SCRATCH/site" || fail "$folder: not the policy's place"
  has "$SCRATCH/n1/jobs/$folder/segment" /elsewhere && fail "$folder: the lie is believed"
  grep -q 'metadata@scratch' "$SCRATCH/n1/jobs/$folder/job.json" || fail "$folder: not metered"
done
has_inode() { python3 -c 'import struct, sys
sys.exit(struct.pack("<Q", int(sys.argv[2])) not in open(sys.argv[1], "rb").read())' "$@"; }
has_inode "$SCRATCH/n1/jobs/$bob@honest/segment" "$inode" || fail "another inode"
exit 0
