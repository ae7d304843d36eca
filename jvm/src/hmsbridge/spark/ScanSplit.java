package hmsbridge.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads: its files, with the partitions and delete lists that they name. */
public final class ScanSplit implements InputPartition {
  private static final long serialVersionUID = 1;

  public final ScanFile[] files;
  /** Values of {@link ReadSpec#partitionColumns} in Spark's own form (UTF8String, Decimal). */
  public final Object[][] partitions;
  public final PlannedFile[][] deletes;

  public ScanSplit(ScanFile[] files, Object[][] partitions, PlannedFile[][] deletes) {
    this.files = files;
    this.partitions = partitions;
    this.deletes = deletes;
  }
}
