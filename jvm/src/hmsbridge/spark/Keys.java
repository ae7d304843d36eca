package hmsbridge.spark;

import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;

/** ROW__IDs and write ids of the rows of a batch. */
final class Keys {
  static final int BATCH_ROWS = 4096;

  final LongColumnVector writeIds = new LongColumnVector(BATCH_ROWS);
  final LongColumnVector buckets = new LongColumnVector(BATCH_ROWS);
  final LongColumnVector rowIds = new LongColumnVector(BATCH_ROWS);
  final LongColumnVector currentWriteIds = new LongColumnVector(BATCH_ROWS);

  static long value(LongColumnVector vector, int row) {
    return vector.vector[vector.isRepeating ? 0 : row];
  }

  /** Numbers rows of a file that has no ROW__IDs of its own. */
  void number(RawRows raw, long first, int count) {
    repeat(writeIds, raw.writeId);
    repeat(buckets, raw.bucket);
    rowIds.reset();
    for (int row = 0; row < count; row++) {
      rowIds.vector[row] = first + row;
    }
  }

  private static void repeat(LongColumnVector vector, long value) {
    vector.reset();
    vector.isRepeating = true;
    vector.vector[0] = value;
  }
}
