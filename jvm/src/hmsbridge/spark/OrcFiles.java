package hmsbridge.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;

/** Opens ORC files as Hive reads them, and makes errors that name the file. */
final class OrcFiles {
  private static final int COUNTS_KEPT = 10_000;

  /** Rows of files that were counted, by table and path; a file of an ACID table never changes. */
  private static final Map<String, Long> COUNTS =
      new LinkedHashMap<String, Long>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
          return size() > COUNTS_KEPT;
        }
      };

  private OrcFiles() {}

  /**
   * Times as a wall clock shows them, dates by the proleptic calendar, as Hive shows both.
   *
   * @param length how many bytes count; -1: all
   */
  static Reader open(Configuration configuration, PlannedFile file, long length)
      throws IOException {
    OrcFile.ReaderOptions options =
        OrcFile.readerOptions(configuration)
            .useUTCTimestamp(true)
            .convertToProlepticGregorian(true);
    try {
      Path path = new Path(file.path);
      FileSystem fileSystem = path.getFileSystem(configuration);
      long bytes = length;
      if (length < 0) {
        FileStatus now = fileSystem.getFileStatus(path);
        file.requireSame(now);
        bytes = now.getLen();
      }
      return OrcFile.createReader(path, options.filesystem(fileSystem).maxLength(bytes));
    } catch (IOException | RuntimeException error) {
      throw failure(file.path, error);
    }
  }

  /**
   * How many rows the files have together.
   *
   * @param table its definition
   */
  static long countRows(Configuration configuration, String table, String[] paths)
      throws IOException {
    long count = 0;
    for (String path : paths) {
      count += countRows(configuration, table, path);
    }
    return count;
  }

  private static long countRows(Configuration configuration, String table, String path)
      throws IOException {
    String key = table + ' ' + path;
    Long known;
    synchronized (COUNTS) {
      known = COUNTS.get(key);
    }
    if (known == null) {
      try (Reader reader = open(configuration, PlannedFile.at(path), -1)) {
        known = reader.getNumberOfRows();
      }
      synchronized (COUNTS) {
        COUNTS.put(key, known);
      }
    }
    return known;
  }

  static IOException failure(String path, Exception error) {
    if (isMissing(error)) {
      return new IOException(
          path + " is gone: the snapshot may have ended; make the frame again", error);
    }
    return new IOException("cannot read " + path + ": " + text(error), error);
  }

  /** The same for an error at a row of the file: names its stripe. */
  static IOException failure(String path, Reader reader, long row, Exception error) {
    long before = 0;
    int number = 0;
    for (StripeInformation stripe : reader.getStripes()) {
      before += stripe.getNumberOfRows();
      if (row < before && !isMissing(error)) {
        return new IOException(
            "cannot read stripe " + number + " of " + path + ": " + text(error), error);
      }
      number++;
    }
    return failure(path, error);
  }

  private static boolean isMissing(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof FileNotFoundException) {
        return true;
      }
    }
    return false;
  }

  /** The innermost reason: ORC's own text often says no more than the name of the file. */
  private static String text(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause.getMessage() == null ? cause.toString() : cause.getMessage();
  }
}
