// SPDX-License-Identifier: Apache-2.0
// Ranks of an MPI program that write small records to files they share, and tell each other by the
// standard's means what is there. Each rank prints what it reads: for mpi_io.sh.
//   mpi_io DIR [PREFIX]    PREFIX: a driver of ROMIO, such as nfs:
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { record = 24, records = 60, rounds = 2, own_records = 20000 };

static int rank, ranks;
static char folder[2048], prefix[16];
static char out[1 << 20];
static int out_bytes;

static void must(int is_right, char const* what) {
  if (is_right) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ok(int error, char const* what) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int bytes = 0;
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &bytes);
  if (error != MPI_SUCCESS) fprintf(stderr, "%s\n", text);
  must(error == MPI_SUCCESS, what);
}

static void fill(char* to, int of, int round, int i) {
  char text[record + 32];
  snprintf(text, sizeof text, "%03d.%03d.%05d............", of, round, i);
  memcpy(to, text, record - 1);
  to[record - 1] = '\n';
}

/// All ranks see this sum, or the one of whose bytes is told.
static void say(char const* what, int round, char const* bytes, long n) {
  unsigned long sum = 14695981039346656037ul;
  for (long i = 0; i < n; ++i) sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211ul;
  out_bytes += snprintf(out + out_bytes, sizeof out - out_bytes, "%d %s %d: %ld bytes, %016lx\n",
                        rank, what, round, n, sum);
}

static MPI_File open_shared(char const* name, int mode) {
  char path[4096];
  MPI_File f;
  snprintf(path, sizeof path, "%s%s/%s", prefix, folder, name);
  ok(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &f), path);
  return f;
}

static MPI_File open_new(char const* name) {
  MPI_File const f = open_shared(name, MPI_MODE_RDWR | MPI_MODE_CREATE);
  ok(MPI_File_set_size(f, 0), "set_size");
  MPI_Barrier(MPI_COMM_WORLD);
  return f;
}

static long shared_bytes(void) { return (long)record * records * ranks; }

/// By rank, then in the order they were written.
static MPI_Offset place(int of, int i) { return (MPI_Offset)record * ((long)of * records + i); }

/// Each rank reads all, at once or record by record.
static void read_back(MPI_File f, char const* what, int round) {
  char* const all = calloc(1, shared_bytes());
  MPI_Status status;
  int n = 0;
  if (round % 2 == 0) {
    ok(MPI_File_read_at(f, 0, all, (int)shared_bytes(), MPI_CHAR, &status), "read_at");
    MPI_Get_count(&status, MPI_CHAR, &n);
    must(n == shared_bytes(), "a short read");
  }
  for (int of = 0; round % 2 != 0 && of < ranks; ++of)
    for (int i = 0; i < records; ++i)
      ok(MPI_File_read_at(f, place(of, i), all + place(of, i), record, MPI_CHAR, &status), "read");
  say(what, round, all, shared_bytes());
  free(all);
}

static void write_own(MPI_File f, int round, int is_by_pointer) {
  char one[record];
  if (is_by_pointer) ok(MPI_File_seek(f, place(rank, 0), MPI_SEEK_SET), "seek");
  for (int i = 0; i < records; ++i) {
    fill(one, rank, round, i);
    ok(is_by_pointer
           ? MPI_File_write(f, one, record, MPI_CHAR, MPI_STATUS_IGNORE)
           : MPI_File_write_at(f, place(rank, i), one, record, MPI_CHAR, MPI_STATUS_IGNORE),
       "write");
  }
}

/// Sync, barrier, sync.
static void synced(void) {
  MPI_File f = open_new("synced");
  for (int round = 0; round < rounds; ++round) {
    write_own(f, round, round % 2);
    ok(MPI_File_sync(f), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_sync(f), "sync");
    read_back(f, "synced", round);
    ok(MPI_File_sync(f), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_sync(f), "sync");
  }
  ok(MPI_File_close(&f), "close");
}

