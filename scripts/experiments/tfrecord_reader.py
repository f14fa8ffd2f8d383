# SPDX-License-Identifier: Apache-2.0
"""Reads TFRecord-like files as a training does: tfrecord_reader.py DIRECTORY EPOCHS.

Every epoch reads all files of the directory, record by record, through a buffer of 256 KiB as
TensorFlow's reader does. Checksums are not looked at; a record that is cut ends it with status 1.
"""
import os
import struct
import sys

HEADER, FOOTER, BUFFER = 12, 4, 256 * 1024


def read_file(path):
    with open(path, "rb", buffering=BUFFER) as f:
        while header := f.read(HEADER):
            length = struct.unpack("<QI", header)[0] + FOOTER
            if len(f.read(length)) != length:
                sys.exit(f"{path}: a record is cut")


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    for _ in range(epochs):
        for name in sorted(os.listdir(folder)):
            read_file(os.path.join(folder, name))


if __name__ == "__main__":
    main()
