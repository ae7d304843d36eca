package hmsbridge.spark;

import java.io.Serializable;

/** A file, or a range of its stripes, of a plan (docs/format/plan-service.md). */
public final class ScanFile implements Serializable {
  private static final long serialVersionUID = 1;

  public final PlannedFile file;
  /** Its stripes begin at {@code start} or later and before {@code end} (-1: the file's end). */
  public final long start;
  public final long end;
  /** How many bytes of the file count; -1: all. */
  public final long length;
  /** Place in {@link ScanSplit#partitions}; -1: the table has no partitions. */
  public final int partition;
  /** Place in {@link ScanSplit#deletes}; -1: no event hits a row of the file. */
  public final int deletes;
  /** Whether rows whose write id the snapshot does not see must be left out. */
  public final boolean filtered;
  /** Null for a file with ACID columns. */
  public final RawRows raw;

  public ScanFile(
      PlannedFile file,
      long start,
      long end,
      long length,
      int partition,
      int deletes,
      boolean filtered,
      RawRows raw) {
    this.file = file;
    this.start = start;
    this.end = end;
    this.length = length;
    this.partition = partition;
    this.deletes = deletes;
    this.filtered = filtered;
    this.raw = raw;
  }

  /** How many bytes the range has; as good as no end if it is the file's. */
  long span() {
    return (end < 0 ? Long.MAX_VALUE : end) - start;
  }

  /** Whether a stripe that begins at this byte is of the range. */
  boolean hasStripe(long offset) {
    return offset >= start && (end < 0 || offset < end);
  }
}
