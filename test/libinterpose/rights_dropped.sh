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
same system $python -c "$drop; os.system('id -u; id -g')"
same popen $python -c "import ctypes; $drop
libc = ctypes.CDLL(None)
libc.popen.restype = ctypes.c_void_p
libc.pclose(ctypes.c_void_p(libc.popen(b'exec 2>&1; id -u', b'w')))"
same spawn $python -c "$drop; os.waitpid(os.posix_spawn('/usr/bin/id', ['id'], os.environ), 0)"
exit 0
