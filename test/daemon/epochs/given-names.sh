#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each call that gives a name like a manifest's passes a gate, once.
set -u
. test/daemon/epochs/manifests.bash
cat >"$SCRATCH/p.py" <<'END'
import ctypes, os, platform, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mkdtemp.restype = ctypes.c_char_p
here = os.open(".", os.O_RDONLY)
mknodat = {"x86_64": 259, "aarch64": 33}.get(platform.machine())
def made(result):
    assert result not in (-1, None), os.strerror(ctypes.get_errno())
calls = {
    "open": lambda name: os.close(os.open(name, os.O_CREAT | os.O_WRONLY)),
    "mkdir": os.mkdir,
    "mkdirat": lambda name: os.mkdir(name, dir_fd=here),
    "symlink": lambda name: os.symlink("new", name),
    "link": lambda name: os.link("new", name),
    "rename": lambda name: os.rename("new", name),
    "mkfifo": os.mkfifo,
    "mkfifoat": lambda name: os.mkfifo(name, dir_fd=here),
    "mknod": lambda name: os.mknod(name, stat.S_IFREG | 0o600),
    "mknodat": lambda name: os.mknod(name, stat.S_IFREG | 0o600, dir_fd=here),
    "mkdtemp": lambda name: made(
        libc.mkdtemp(ctypes.create_string_buffer(name.encode() + b"XXXXXX"))),
    "syscall": lambda name: made(libc.syscall(mknodat, here, name.encode(), 0o100600, 0)),
}
if sys.argv[1] == "list":
    print("\n".join(call for call in calls if call != "syscall" or mknodat))
    sys.exit(0)
open("new", "w").close()
calls[sys.argv[1]](f"MANIFEST-{sys.argv[1]}-")
END
cd "$SCRATCH/data" || fail 'no folder'
for call in $(python3 "$SCRATCH/p.py" list); do
  "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --no-summary --policy "$SCRATCH/policy.json" \
    --report "$SCRATCH/report" -- python3 "$SCRATCH/p.py" "$call" 2>"$SCRATCH/err" ||
    fail "$call: $(cat "$SCRATCH/err")"
  [ "$(json "$SCRATCH/report" 'd["after"]["opened"]')" = 1 ] ||
    fail "$call: $(cat "$SCRATCH/report")"
done
exit 0
