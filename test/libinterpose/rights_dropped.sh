#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that give up their rights can no longer open the job's library. What they start prints
# what it prints natively: the loader has nothing to complain about, whoever starts it.
. test/libinterpose/common.bash

[ "$(id -u)" = 0 ] || skip 'needs root'
need setpriv
python=/usr/bin/python3
[ -x $python ] || skip "needs $python"

same() { # WHAT COMMAND...: natively and in a job
  local natively in_a_job
  natively=$("${@:2}" 2>&1) || fail "$1: natively: $natively"
  in_a_job=$(limited metadata=1000000/s "${@:2}" 2>&1) || fail "$1: in a job: $in_a_job"
  [ "$natively" = "$in_a_job" ] || fail "$1: $in_a_job, natively $natively"
}

drop='import os; n = [65534] * 3; os.setgroups([]); os.setresgid(*n); os.setresuid(*n)'
same exec setpriv --reuid=65534 --regid=65534 --clear-groups cat /etc/hostname
counted 1 1 passthrough other_user calls
same system $python -c "$drop; os.system('id -u; id -g')"
same popen $python -c "import ctypes; $drop
libc = ctypes.CDLL(None)
libc.popen.restype = ctypes.c_void_p
libc.pclose(ctypes.c_void_p(libc.popen(b'exec 2>&1; id -u', b'w')))"
same spawn $python -c "$drop; os.waitpid(os.posix_spawn('/usr/bin/id', ['id'], os.environ), 0)"

# Landlock lets a library be looked for, and not be opened.
landlock='import ctypes, os, struct, sys
c = ctypes.CDLL(None, use_errno=True)
def call(*a):
    r = c.syscall(*a)
    if r < 0: sys.exit(77)
    return r
r = 4 | 1  # execute and read files
rules = call(444, struct.pack("Q", r), 8, 0)
for d in ("/usr", "/lib", "/lib64", "/etc", "/bin", "/dev", "/proc"):
    at = os.open(d, os.O_PATH)
    call(445, rules, 1, struct.pack("=Qi", r, at), 0)
c.prctl(38, 1, 0, 0, 0)
call(446, rules, 0)
'
"$python" -c "$landlock" || [ $? -eq 77 ] || fail 'landlock, natively'
if "$python" -c "$landlock"; then
  same 'landlock, system' $python -c "${landlock}os.system('cat /etc/hostname; true')"
  same 'landlock, exec' $python -c \
    "${landlock}os.execl('/bin/sh', 'sh', '-c', 'cat /etc/hostname; true')"
  # Root needs no promise for it.
  [ "$(id -u)" != 0 ] || same 'landlock, by root' $python -c \
    "${landlock/c.prctl(38, 1, 0, 0, 0)/}os.execl('/bin/sh', 'sh', '-c', 'cat /etc/hostname; true')"
fi
exit 0
