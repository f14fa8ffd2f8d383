#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Manual pages are clean and know every setting, every key of a policy and every algorithm; the
# units are accepted, and that of a node has no mount namespace; the table of metrics is fresh.
set -u
. test/lib/site.bash
cd "$top" || fail "no top"

if command -v mandoc >/dev/null; then
  mandoc -T lint daemon/*/*.[1-8] 2>&1 |
    grep -vE 'referenced manual not found|mandoc.db' >"$SCRATCH/lint"
  [ ! -s "$SCRATCH/lint" ] || fail "manual pages: $(cat "$SCRATCH/lint")"
fi
for key in $(sed -n 's/^SETTING(\([a-z_]*\),.*/\1/p' daemon/runtime/settings.def | tr _ -); do
  grep -q "^\.It Fl -$key" daemon/sluiced/sluiced.8 || fail "sluiced.8 does not know --$key"
done
for word in $(sed -n 's/^ALGORITHM([a-z0-9_]*, *"\([^"]*\)".*/\1/p' policies/algorithms.def) \
  targets path cost capacity classes reservation weight limit priority channels control nodes \
  cycle lease escrow floor pool_owner orphans default_class enforce access algorithm order; do
  grep -qE "^\.(It Cm|Ss) $word( |\$)|^\.Cm $word\b" daemon/sluiced/sluice-policy.5 ||
    fail "sluice-policy.5 does not know $word"
done

page=daemon/administration.md
scripts/metrics-table | diff - <(sed -n '/^<!-- metrics -->$/,/^<!-- end -->$/p' $page |
  sed '1d;$d') || fail "daemon/administration.md: run scripts/metrics-table --fix"

for name in $(sed -n 's/^METRIC(\([a-z_]*\),.*/\1/p' daemon/runtime/metrics.def); do
  twin=$(sed -E 's/(bytes|vops)_per_second$/operations_per_second/
    s/(bytes|vops)_total$/operations_total/
    s/^waiting_(bytes|vops)$/waiting_operations/' <<<"$name")
  grep -rq --include='*.cc' "metric::$name\b" daemon ||
    grep -rq --include='*.cc' "in_unit(metric::$twin\b" daemon || fail "nobody sets sluice_$name"
done

namespaced='Protect(System|Home|Kernel|ControlGroups|Proc)|ProcSubset|Private(Tmp|Devices|Users)'
namespaced+='|PrivateMounts|(ReadWrite|ReadOnly|Inaccessible|Bind)Paths|TemporaryFileSystem'
namespaced+='|RootDirectory|DynamicUser'
grep -nE "^($namespaced)" daemon/systemd/sluiced-node.service &&
  fail "a unit of the node has a mount namespace"
grep -nE '^SystemCallFilter=$' daemon/systemd/* && fail 'a unit or drop-in clears a filter'
for flag in $("$(dirname "$SLUICED")/sluice-order" serve --help | grep -oE '^  --[a-z-]+'); do
  [ "$flag" = --help ] || grep -q "^\.It Fl -${flag#--}" daemon/journal/sluice-order.8 ||
    fail "sluice-order.8 does not know $flag"
done
# same_capabilities TABLES UNITS…: of privileges.cc, and what the units together leave.
same_capabilities() {
  local tables=$1 kept named
  shift
  kept=$(cat "${@/#/daemon/systemd/}" | sed -n 's/^CapabilityBoundingSet=//p' |
    tr 'A-Z ' 'a-z\n' | sort -u)
  named=$(for table in $tables; do
    sed -n "/ $table\[\]/,/;\$/p" daemon/runtime/privileges.cc
  done | grep -o '"cap_[a-z_]*"' | tr -d '"' | sort -u)
  [ "$kept" = "$named" ] || fail "$*: $kept, the daemon keeps $named"
  [ -n "$named" ] || fail "no $tables"
}
same_capabilities 'of_a_node of_a_watcher' sluiced-node.service
same_capabilities of_a_log sluiced-node.service sluiced-node-journal.conf
if command -v systemd-analyze >/dev/null; then
  for unit in daemon/systemd/*.{service,mount}; do
    sed "s#@[a-z]*dir@#$(dirname "$SLUICED")#" "$unit" >"$SCRATCH/${unit##*/}"
  done
  systemd-analyze verify "$SCRATCH"/*.{service,mount} 2>&1 |
    grep -v "Command 'man " >"$SCRATCH/verify"
  [ ! -s "$SCRATCH/verify" ] || fail "units: $(cat "$SCRATCH/verify")"
fi

# bound UNIT KEY: what the unit says, which the guide has too.
bound() {
  local value
  value=$(sed -n "s/^$2=//p" "daemon/systemd/$1.service")
  [ -n "$value" ] || fail "$1 has no $2"
  grep -qE "^\|.*\`$1\`.*\| $value \|" $page || fail "$page: $2 of $1 is $value"
  echo "${value%\%}"
}
for unit in daemon/systemd/*.service; do
  name=$(basename "$unit" .service)
  memory=$(bound "$name" MemoryMax) && bound "$name" TasksMax >/dev/null || exit 1
done
files=$(sed -n 's/^Options=.*size=\([0-9]*\)%.*/\1/p' daemon/systemd/run-sluice-jobs.mount)
memory=$(bound sluiced-node MemoryMax)
[ "$memory" -gt "$files" ] || fail "files of jobs may take $files %, the daemon only $memory %"
