#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job whose programs bring an older C library than the one the stage was built with: they run
# and are metered, those that load libdl or libpthread as those that do not. The user land is the
# Debian release before this one, from the mirror that apt uses here; it is fetched once.
# timeout: 300
. test/lib/lib.sh
own_mounts
. test/libinterpose/common.bash

SUITE=bullseye  # glibc 2.31
packages='libc6 coreutils libselinux1 libpcre2-8-0 libacl1 libattr1 libgmp10'
packages+=' perl-base libcrypt1 dash'
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs root, for mounts and chroot'
need apt-get dpkg-deb chroot
[ -e $keys ] || skip "needs $keys"
store=${BUILD:-$top/build}/old-libc/$SUITE

# An apt of its own: nothing of the machine's is read but the address of the mirror.
own_apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$store/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State="$store/state" -o Dir::State::status="$store/status" \
    -o Dir::Cache="$store/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=30 "$@" >"$SCRATCH/apt" 2>&1 ||
    skip "apt-get $1 from $mirror: $(tail -n 1 "$SCRATCH/apt")"
}

fetch() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' |
    awk -v name="$codename" '$1 == name && $2 == "main" { print $3; exit }')
  [ -n "$mirror" ] || skip 'apt here knows no mirror of Debian'
  rm -rf "$store"
  mkdir -p "$store/state/lists/partial" "$store/cache/archives/partial" "$store/debs" "$store/new"
  : >"$store/status"
  echo "deb [signed-by=$keys] $mirror $SUITE main" >"$store/sources.list"
  own_apt update
  (cd "$store/debs" && own_apt download $packages) || exit
  for package in "$store"/debs/*.deb; do
    dpkg-deb -x "$package" "$store/new" || fail "cannot unpack $package"
  done
  mv "$store/new" "$store/root"
}

[ -d "$store/root" ] || fetch
root=$SCRATCH/root
mkdir "$root"
mount --bind "$store/root" "$root"
# Everything of the test lies in the root under the name it has outside.
mkdir -p "$root"/{tmp,proc,dev}
mount -t tmpfs none "$root/tmp"
mount -t proc proc "$root/proc"
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
for shown in "$SCRATCH" "$(dirname "$(realpath "$SLUICE_LIB")")"; do
  mkdir -p "$root$shown"
  mount --rbind "$shown" "$root$shown"
done

export LC_ALL=C
old() { limited 'open=1000/s,read=1000/s' chroot "$root" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" ||
  { cat "$SCRATCH/err"; fail "status $?: $*"; }; }
quiet() { grep -v '^sluice: ' "$SCRATCH/err" && fail "$1: something was printed"; }

seq 20000 >"$DIR/text"
# Neither libdl nor libpthread: there is no dlsym in this program.
old /bin/cat "$DIR/text"
cmp "$DIR/text" "$SCRATCH/out" || fail 'cat: its output changed'
quiet cat
counted 1 10 call open calls
counted 2 10 call read calls
counted 108894 200000 call read bytes

old /bin/ls -l "$DIR"
quiet ls
grep -q text "$SCRATCH/out" || fail 'ls lists nothing'
counted 1 5 call opendir calls

# perl has its own look at files, and starts programs.
old /usr/bin/perl -e 'open my $f, "<", shift or die; my $n = () = <$f>; print "$n lines\n";
  print `/bin/cat @ARGV`' "$DIR/text" "$DIR/text"
quiet perl
head -n 1 "$SCRATCH/out" | grep -qx '20000 lines' || fail 'perl read something else'
[ "$(wc -l <"$SCRATCH/out")" = 20001 ] || fail "perl's child wrote something else"
counted 217788 500000 call read bytes

old /bin/sh -c 'i=0; while [ $i -lt 5 ]; do read line <"$1"; i=$((i + 1)); done; echo $line' sh \
  "$DIR/text"
quiet sh
[ "$(cat "$SCRATCH/out")" = 1 ] || fail 'the shell read something else'
counted 5 15 channel open calls
