#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian packages: clean for lintian; the guide's commands work as written, from installation to
# purge; an upgrade while a job runs; removed they leave configuration, purged nothing but a user.
# timeout: 2400
set -u
[ "$(id -u)" = 0 ] || { echo 'needs root, for a chroot'; exit 77; }
. test/packages/root.bash
need debootstrap dpkg-buildpackage lintian unshare nsenter setpriv ip python3

old=$SCRATCH/old new=$SCRATCH/new
"$top/scripts/packaging/build" deb --compiled "${BUILD:-$top/build}" --out "$old" >/dev/null ||
  fail 'make deb'
version=$(dpkg-deb -f "$old"/sluice-client_*.deb Version)
mkdir "$new"
for deb in "$old"/*.deb; do # the next version differs in its number
  rm -rf "$SCRATCH/deb"
  dpkg-deb -R "$deb" "$SCRATCH/deb" &&
    sed -i "/^Version:/s/$version/&+1/; /^Depends:/s/(= $version)/(= $version+1)/g" \
      "$SCRATCH/deb/DEBIAN/control" &&
    dpkg-deb -Znone -b "$SCRATCH/deb" "$new" >/dev/null || fail "the next version of $deb"
done

lintian --allow-root --fail-on error,warning "$old"/*.changes >"$SCRATCH/lintian" 2>&1 ||
  fail "lintian: $(cat "$SCRATCH/lintian")"

make_root "$old" slurm-client curl
printf 'ClusterName=c\nSlurmctldHost=ctl1\nNodeName=n1\nPartitionName=p Nodes=n1\n' \
  >"$root/etc/slurm/slurm.conf"
files() {
  on ctl1 find / -xdev '(' -path /proc -o -path /dev -o -path /tmp -o -path /root -o -path \
    /scratch -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log ')' -prune -o \
    -printf '%p %U:%G %m\n' |
    grep -vE '^/etc/(passwd|group|shadow|gshadow|subuid|subgid)-? |^/run ' | sort
  on ctl1 find /run -printf '%p %U:%G %m\n' | sort
}
files >"$SCRATCH/before"

# ---- day one, as the guide has it ----
cp "$old"/*.deb "$root/root/"
guide 'Day one: the controller'
grep -q sluice "$root/etc/passwd" || fail 'no user sluice'
guide 'Day one: nodes and login nodes'
grep -qw n1 "$SCRATCH/said" || on ctl1 sluice --run-dir /run/sluice-cluster top --nodes --batch \
  -n 1 | grep -qw n1 || fail "the controller does not see n1: $(cat "$SCRATCH/said")"
guide 'Day one: Slurm'
check_modes '^/'
on n1 /usr/lib/sluice/sluice-order serve --help | grep -q -- --journal-mib || fail 'no sluice-order'
[ -L "$root/etc/systemd/system/multi-user.target.wants/sluiced-node.service" ] ||
  fail 'sluiced-node was not enabled'
find "$root/usr" -perm /6000 -printf '%P\n' | grep sluice && fail 'something is setuid'

# ---- enforced; a job that is limited ----
guide 'A week later: enforce'
on n1 sh -c 'for i in 1 2 3; do echo $i >/scratch/f$i; done'
on n1 sluice run --class silver --job long --limit open=20/s -- sh -c \
  'until [ -e /scratch/stop ]; do [ "$(cat /scratch/f1)" = 1 ] || exit 1; done; echo right' \
  >"$SCRATCH/long" 2>&1 &
long=$!
seen() { on n1 sluice --json jobs | grep -q '"job": "long"'; }
for _ in $(seq 50); do seen && break; sleep 0.1; done
seen || fail "the job is not known: $(on n1 sluice jobs)"

# ---- upgrade while it runs; what was changed stays ----
echo '# ours' >>"$root/etc/slurm/plugstack.conf.d/sluice.conf"
keys=$(md5sum <"$root/etc/sluice/keys/secret")
rm -f "$root"/root/*.deb
cp "$new"/*.deb "$root/root/"
on n1 sh -c 'apt-get -qq install /root/*.deb' >"$SCRATCH/log" 2>&1 ||
  fail "upgrade: $(tail -n 5 "$SCRATCH/log")"
[ "$(on n1 dpkg-query -W -f '${Version}' sluice-node)" = "$version+1" ] || fail 'not upgraded'
for unit in sluiced-cluster sluiced-node; do # systemd does it where it is
  on n1 systemctl stop $unit && on n1 systemctl start $unit || fail "restart of $unit"
done
grep -q '# ours' "$root/etc/slurm/plugstack.conf.d/sluice.conf" || fail 'a changed file was lost'
[ "$keys" = "$(md5sum <"$root/etc/sluice/keys/secret")" ] || fail 'keys were lost'
for _ in $(seq 50); do seen && break; sleep 0.1; done
seen || fail "the job was lost: $(on n1 sluice jobs)"
on n1 touch /scratch/stop
wait $long || fail "the job failed: $(cat "$SCRATCH/long")"
[ "$(cat "$SCRATCH/long")" = right ] || fail "the job said: $(cat "$SCRATCH/long")"
check_modes '^/'

# ---- removed: configuration stays, and serves again ----
on n1 systemctl stop sluiced-node
on ctl1 systemctl stop sluiced-cluster
on n1 sh -c "apt-get -qq remove 'sluice-*'" >"$SCRATCH/log" 2>&1 || fail 'remove'
for gone in /usr/bin/sluice /usr/sbin/sluiced /usr/lib/sluice \
  /lib/systemd/system/sluiced-node.service; do
  [ ! -e "$root$gone" ] || fail "$gone is still there"
done
for kept in keys/secret node.json cluster.json policy.json; do
  [ -e "$root/etc/sluice/$kept" ] || fail "$kept did not stay"
done
on n1 sh -c 'apt-get -qq install /root/*.deb' >"$SCRATCH/log" 2>&1 || fail 'installed again'
on ctl1 systemctl start sluiced-cluster && on n1 systemctl start sluiced-node || fail 'again'
on n1 sluice run --class silver -- cat /scratch/f2 | grep -qx 2 || fail 'again: no job'
on n1 systemctl stop sluiced-node
on ctl1 systemctl stop sluiced-cluster

# ---- purged ----
guide 'Rollback'
on n1 srun --help 2>&1 | grep -qiE 'io-class|sluice' && fail "srun still knows us"
files >"$SCRATCH/after"
diff "$SCRATCH/before" "$SCRATCH/after" >"$SCRATCH/diff" || fail "left: $(cat "$SCRATCH/diff")"
grep -q '^sluice:' "$root/etc/passwd" || fail 'the guide says that the user stays'
on n1 dpkg -l 'sluice*' 2>/dev/null | grep -E '^(rc|ii)' && fail 'dpkg remembers packages'
exit 0
