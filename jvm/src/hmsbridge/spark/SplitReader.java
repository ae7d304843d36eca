package hmsbridge.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the files of a task, one after the other. */
final class SplitReader implements PartitionReader<ColumnarBatch> {
  private static final PlannedFile[] NO_FILES = {};

  private final ReadSpec spec;
  private final ScanSplit split;
  private final Configuration configuration;
  private final Projection projection;
  private final SearchArgument search;
  private BatchFile reader;
  private int opened;
  private ColumnarBatch batch;

  SplitReader(ReadSpec spec, ScanSplit split, Configuration configuration) {
    this.spec = spec;
    this.split = split;
    this.configuration = configuration;
    this.projection = new Projection(spec);
    this.search = SearchArguments.of(spec, projection.row);
  }

  @Override
  public boolean next() throws IOException {
    while (true) {
      if (reader == null) {
        if (opened == split.files.length) {
          return false;
        }
        open(split.files[opened++]);
      }
      int count = reader == null ? 0 : reader.next();
      if (count > 0) {
        batch.setNumRows(count);
        return true;
      }
      close();
    }
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() throws IOException {
    BatchFile done = reader;
    reader = null;
    if (done != null) {
      done.close();
    }
  }

  private void open(ScanFile file) throws IOException {
    if (isUnseen(file) || file.length == 0) {
      return;
    }
    try {
      reader = reader(file);
    } catch (RuntimeException error) {
      throw OrcFiles.failure(file.file.path, error);
    }
    batch = new ColumnarBatch(columns(file));
  }

  private BatchFile reader(ScanFile file) throws IOException {
    switch (spec.format) {
      case "parquet":
        return new ParquetFile(file, spec, configuration);
      case "text":
        return new TextFile(file, spec, configuration);
      default:
        break;
    }
    PlannedFile[] deletes = file.deletes < 0 ? NO_FILES : split.deletes[file.deletes];
    return new FileReader(file, spec, projection, deletes, search, configuration);
  }

  /** Whether all rows of the file are of one write, which the snapshot does not see. */
  private boolean isUnseen(ScanFile file) {
    return spec.acid
        && file.raw != null
        && file.filtered
        && !spec.snapshot.sees(file.raw.writeId);
  }

  /** What the file has not is a partition's. */
  private ColumnVector[] columns(ScanFile file) {
    StructField[] fields = spec.schema.fields();
    ColumnVector[] columns = new ColumnVector[fields.length];
    List<String> names = Arrays.asList(spec.partitionColumns);
    for (int at = 0; at < fields.length; at++) {
      columns[at] = reader.vector(at);
      if (columns[at] == null) {
        ConstantColumnVector constant =
            new ConstantColumnVector(Keys.BATCH_ROWS, fields[at].dataType());
        InternalRow values = new GenericInternalRow(split.partitions[file.partition]);
        ColumnVectorUtils.populate(constant, values, names.indexOf(fields[at].name()));
        columns[at] = constant;
      }
    }
    return columns;
  }
}
