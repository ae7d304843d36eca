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

  /** Makes the keys of rows that follow the file's first one by {@code after} and more. */
  void number(RowKey first, long after, int count) {
    repeat(writeIds, first.writeId);
    repeat(buckets, first.bucket);
    rowIds.reset();
    for (int row = 0; row < count; row++) {
      rowIds.vector[row] = first.rowId + after + row;
    }
  }

  private static void repeat(LongColumnVector vector, long value) {
    vector.reset();
    vector.isRepeating = true;
    vector.vector[0] = value;
  }
}
