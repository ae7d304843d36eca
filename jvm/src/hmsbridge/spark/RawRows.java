package hmsbridge.spark;

import java.io.Serializable;

/**
 * How the rows of a file that has the table's columns only get their ROW__ID: row n is (write id,
 * bucket, m + n), m rows being in the preceding files.
 */
final class RawRows implements Serializable {
  private static final long serialVersionUID = 1;

  final long writeId;
  /** Bucket, statement and version in one number, as ROW__ID has them. */
  final int bucket;
  final String[] preceding;

  RawRows(long writeId, int bucket, String[] preceding) {
    this.writeId = writeId;
    this.bucket = bucket;
    this.preceding = preceding;
  }
}
