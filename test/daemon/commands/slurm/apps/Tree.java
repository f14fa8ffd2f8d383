// SPDX-License-Identifier: Apache-2.0
// Writes a tree of files from several threads, renames, walks and reads it, removes half of it.
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.stream.IntStream;

public class Tree {
  public static void main(String[] args) throws Exception {
    Path top = Path.of(args[0]);
    IntStream.range(0, 200).parallel().forEach(i -> {
      try {
        Path dir = Files.createDirectories(top.resolve("d" + i % 8));
        Path fresh = dir.resolve(".f" + i);
        Files.writeString(fresh, "file " + i + "\n" + "x".repeat(i * 13));
        Files.move(fresh, dir.resolve("f" + i), StandardCopyOption.ATOMIC_MOVE);
        if (i % 2 == 1) Files.delete(dir.resolve("f" + i));
      } catch (Exception e) {
        throw new RuntimeException(e);
      }
    });
    MessageDigest sum = MessageDigest.getInstance("SHA-256");
    long[] count = {0};
    try (var all = Files.walk(top)) {
      for (Path p : (Iterable<Path>) all.filter(Files::isRegularFile).sorted()::iterator) {
        sum.update(top.relativize(p).toString().getBytes());
        sum.update(Files.readAllBytes(p));
        ++count[0];
      }
    }
    System.out.println(count[0] + " files " + HexFormat.of().formatHex(sum.digest()));
  }
}
