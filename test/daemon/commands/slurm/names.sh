#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of the scheduler may have any name, also one that is no UTF-8. The plugin announces it as
# JSON that everybody can read. A daemon takes what an older plugin announces, which is none.
set -u
. test/lib/node.bash
need cc
[ "$(id -u)" = 0 ] || skip "needs root"
policy 500/s
cat >"$SCRATCH/main.c" <<'END'
#include <stdlib.h>
#include "announce.h"
int main(int argc, char** argv) {
  struct sluice_job job = {.id = (unsigned)atoi(argv[2]), .nodes = 1, .qos_class = "gold",
                           .account = argv[3], .label = argv[3]};
  return argc == 4 ? sluice_announce(argv[1], &job) : 2;
}
END
plugin=daemon/commands/slurm
cc -std=gnu11 -I$plugin -o "$SCRATCH/announce" "$SCRATCH/main.c" $plugin/announce.c \
  $plugin/ask_daemon.c || fail 'it does not compile'
start_node
is_metered() { is gold "[j['class'] for j in d if j['job'] == '$1'][0]"; }
is_json() { # FILE LABEL
  python3 - "$1" "$2" <<'END'
import json, os, sys
label = json.loads(open(sys.argv[1], "rb").read().decode())["label"]
wanted = os.fsencode(sys.argv[2])
try:
    wanted = wanted.decode()
except UnicodeDecodeError:
    wanted = None
sys.exit(label if wanted not in (None, label) else 0)
END
}

id=1
for name in caf$'\xe9' $'\xff\xfe' $'a\xe2\x82' $'\xed\xa0\x80' $'\xc0\x80' $'\xf4\x90\x80\x80' \
  $'gr\xc3\xbcn' $'\xe2\x82\xac' $'\xf0\x9f\x8c\x8a'; do
  said=$(printf %q "$name")
  "$SCRATCH/announce" "$RUN" $id "$name" || fail "$said is not announced"
  is_json "$RUN/scheduler/$id" "$name" || fail "$said: $(cat "$RUN/scheduler/$id")"
  until_true is_metered $id || fail "$said: $(tail -n 3 "$SCRATCH/log")"
  # As an older plugin wrote it.
  printf '{"job":"9%s","uid":0,"class":"gold","label":"%s"}\n' $id "$name" >"$RUN/scheduler/.new"
  mv "$RUN/scheduler/.new" "$RUN/scheduler/9$id"
  until_true is_metered 9$id || fail "$said of an older plugin: $(tail -n 3 "$SCRATCH/log")"
  id=$((id + 1))
done
