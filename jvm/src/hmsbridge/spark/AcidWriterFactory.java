package hmsbridge.spark;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.util.SerializableConfiguration;

/** Makes the writers of a write's tasks. */
final class AcidWriterFactory implements DataWriterFactory {
  private static final long serialVersionUID = 1;

  private final WriteSpec spec;
  private final Broadcast<SerializableConfiguration> configuration;

  AcidWriterFactory(WriteSpec spec, Broadcast<SerializableConfiguration> configuration) {
    this.spec = spec;
    this.configuration = configuration;
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return new AcidWriter(spec, configuration.value().value(), partitionId, taskId);
  }
}
