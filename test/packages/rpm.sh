#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The RPMs are built, installed into an empty root, upgraded and erased there; the command and the
# library from it work. Their scripts are parsed only: there is no distribution with RPM here.
# timeout: 1800
set -u
[ "$(id -u)" = 0 ] || { echo 'needs root'; exit 77; }
. test/lib/lib.sh
need rpmbuild rpm
build() {
  "$top/scripts/packaging/build" rpm --out "$SCRATCH/$1" --version "$2" --compiled \
    "${BUILD:-$top/build}" >/dev/null || fail "make rpm $2"
}
build old 0.1.0
build new 0.1.1
root=$SCRATCH/root
mkdir -p "$root"
rpm_db() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }
rpm_in() { rpm_db --nodeps --noscripts "$@"; }
rpm_db --initdb || fail 'rpm --initdb'

binary() { find "$SCRATCH/$1" -name '*.rpm' ! -name '*.src.rpm'; }
[ "$(binary old | wc -l)" = 6 ] || fail "packages: $(binary old)"
find "$SCRATCH/old" -name '*.src.rpm' | grep -q . || fail 'no source package'
for package in $(binary old); do
  rpm -qp --scripts "$package" | sed -n '/scriptlet/!p' >"$SCRATCH/scripts"
  sh -n "$SCRATCH/scripts" || fail "scripts of $package"
done
rpm_in -i $(binary old) || fail 'install'
for file in usr/bin/sluice usr/sbin/sluiced usr/lib/sluice/libinterpose.so \
  usr/lib/systemd/system/sluiced-node.service \
  usr/lib/systemd/system/run-sluice-jobs.mount \
  usr/lib/sluice/sluice-order usr/share/man/man8/sluice-order.8.gz \
  etc/slurm/plugstack.conf.d/sluice.conf \
  usr/share/man/man1/sluice.1.gz usr/share/doc/sluice/administration.md; do
  ls "$root/$file"* >/dev/null 2>&1 || [ -e "${root}/${file%.gz}" ] || fail "$file is not there"
done
find "$root" -name sluice_spank.so -path '*/slurm/*' | grep -q . || fail 'no plugin'
grep -rl "@[a-z]*dir@\|$top" "$root/usr/lib/systemd" && fail 'units name a place of the build'
out=$("$root/usr/bin/sluice" --no-daemon --run-dir "$SCRATCH/run" run --limit open=100/s -- echo hi)
[ "$out" = hi ] || fail "sluice run: $out"

echo '# ours' >>"$root/etc/slurm/plugstack.conf.d/sluice.conf"
rpm_in -U $(binary new) || fail 'upgrade'
[ "$(rpm_db -q sluice-node --qf '%{VERSION}')" = 0.1.1 ] || fail 'not upgraded'
grep -q ours "$root/etc/slurm/plugstack.conf.d/sluice.conf" || fail 'a changed file was lost'
rpm_in -e $(rpm_db -qa 'sluice*') || fail 'erase'
[ -z "$(find "$root/usr" "$root/etc/sluice" -type f 2>/dev/null)" ] ||
  fail "left: $(find "$root/usr" -type f)"
