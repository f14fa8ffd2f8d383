# SPDX-License-Identifier: Apache-2.0
# A Debian of its own for the tests of packages: a chroot in namespaces, without a network, where
# a small systemctl starts what units say. `make_root` needs the network once; what it made is kept
# in SLUICE_CACHE. The guide's commands are run from its text: `guide SECTION`.

. test/lib/lib.sh
cache=${SLUICE_CACHE:-/var/tmp/sluice-cache}
root=$SCRATCH/root
holder=

end_root() {
  [ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null
  [ -z "$holder" ] || wait "$holder" 2>/dev/null
  rm -rf --one-file-system "$SCRATCH"
}

# The archive that this machine's own apt uses.
mirror() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Identifier: Packages' |
    awk -v name="$1" '$2 == name && $3 == "main" { print $1; exit }'
}

outside() { # in the chroot, with the network of this machine
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# make_root DEBS EXTRA…: with all that the packages depend on, but not with them.
make_root() {
  local debs=$1 name archive key wanted
  shift
  name=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  archive=$(mirror "$name")
  [ -n "$archive" ] || skip "no archive of $name among apt's sources"
  key=$({ for deb in "$debs"/*.deb; do dpkg-deb -f "$deb" Depends; done; echo "$name $*"; } |
    sed 's/sluice[a-z-]* ([^)]*)//g' | md5sum | cut -c1-12)
  mkdir -p "$cache" "$root"
  if [ ! -e "$cache/root-$key.tar" ]; then
    debootstrap --variant=minbase "$name" "$root" "$archive" >"$SCRATCH/log" 2>&1 ||
      skip "debootstrap: $(grep -E '^[EW]:' "$SCRATCH/log" | tail -n 1)"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/90test"
    echo 'APT::Install-Recommends "false";' >>"$root/etc/apt/apt.conf.d/90test"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    outside apt-get -qq update >"$SCRATCH/log" 2>&1 || skip "apt-get: $(tail -n 1 "$SCRATCH/log")"
    outside apt-get -qq install systemd-standalone-sysusers "$@" >"$SCRATCH/log" 2>&1 ||
      fail "apt-get: $(tail -n 5 "$SCRATCH/log")"
    cp "$debs"/*.deb "$root/root/"
    wanted=$(outside sh -c 'apt-get -s install /root/*.deb' | awk '$1 == "Inst" { print $2 }' |
      grep -v ^sluice) || fail "nothing to depend on"
    outside apt-get -qq install $wanted >"$SCRATCH/log" 2>&1 ||
      fail "apt-get: $(tail -n 5 "$SCRATCH/log")"
    rm -f "$root"/root/*.deb
    tar -C "$root" -cf "$cache/.root.$$" . && mv "$cache/.root.$$" "$cache/root-$key.tar"
  else
    tar -C "$root" -xf "$cache/root-$key.tar"
  fi
  furnish
  trap end_root EXIT
  unshare --net --pid --fork --kill-child --mount --uts --propagation private sh -c '
    ip link set lo up
    mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/scratch"
    mount -t tmpfs -o mode=755 tmpfs "$1/run" && mount -t devtmpfs dev "$1/dev" 2>/dev/null
    echo ready >"$1/scratch/.ready"; : >"$1.ready"
    exec sleep infinity' sh "$root" &
  holder=$!
  for _ in $(seq 100); do
    [ ! -e "$root.ready" ] || return 0
    sleep 0.1
  done
  fail 'no namespaces'
}

furnish() {
  mkdir -p "$root/scratch"
  echo '127.0.0.1 localhost ctl1 n1 login1' >"$root/etc/hosts"
  printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$root/usr/local/bin/ssh"
  cat >"$root/usr/local/bin/systemctl" <<'S'
#!/bin/sh
# start, stop, reload UNIT: the parts of a unit that a daemon notices.
unit=/lib/systemd/system/$2.service
pid=/tmp/$2.pid
get() { sed -n "s/^$1=//p" "$unit"; }
case $1 in
  start)
    [ -e "$(get ConditionPathExists)" ] || exit 0
    user=$(get User)
    for kind in Runtime:/run State:/var/lib; do
      name=$(get "${kind%%:*}Directory")
      install -d -m "$(get "${kind%%:*}DirectoryMode")" -o "${user:-root}" -g "${user:-root}" \
        "${kind#*:}/$name"
    done
    umask "$(get UMask)"
    set -- $(get ExecStart)
    [ -z "$user" ] || set -- setpriv --reuid "$user" --regid "$user" --init-groups \
      --inh-caps=-all --no-new-privs "$@"
    setsid "$@" </dev/null >>"$pid.log" 2>&1 &
    echo $! >"$pid"
    for i in $(seq 100); do
      [ ! -S "/run/$(get RuntimeDirectory)/sluiced.sock" ] || exit 0
      sleep 0.1
    done
    cat "$pid.log" >&2
    exit 1 ;;
  reload) kill -HUP "$(cat "$pid")" ;;
  stop)
    kill "$(cat "$pid")"
    while readlink "/proc/$(cat "$pid")/exe" >/dev/null; do sleep 0.1; done # nobody reaps here
    rm -f "/run/$(get RuntimeDirectory)/sluiced.sock" ;;
esac
S
  chmod 755 "$root"/usr/local/bin/*
}

# on HOST CMD…
on() {
  local host=$1 inner
  shift
  inner=$(cat "/proc/$holder/task/$holder/children")
  nsenter -t "${inner%% *}" -n -p -m -u sh -c '
    hostname "$1"; root=$2; shift 2
    exec chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
      LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c "cd /root && exec \"\$@\"" sh "$@"' \
    sh "$host" "$root" "$@"
}

# guide SECTION: the fenced commands of that section, each on its host; what they print is kept.
guide() {
  local block host at
  awk -v wanted="## $1" -v to="$SCRATCH/block" '
    /^## / { inside = $0 == wanted }
    inside && /^ *```sh / { ++n; host = $2; open = 1; match($0, /^ */); pad = RLENGTH
      printf "" >(to "." n "." host); next }
    /^ *```$/ { open = 0 }
    open { print substr($0, pad + 1) >(to "." n "." host) }' "$top/daemon/administration.md"
  ls "$SCRATCH"/block.* >/dev/null 2>&1 || fail "the guide has no commands in \"$1\""
  for at in $(ls "$SCRATCH"/block.* | sort -t . -k 2 -n); do
    block=${at##*/}
    host=${block##*.}
    cp "$at" "$root/root/.block"
    on "$host" sh -ex /root/.block >"$SCRATCH/said" 2>&1 ||
      fail "the guide, \"$1\", on $host: $(tail -n 12 "$SCRATCH/said")"
    rm -f "$at" "$root/root/.block"
  done
}

# The table of files in the guide against what is there: FILTER chooses rows.
check_modes() {
  local path owner mode rows=0
  while IFS='|' read -r _ path owner mode _; do
    path=$(tr -d '` ' <<<"$path")
    [[ $path =~ $1 ]] || continue
    ((++rows))
    on ctl1 stat -c '%U:%G %a' "$path" >"$SCRATCH/stat" 2>&1 || fail "$(cat "$SCRATCH/stat")"
    [ "$(cat "$SCRATCH/stat")" = "$(echo $owner $mode)" ] ||
      fail "$path is $(cat "$SCRATCH/stat"), the guide says $owner $mode"
  done < <(sed -n '/^## Files/,/^## Without/p' "$top/daemon/administration.md" | grep '^| `')
  [ $rows -gt 0 ] || fail "no row of the guide's table is $1"
}
