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
  private FileReader reader;
  private int opened;
  /** Of which partition the batch's constants are; -2: there is no batch yet. */
  private int partition = -2;
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
    FileReader done = reader;
    reader = null;
    if (done != null) {
      done.close();
    }
  }

  private void open(ScanFile file) throws IOException {
    if (isUnseen(file) || file.length == 0) {
      return;
    }
    if (file.partition != partition) {
      partition = file.partition;
      batch = new ColumnarBatch(columns());
    }
    PlannedFile[] deletes = file.deletes < 0 ? NO_FILES : split.deletes[file.deletes];
    reader = new FileReader(file, spec, projection, deletes, search, configuration);
  }

  /** Whether all rows of the file are of one write, which the snapshot does not see. */
  private boolean isUnseen(ScanFile file) {
    return spec.acid
        && file.raw != null
        && file.filtered
        && !spec.snapshot.sees(file.raw.writeId);
  }

  private ColumnVector[] columns() {
    StructField[] fields = spec.schema.fields();
    ColumnVector[] columns = new ColumnVector[fields.length];
    List<String> names = Arrays.asList(spec.partitionColumns);
    for (int at = 0; at < fields.length; at++) {
      columns[at] = projection.vectors[at];
      if (columns[at] == null) {
        ConstantColumnVector constant =
            new ConstantColumnVector(Keys.BATCH_ROWS, fields[at].dataType());
        InternalRow values = new GenericInternalRow(split.partitions[partition]);
        ColumnVectorUtils.populate(constant, values, names.indexOf(fields[at].name()));
        columns[at] = constant;
      }
    }
    return columns;
  }
}
