/* SPDX-License-Identifier: Apache-2.0
   Each rank writes files of its own and its block of a shared one, then reads its neighbour's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { files = 60, block = 65536 };

static unsigned sum_of(const unsigned char* bytes, size_t count) {
  unsigned sum = 1;
  for (size_t i = 0; i < count; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

int main(int argc, char** argv) {
  int rank, ranks;
  unsigned sum = 0, total = 0;
  static unsigned char bytes[block];
  char path[4096];
  MPI_File shared;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < files; ++i) {
    struct stat st;
    snprintf(path, sizeof path, "%s/rank%d.%d", argv[1], rank, i);
    FILE* f = fopen(path, "w+");
    if (f == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    fprintf(f, "%d %d\n", rank, i);
    fclose(f);
    if (stat(path, &st) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    sum += (unsigned)st.st_size;
    if (i % 3 == 0) remove(path);
  }
  memset(bytes, 'a' + rank, sizeof bytes);
  snprintf(path, sizeof path, "%s/shared", argv[1]);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared);
  MPI_File_write_at_all(shared, (MPI_Offset)rank * block, bytes, block, MPI_BYTE,
                        MPI_STATUS_IGNORE);
  MPI_File_sync(shared);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(shared);
  MPI_File_read_at_all(shared, (MPI_Offset)((rank + 1) % ranks) * block, bytes, block, MPI_BYTE,
                       MPI_STATUS_IGNORE);
  MPI_File_close(&shared);
  sum += sum_of(bytes, sizeof bytes);
  MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks %u\n", ranks, total);
  MPI_Finalize();
  return 0;
}
