package hmsbridge.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * A file as it was when the scan was planned. By the time it is opened another one may have its
 * path: of a table that was dropped and made again.
 */
final class PlannedFile implements Serializable {
  private static final long serialVersionUID = 1;
  private static final long UNKNOWN = -1;
  /** Object stores tell one time of a file with and without its milliseconds. */
  private static final long SECOND_MS = 1_000;

  final String path;
  /** Bytes, and milliseconds since 1970; -1: not known. */
  final long size;
  final long modified;

  PlannedFile(String path, long size, long modified) {
    this.path = path;
    this.size = size;
    this.modified = modified;
  }

  /** A file of which nothing else is known. */
  static PlannedFile at(String path) {
    return new PlannedFile(path, UNKNOWN, UNKNOWN);
  }

  /** Where to open it. Fails if another file is there. */
  Path place(Configuration configuration) throws IOException {
    Path place = new Path(path);
    requireSame(place.getFileSystem(configuration).getFileStatus(place));
    return place;
  }

  void requireSame(FileStatus now) throws IOException {
    boolean isSame =
        (size == UNKNOWN || size == now.getLen())
            && (modified == UNKNOWN
                || Math.abs(modified - now.getModificationTime()) < SECOND_MS);
    if (!isSame) {
      throw new IOException(
          "it is not the file that the query was planned for: its table or partition was dropped"
              + " and made again; make the frame again");
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PlannedFile
        && ((PlannedFile) other).path.equals(path)
        && ((PlannedFile) other).size == size
        && ((PlannedFile) other).modified == modified;
  }

  @Override
  public int hashCode() {
    return path.hashCode();
  }
}
