package hmsbridge.spark;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Writes insert events of one bucket, numbered from 0 (Hive: OrcRecordUpdater, with its sizes for
 * deltas, and the index of each stripe's last key).
 */
final class EventWriter implements Closeable, OrcFile.WriterCallback {
  private static final long STRIPE_BYTES = 8L << 20;
  private static final int BUFFER_BYTES = 32 << 10;
  private static final int BATCH_ROWS = 1024;

  private final EventSchema schema;
  private final Path path;
  private final Configuration configuration;
  private final int bucket;
  private final VectorizedRowBatch batch;
  private final ColumnVector[] columns;
  private final LongColumnVector rowIds;
  private final Writer writer;
  private final StringBuilder lastKeys = new StringBuilder();
  private long rowCount;
  private boolean isClosed;

  EventWriter(EventSchema schema, Path path, Configuration configuration, int bucket)
      throws IOException {
    this.schema = schema;
    this.path = path;
    this.configuration = configuration;
    this.bucket = bucket;
    batch = schema.event.createRowBatch(TypeDescription.RowBatchVersion.ORIGINAL, BATCH_ROWS);
    columns = ((StructColumnVector) batch.cols[EventFile.ROW]).fields;
    rowIds = (LongColumnVector) batch.cols[EventFile.ROW_ID];
    writer =
        OrcFile.createWriter(
            path,
            OrcFile.writerOptions(configuration)
                .setSchema(schema.event)
                .compress(schema.compression)
                .stripeSize(STRIPE_BYTES)
                .bufferSize(BUFFER_BYTES)
                .blockPadding(false)
                .useUTCTimestamp(true)
                .callback(this));
    begin();
  }

  private void begin() {
    batch.reset();
    ColumnSetters.startBatch(batch);
    ((LongColumnVector) batch.cols[EventFile.OPERATION]).fill(0);
    ((LongColumnVector) batch.cols[EventFile.WRITE_ID]).fill(schema.writeId);
    ((LongColumnVector) batch.cols[EventFile.BUCKET]).fill(bucket);
    ((LongColumnVector) batch.cols[EventFile.CURRENT_WRITE_ID]).fill(schema.writeId);
  }

  void add(InternalRow row) throws IOException {
    int at = batch.size++;
    rowIds.vector[at] = rowCount++;
    for (int column = 0; column < columns.length; column++) {
      schema.setters[column].set(columns[column], at, row, column);
    }
    if (batch.size == BATCH_ROWS) {
      flush();
    }
  }

  private void flush() throws IOException {
    if (batch.size > 0) {
      writer.addRowBatch(batch);
      begin();
    }
  }

  /** All rows that were added are of this stripe or an earlier one. */
  @Override
  public void preStripeWrite(OrcFile.WriterContext context) {
    lastKeys.append(schema.writeId).append(',').append(bucket).append(',').append(rowCount - 1);
    lastKeys.append(';');
  }

  @Override
  public void preFooterWrite(OrcFile.WriterContext context) {
    addMetadata(context, "hive.acid.key.index", lastKeys.toString());
    addMetadata(context, "hive.acid.stats", rowCount + ",0,0");
    addMetadata(context, "hive.acid.version", "2");
  }

  private static void addMetadata(OrcFile.WriterContext context, String key, String value) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    context.getWriter().addUserMetadata(key, ByteBuffer.wrap(bytes));
  }

  @Override
  public void close() throws IOException {
    if (!isClosed) {
      isClosed = true;
      try {
        flush();
      } finally {
        writer.close();
      }
    }
  }

  String path() {
    return path.toString();
  }

  long rowCount() {
    return rowCount;
  }

  /** Of the closed file. */
  long sizeBytes() throws IOException {
    return path.getFileSystem(configuration).getFileStatus(path).getLen();
  }
}
