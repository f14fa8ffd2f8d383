# SPDX-License-Identifier: Apache-2.0
"""A small training with TensorFlow: records are written, read by tf.data, checkpoints are saved."""
import hashlib
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

SHARDS, ROWS = 24, 64


def write(folder):
    chance = np.random.default_rng(7)
    for shard in range(SHARDS):
        with tf.io.TFRecordWriter(os.path.join(folder, f"part{shard:02}.tfrecord")) as out:
            for _ in range(ROWS):
                x = chance.normal(size=16).astype(np.float32)
                row = np.append(x, np.float32(x.sum() > 0))
                out.write(row.tobytes())


def rows_of(folder):
    files = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"), shuffle=False)
    rows = files.interleave(tf.data.TFRecordDataset, cycle_length=4, block_length=8)
    rows = rows.map(lambda r: tf.io.decode_raw(r, tf.float32)).map(lambda r: (r[:16], r[16:17]))
    return rows.batch(64)


def main():
    folder = sys.argv[1]
    tf.keras.utils.set_random_seed(7)
    tf.config.experimental.enable_op_determinism()
    write(folder)
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)),
                                 tf.keras.layers.Dense(8, activation="relu"),
                                 tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="sgd", loss="binary_crossentropy")
    for epoch in range(3):
        model.fit(rows_of(folder), epochs=1, verbose=0)
        model.save_weights(os.path.join(folder, f"epoch{epoch}.weights.h5"))
    weights = b"".join(w.tobytes() for w in model.get_weights())
    again = tf.keras.models.clone_model(model)
    again.load_weights(os.path.join(folder, "epoch2.weights.h5"))
    same = all((a == b).all() for a, b in zip(model.get_weights(), again.get_weights()))
    print("loss", model.evaluate(rows_of(folder), verbose=0, return_dict=True)["loss"],
          "weights", hashlib.sha256(weights).hexdigest(), "checkpoint", same)


if __name__ == "__main__":
    main()
