package hmsbridge.spark;

/** A ROW__ID. */
final class RowKey {
  final long writeId;
  /** Bucket, statement and version in one number. */
  final long bucket;
  final long rowId;

  RowKey(long writeId, long bucket, long rowId) {
    this.writeId = writeId;
    this.bucket = bucket;
    this.rowId = rowId;
  }
}