/// In atomic mode a barrier is enough. Not every library has it.
static void atomic(void) {
  MPI_File f = open_new("atomic");
  int flag = 0;
  int const error = MPI_File_set_atomicity(f, 1);
  if (error == MPI_SUCCESS) MPI_File_get_atomicity(f, &flag);
  say(flag ? "atomic mode" : "no atomic mode", 0, "", 0);
  for (int round = 0; round < rounds && flag; ++round) {
    write_own(f, round, round % 2);
    MPI_Barrier(MPI_COMM_WORLD);
    read_back(f, "atomic", round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ok(MPI_File_close(&f), "close");
}

static void closed(void) {
  for (int round = 0; round < rounds; ++round) {
    MPI_File f = open_shared("closed", MPI_MODE_WRONLY | MPI_MODE_CREATE);
    write_own(f, round, round % 2);
    ok(MPI_File_close(&f), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    f = open_shared("closed", MPI_MODE_RDONLY);
    read_back(f, "closed", round);
    ok(MPI_File_close(&f), "close");
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// Records of all ranks in turn, by a view that has holes, alone and together.
static void viewed(int is_together) {
  char const* const name = is_together ? "together" : "strided";
  MPI_File f = open_new(name);
  MPI_Datatype one, comb;
  MPI_Type_contiguous(record, MPI_CHAR, &one);
  MPI_Type_create_resized(one, 0, (MPI_Aint)record * ranks, &comb);
  MPI_Type_commit(&comb);
  char* const own = malloc(record * records);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < records; ++i) fill(own + record * i, rank, round, i);
    ok(MPI_File_set_view(f, (MPI_Offset)record * rank, MPI_CHAR, comb, "native", MPI_INFO_NULL),
       "set_view");
    for (int i = 0; i < records; i += 10)
      ok(is_together
             ? MPI_File_write_all(f, own + record * i, record * 10, MPI_CHAR, MPI_STATUS_IGNORE)
             : MPI_File_write(f, own + record * i, record * 10, MPI_CHAR, MPI_STATUS_IGNORE),
         "write by a view");
    ok(MPI_File_sync(f), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_sync(f), "sync");
    ok(MPI_File_set_view(f, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL), "set_view");
    read_back(f, name, round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(own);
  MPI_Type_free(&comb);
  MPI_Type_free(&one);
  ok(MPI_File_close(&f), "close");
}

static int by_bytes(void const* a, void const* b) { return memcmp(a, b, record); }

/// One pointer for all: in the order of ranks, and in any order.
static void pointed(void) {
  MPI_File f = open_new("pointed");
  char one[record], *const all = malloc(shared_bytes());
  for (int i = 0; i < records; ++i) {
    fill(one, rank, 0, i);
    if (i % 10 == 0)
      ok(MPI_File_write_ordered(f, one, record, MPI_CHAR, MPI_STATUS_IGNORE), "write_ordered");
    else
      ok(MPI_File_write_shared(f, one, record, MPI_CHAR, MPI_STATUS_IGNORE), "write_shared");
  }
  ok(MPI_File_sync(f), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  ok(MPI_File_sync(f), "sync");
  ok(MPI_File_read_at(f, 0, all, (int)shared_bytes(), MPI_CHAR, MPI_STATUS_IGNORE), "read_at");
  qsort(all, (size_t)records * ranks, record, by_bytes);
  say("pointed", 0, all, shared_bytes());
  free(all);
  MPI_Barrier(MPI_COMM_WORLD);
  ok(MPI_File_close(&f), "close");
}

/// Descriptors of the program's own, of the file that is open for MPI, too: lseek and write, as
/// the drivers of older libraries do it. Told of by fsync, a lock or close.
static void plain(void) {
  static char const* const means[] = {"by fsync", "by a lock", "by close"};
  MPI_File f = open_new("plain");
  char path[4096], one[record];
  snprintf(path, sizeof path, "%s/plain", folder);
  for (int round = 0; round < 3; ++round) {
    int const fd = open(path, O_WRONLY);
    must(fd >= 0, path);
    must(lseek(fd, place(rank, 0), SEEK_SET) == place(rank, 0), "lseek");
    for (int i = 0; i < records; ++i) {
      fill(one, rank, round, i);
      must(write(fd, one, record) == record, "write");
    }
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place(rank, 0), .l_len = 1};
    if (round == 0) must(fsync(fd) == 0, "fsync");
    if (round == 1) must(fcntl(fd, F_SETLKW, &lock) == 0, "lock");
    lock.l_type = F_UNLCK;
    if (round == 1) must(fcntl(fd, F_SETLK, &lock) == 0, "unlock");
    if (round == 2) must(close(fd) == 0, "close");
    MPI_Barrier(MPI_COMM_WORLD);
    read_back(f, means[round], round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round != 2) must(close(fd) == 0, "close");
  }
  ok(MPI_File_close(&f), "close");
}

/// A file for each rank, which the others read when it is closed, record by record.
static void own(void) {
  char path[4096], one[record];
  snprintf(path, sizeof path, "%s/own.%d", folder, rank);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  must(fd >= 0, path);
  for (int i = 0; i < own_records; ++i) {
    fill(one, rank, 0, i);
    must(write(fd, one, record) == record, "write");
  }
  must(close(fd) == 0, "close");
  MPI_Barrier(MPI_COMM_WORLD);
  long const bytes = (long)record * own_records;
  char* const all = malloc(bytes + record);
  for (int of = 0; of < ranks; ++of) {
    long n = 0, more;
    snprintf(path, sizeof path, "%s/own.%d", folder, of);
    fd = open(path, O_RDONLY);
    must(fd >= 0, path);
    while (n <= bytes && (more = read(fd, all + n, record)) > 0) n += more;
    must(close(fd) == 0, "close");
    say("own", of, all, n);
  }
  free(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(argc >= 2, "mpi_io DIR [PREFIX]");
  snprintf(folder, sizeof folder, "%s", argv[1]);
  if (argc > 2) snprintf(prefix, sizeof prefix, "%s", argv[2]);
  synced();
  atomic();
  closed();
  viewed(0);
  viewed(1);
  pointed();
  plain();
  own();
  for (int turn = 0; turn < ranks; ++turn) {
    if (turn == rank) must(write(1, out, out_bytes) == out_bytes, "stdout");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
