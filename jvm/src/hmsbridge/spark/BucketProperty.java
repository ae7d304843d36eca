package hmsbridge.spark;

/** ROW__ID's bucket: a version, the bucket and the statement in one number (Hive: BucketCodec.V1). */
final class BucketProperty {
  private static final int VERSION_1 = 1 << 29;
  private static final int BUCKET_SHIFT = 16;

  private BucketProperty() {}

  static int encode(int bucket, int statement) {
    return VERSION_1 | bucket << BUCKET_SHIFT | statement;
  }
}
