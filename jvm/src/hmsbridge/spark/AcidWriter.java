package hmsbridge.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes a task's rows: a file for each partition and bucket, which come one after the other.
 *
 * <p>The task is the bucket of an unbucketed table; if there are more tasks than a statement has
 * buckets, they take the next statement of the transaction.
 */
final class AcidWriter implements DataWriter<InternalRow> {
  private static final int STATEMENT_BUCKETS = 4096;

  private final WriteSpec spec;
  private final Configuration configuration;
  /** The bucket of all rows, if the table has none of its own. */
  private final int taskBucket;
  private final int statement;
  private final String prefix;
  private final int stored;
  private final DataType[] keyTypes;
  private final int[] required;
  private final WrittenFiles written = new WrittenFiles();
  private final EventSchema schema;
  private EventWriter file;
  private Object[] partition;
  private int bucket;

  AcidWriter(WriteSpec spec, Configuration configuration, int task, long attempt) {
    this.spec = spec;
    this.configuration = configuration;
    this.taskBucket = task % STATEMENT_BUCKETS;
    this.statement = spec.buckets == null ? task / STATEMENT_BUCKETS : 0;
    this.prefix = spec.staging + "/insert_" + attempt + "_";
    schema = new EventSchema(spec);
    stored = schema.row.getChildren().size();
    StructField[] fields = spec.schema.fields();
    keyTypes = new DataType[fields.length - stored];
    for (int at = 0; at < keyTypes.length; at++) {
      keyTypes[at] = fields[stored + at].dataType();
    }
    required = Arrays.stream(spec.required).mapToInt(spec.schema::fieldIndex).toArray();
    if (statement >= STATEMENT_BUCKETS) {
      throw new IllegalStateException("too many tasks write one table: repartition the rows");
    }
  }

  @Override
  public void write(InternalRow row) throws IOException {
    for (int place : required) {
      if (row.isNullAt(place)) {
        throw new IllegalArgumentException(
            "column " + spec.schema.fields()[place].name() + " is NOT NULL, but a row has no value"
                + " there; nothing was written");
      }
    }
    Object[] values = partition(row);
    int number = spec.buckets == null ? taskBucket : spec.buckets.of(row);
    if (file == null || number != bucket || !Arrays.equals(values, partition)) {
      finish();
      open(values, number);
    }
    file.add(row);
  }

  private void open(Object[] values, int number) throws IOException {
    partition = values;
    bucket = number;
    file =
        new EventWriter(
            schema,
            new Path(prefix + written.count()),
            configuration,
            BucketProperty.encode(number, statement));
  }

  /** Hive has one partition for NULL and for an empty text. */
  private Object[] partition(InternalRow row) {
    Object[] values = new Object[keyTypes.length];
    for (int at = 0; at < values.length; at++) {
      values[at] = row.get(stored + at, keyTypes[at]);
      if (values[at] instanceof UTF8String) {
        UTF8String text = (UTF8String) values[at];
        values[at] = text.numBytes() == 0 ? null : text.clone();
      }
    }
    return values;
  }

  private void finish() throws IOException {
    if (file != null) {
      file.close();
      written.add(file, PlanValues.toJson(partition, keyTypes), bucket, statement);
      file = null;
    }
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    finish();
    return written.message();
  }

  /** The driver removes what is left of a try that failed. */
  @Override
  public void abort() throws IOException {
    close();
  }

  @Override
  public void close() throws IOException {
    EventWriter open = file;
    file = null;
    if (open != null) {
      open.close();
    }
  }
}
