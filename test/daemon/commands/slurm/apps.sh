#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other people's programs as jobs on the shared file system, bare and under a class that limits
# them: they say the same, and the report of the job names what they waited for. TensorFlow and the
# sources of a C project come from the network with FULL=1, and are kept in SLUICE_CACHE.
# timeout: 900
set -u
. test/daemon/commands/slurm/site.bash
need python3 git mpicc mpirun javac gcc make
cache=${SLUICE_CACHE:-/var/tmp/sluice-cache}
apps=$top/test/daemon/commands/slurm/apps

fetch() {
  mkdir -p "$cache"
  if [ ! -x "$cache/tensorflow/bin/python" ]; then
    echo 'fetching TensorFlow'
    rm -rf "$cache/.tensorflow"
    /usr/bin/python3 -m venv "$cache/.tensorflow" &&
      "$cache/.tensorflow/bin/pip" -q install --timeout 20 tensorflow-cpu >"$SCRATCH/pip" 2>&1 &&
      mv "$cache/.tensorflow" "$cache/tensorflow" || tail -n 2 "$SCRATCH/pip"
  fi
  if ! ls "$cache"/lua*.orig.tar.* >/dev/null 2>&1; then
    mkdir -p "$SCRATCH/apt/lists/partial"
    apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' \
      'Identifier: Packages' | grep -m1 "$(. /etc/os-release && echo "$VERSION_CODENAME") main" \
      >"$SCRATCH/apt/sources.list"
    from="-qq -o Dir::Etc::SourceList=$SCRATCH/apt/sources.list -o Dir::Etc::SourceParts=-
      -o Dir::State::Lists=$SCRATCH/apt/lists"
    (cd "$cache" && apt-get $from update && apt-get $from source --download-only lua5.4) \
      >"$SCRATCH/apt/log" 2>&1 || tail -n 2 "$SCRATCH/apt/log"
  fi
}

if [ -z "${SLUICE_SITE:-}" ]; then
  [ -z "${FULL:-}" ] || fetch
  cat >"$SCRATCH/policy.json" <<'P'
{"targets": {"scratch": {"path": "/mnt/scratch", "capacity": {"metadata": "2k/s"}}},
 "classes": {"silver": {"scratch": {"metadata": {"limit": "250/s"}}}}}
P
fi
site --policy "$SCRATCH/policy.json"

# ---- what is run ----
cp "$apps"/* /mnt/home/ && chmod 644 /mnt/home/*.* && cd /mnt/home || fail cp
mpicc -O1 -o ranks ranks.c 2>"$SCRATCH/log" || fail "mpicc: $(cat "$SCRATCH/log")"
javac -d . Tree.java || fail javac
as_owner() { setpriv --reuid 20001 --regid 20001 --clear-groups env HOME=/mnt/home/ann "$@"; }
project=
if ls "$cache"/lua*.orig.tar.* >/dev/null 2>&1; then
  mkdir -p /mnt/home/lua && tar -C /mnt/home/lua --strip-components=1 -xf "$cache"/lua*.orig.tar.*
  chown -R 20001:20001 lua # git asks who owns it
  (cd lua && as_owner git init -q && as_owner git add -A &&
    as_owner git -c user.name=x -c user.email=x@x commit -qm x) || fail 'git'
  project=lua
fi
declare -A cmd=(
  [loader]='/usr/bin/python3 /mnt/home/loader.py DIR'
  [mpi]='mpirun --oversubscribe --mca plm isolated --mca ras ^slurm --mca btl self,vader
    --mca oob_tcp_if_include lo --host localhost:4 -n 4 /mnt/home/ranks DIR'
  [java]='java -Xshare:off -cp /mnt/home Tree DIR'
  [git]="git clone -q --no-local /mnt/home/$project DIR/src &&
    make -s -j4 -C DIR/src/src linux MYCFLAGS=-w >DIR/log 2>&1 &&
    git -C DIR/src status --short | wc -l &&
    DIR/src/src/lua -e 'print(_VERSION, string.rep(\"x\", 3))' && md5sum <DIR/src/src/lua"
  [tensorflow]="$cache/tensorflow/bin/python /mnt/home/train.py DIR 2>DIR/log"
)
order='loader mpi java'
[ -z "$project" ] && echo 'without a C project: FULL=1 fetches it' || order="$order git"
[ -x "$cache/tensorflow/bin/python" ] && order="$order tensorflow" ||
  echo 'without TensorFlow: FULL=1 fetches it'

# run NAME WHICH SBATCH-OPTIONS…: the output of the job; its number is in $id.
run() {
  local dir=/mnt/scratch/$2-$1 which=$2
  local line=${cmd[$1]//DIR/$dir}
  as ann mkdir "$dir" || fail "mkdir $dir"
  printf '#!/bin/bash\nset -e\n%s\necho complete\n' "${line//$'\n'/ }" >"/mnt/home/ann/$1.sh"
  shift 2
  id=$(as ann sbatch --parsable -w n0 -n4 -o "out.$which" "$@" "${dir##*-}.sh") || fail 'sbatch'
  for _ in $(seq 240); do
    job_is_over "$id" && break
    sleep 0.5
  done
  job_is_over "$id" || fail "${dir##*-}: job $id does not end"
}

for app in $order; do
  run "$app" bare
  wanted=$(cat /mnt/home/ann/out.bare)
  has "$wanted" complete "$app, bare"
  lacks "$wanted" 'sluice:' "$app, bare"
  # On a busy machine a step does not wait for the daemon, and runs unmetered: right, and once more.
  for _ in 1 2 3; do
    rm -rf "/mnt/scratch/metered-$app"
    begin=$SECONDS
    run "$app" metered --io-class=silver
    took=$((SECONDS - begin))
    out=$(grep -v '^sluice: ' /mnt/home/ann/out.metered)
    [ "$out" = "$wanted" ] || fail "$app: $out, bare: $wanted"
    "$sandbox" -n n0 exec grep -q 'waited [1-9]' "/run/sluice/results/$id.json" && break
  done

  # The node keeps the result; the controller has the last hour.
  node=$("$sandbox" -n n0 -u ann exec "$SLUICE" report --job "$id") || fail "$app: $node"
  has "$node" "$id" "$app: report of the node"
  has "$node" scratch "$app: report of the node"
  grep -qE '(open|openat|stat|newfstatat|mkdir|rename|unlink)' <<<"$node" || fail "$app: $node"
  cluster=$(as ann sluice report --job "$id") || fail "$app: $cluster"
  has "$cluster" scratch "$app: report of the controller"
  as bob sluice report --job "$id" >"$SCRATCH/bob" 2>&1 && fail "$app: bob sees ann's job"
  "$sandbox" -n n0 -u bob exec "$SLUICE" report --job "$id" >"$SCRATCH/bob" 2>&1 &&
    fail "$app: bob sees ann's result"
  [ -z "${SHOW:-}" ] || printf '%s\n' "$node" "$cluster"
  echo "$app: $wanted ($took s) $(grep '^sluice: job' /mnt/home/ann/out.metered)"
done
[ "$(sinfo -h -N -o %T | sort -u)" = idle ] || fail "nodes: $(sinfo -h -N -o '%N %T')"
