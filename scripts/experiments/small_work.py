# SPDX-License-Identifier: Apache-2.0
"""Small I/O of Python and of libraries below it, in the current directory.

  small_work.py KIND COUNT
"""
import logging
import os
import sys

CHUNK = 64  # records of a chunk


def unbuffered(count):
    with open("out", "wb", buffering=0) as f:
        for i in range(count):
            f.write(b"%07d\n" % i)


def lines(count):
    with open("out", "w", buffering=1, encoding="ascii") as f:
        for i in range(count):
            f.write(f"{i:07d}\n")


def log(count):
    logging.basicConfig(filename="out", format="%(levelname)s %(message)s")
    for i in range(count):
        logging.warning("step %d of the work is done", i)


def hdf5(count, flush=False):
    import h5py
    with h5py.File("out.h5", "w") as f:
        d = f.create_dataset("x", (0,), maxshape=(None,), chunks=(CHUNK,), dtype="f8",
                             track_times=False)
        for i in range(count):
            d.resize((i + 1,))
            d[i] = i / 7
            if flush:
                f.flush()


def netcdf(count, kind, sync=False):
    import netCDF4
    with netCDF4.Dataset("out.nc", "w", format=kind) as f:
        f.createDimension("time", None)
        f.createDimension("x", 4)
        row = f.createVariable("v", "f8", ("time", "x"))
        for i in range(count):
            row[i] = (i, i / 3, i / 5, i / 7)
            if sync:
                f.sync()


def read_unbuffered(count):
    total = 0
    with open("in", "rb", buffering=0) as f:
        for _ in range(count):
            total += f.read(8)[0]
    print(total)


def read_hdf5(count):
    import h5py
    with h5py.File("in.h5", "r") as f:
        d = f["x"]
        print(sum(d[i] for i in range(count)))


def strides(count):
    """Columns of a large table: few bytes at equal distances."""
    total = 0
    f = os.open("in", os.O_RDONLY)
    for i in range(count):
        total += os.pread(f, 512, i * 40_000)[0]
    os.close(f)
    print(total)


KINDS = {
    "unbuffered": unbuffered, "lines": lines, "log": log,
    "hdf5": hdf5, "hdf5-flush": lambda n: hdf5(n, True),
    "netcdf3": lambda n: netcdf(n, "NETCDF3_CLASSIC"),
    "netcdf3-sync": lambda n: netcdf(n, "NETCDF3_CLASSIC", True),
    "netcdf4": lambda n: netcdf(n, "NETCDF4"),
    "netcdf4-sync": lambda n: netcdf(n, "NETCDF4", True),
    "read-unbuffered": read_unbuffered, "read-hdf5": read_hdf5, "strides": strides}

if __name__ == "__main__":
    KINDS[sys.argv[1]](int(sys.argv[2]))
