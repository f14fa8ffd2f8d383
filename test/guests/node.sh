#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# node: synchronous, callback and promise file calls, through its thread pool.
. test/guests/common
need node
cat >"$SCRATCH/job.js" <<'END'
const fs = require('fs'), path = require('path');
const top = process.argv[2];
fs.mkdirSync(top);
async function main() {
  for (let i = 0; i < 60; i++) fs.writeFileSync(path.join(top, 'f' + i), 'x'.repeat(i * 100));
  await Promise.all([...Array(60).keys()].map(async i => {
    const f = path.join(top, 'f' + i);
    await fs.promises.appendFile(f, 'end');
    const s = await fs.promises.stat(f);
    if (s.size !== i * 100 + 3) throw new Error('size ' + s.size);
    await fs.promises.rename(f, f + 'r');
  }));
  fs.cpSync(top, top + '-copy', {recursive: true});
  const out = fs.createWriteStream(path.join(top, 'stream'));
  fs.createReadStream(path.join(top, 'f59r')).pipe(out);
  await new Promise(done => out.on('finish', done));
  console.log(fs.readdirSync(top).length, fs.statSync(path.join(top, 'stream')).size);
  fs.rmSync(top + '-copy', {recursive: true});
}
main().catch(e => { console.error(e); process.exit(1); });
END
bare=$(node "$SCRATCH/job.js" "$SCRATCH/bare") || skip 'node does not work here'
gated=$(limited --limit metadata=400/s -- node "$SCRATCH/job.js" "$SCRATCH/gated") ||
  fail "node with limits: $?"
delayed
[ "$bare" = "$gated" ] || fail "said $gated, bare $bare"
diff -r "$SCRATCH/bare" "$SCRATCH/gated" || fail 'the files differ'
