package hmsbridge.spark;

import java.io.Serializable;
import java.util.Arrays;

/** Which write ids of a table a reader sees: up to the high watermark, but for the invalid ones. */
final class Snapshot implements Serializable {
  private static final long serialVersionUID = 1;

  /** Its definition. A table that is dropped and made again has the same files and write ids. */
  final String table;
  final long highWatermark;
  /** Open and aborted write ids, ascending. */
  final long[] invalid;

  Snapshot(String table, long highWatermark, long[] invalid) {
    this.table = table;
    this.highWatermark = highWatermark;
    this.invalid = invalid;
  }

  /** Whether rows of this write are seen. Rows from before the table was ACID are of write 0. */
  boolean sees(long writeId) {
    return writeId <= highWatermark && Arrays.binarySearch(invalid, writeId) < 0;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Snapshot
        && ((Snapshot) other).table.equals(table)
        && ((Snapshot) other).highWatermark == highWatermark
        && Arrays.equals(((Snapshot) other).invalid, invalid);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * table.hashCode() + Long.hashCode(highWatermark)) + Arrays.hashCode(invalid);
  }
}
