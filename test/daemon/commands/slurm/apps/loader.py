# SPDX-License-Identifier: Apache-2.0
"""A data loader as in training: four processes read samples in a shuffled order, one collects."""
import hashlib
import multiprocessing
import os
import random
import sys


def load(path):
    os.stat(path)
    with open(path, "rb") as f:
        return os.path.basename(path), hashlib.sha256(f.read()).hexdigest()


def main():
    folder = sys.argv[1]
    chance = random.Random(7)
    paths = []
    for i in range(300):
        path = os.path.join(folder, f"class{i % 10}", f"sample{i}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(chance.randbytes(chance.randrange(1, 16384)))
        paths.append(path)
    chance.shuffle(paths)
    with multiprocessing.Pool(4) as pool:
        seen = dict(pool.imap_unordered(load, paths, chunksize=8))
    text = "".join(f"{name} {seen[name]}\n" for name in sorted(seen))
    print(len(seen), "samples", hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()
