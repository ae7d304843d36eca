package hmsbridge.spark;

import java.io.IOException;
import java.io.ObjectOutputStream;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/** Makes the readers of a scan's tasks. */
final class AcidReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;

  private final ReadSpec spec;
  private final PlanLease lease;
  private final Broadcast<SerializableConfiguration> configuration;

  AcidReaderFactory(
      ReadSpec spec, PlanLease lease, Broadcast<SerializableConfiguration> configuration) {
    this.spec = spec;
    this.lease = lease;
    this.configuration = configuration;
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("rows are read in batches");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    String gone = lease.gone();
    if (gone != null) {
      throw new IllegalStateException(gone);
    }
    return new SplitReader(spec, (ScanSplit) partition, configuration.value().value());
  }

  /** Spark writes the factory on the driver before each job: also when a frame is used again. */
  private void writeObject(ObjectOutputStream out) throws IOException {
    lease.use();
    out.defaultWriteObject();
  }
}
