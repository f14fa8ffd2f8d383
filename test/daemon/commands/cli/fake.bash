# SPDX-License-Identifier: Apache-2.0
# For tests with a fake daemon in $RUN: `start_fake` and `stop_fake`; `answer VERB JSON` says what
# it answers from then on; `asked EXPR` evaluates Python over the list of requests, `r`.
RUN=$SCRATCH/run
mkdir -p -m 700 "$RUN"
echo '{}' >"$SCRATCH/answers.json"

answer() {
  python3 - "$SCRATCH/answers.json" "$1" "$2" <<'P'
import json, os, sys
path, verb, text = sys.argv[1:]
known = json.load(open(path))
known[verb] = json.loads(text)
with open(path + ".new", "w") as f:
    json.dump(known, f)
os.rename(path + ".new", path)
P
}

start_fake() {
  : >"$SCRATCH/fake.out"
  python3 "$top/test/daemon/commands/cli/fake_daemon.py" "$RUN" "$SCRATCH/answers.json" \
    >>"$SCRATCH/fake.out" 2>&1 &
  fake=$!
  for _ in $(seq 200); do grep -q ready "$SCRATCH/fake.out" && return; sleep 0.05; done
  fail "the fake daemon does not start: $(cat "$SCRATCH/fake.out")"
}

stop_fake() {
  kill "$fake" && wait "$fake" 2>/dev/null
  fake=
}

asked() {
  python3 -c 'import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
print(eval(sys.argv[2]))' "$RUN/requests" "$1"
}
