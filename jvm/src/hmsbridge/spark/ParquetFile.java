package hmsbridge.spark;

import java.io.IOException;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Reads a Parquet file by Spark's own reader, with dates and times as Hive meant them.
 *
 * <p>Hive keeps a wall clock as the instant at which it was shown in the writer's zone. Before
 * 1582-10-15 Hive 4 counts days by the Julian calendar; Hive 3.1, which does not say so, does not.
 */
final class ParquetFile implements BatchFile {
  /** What Spark's reader asks of a configuration; a session's own settings do not count. */
  private static final String[][] SETTINGS = {
    {"parquet.read.support.class", ParquetReadSupport.class.getName()},
    {"spark.sql.caseSensitive", "false"},
    {"spark.sql.parquet.binaryAsString", "false"},
    {"spark.sql.parquet.int96AsTimestamp", "true"},
    {"spark.sql.parquet.inferTimestampNTZ.enabled", "true"},
    {"spark.sql.legacy.parquet.nanosAsLong", "false"},
    {"spark.sql.parquet.fieldId.read.enabled", "false"},
  };

  private final VectorizedParquetRecordReader reader;
  private final StructField[] fields;
  /** Where the reader's batches have the columns of the scan; -1: nowhere. */
  private final int[] places;
  private final SessionZone zone;
  private final ZoneId writerZone;

  ParquetFile(ScanFile file, ReadSpec spec, Configuration configuration) throws IOException {
    zone = new SessionZone(spec.zone);
    fields = spec.schema.fields();
    places = new int[fields.length];
    StructType wanted = new StructType();
    List<String> stored = Arrays.asList(spec.columns);
    for (int at = 0; at < fields.length; at++) {
      places[at] = stored.contains(fields[at].name()) ? wanted.size() : -1;
      wanted = places[at] < 0 ? wanted : wanted.add(fields[at]);
    }
    Path path = file.file.place(configuration);
    FileMetaData footer = footer(path, configuration);
    Map<String, String> writer = footer.getKeyValueMetaData();
    writerZone = ZoneId.of(writer.getOrDefault("writer.time.zone", spec.zone));
    String proleptic = writer.get("writer.date.proleptic");
    boolean isHive3 = proleptic == null && writer.containsKey("writer.time.zone");
    String days = isHive3 || "true".equals(proleptic) ? "CORRECTED" : "LEGACY";
    String times = proleptic == null ? "CORRECTED" : "LEGACY";
    reader =
        new VectorizedParquetRecordReader(null, days, "UTC", times, "UTC", false, Keys.BATCH_ROWS);
    Configuration settings = new Configuration(configuration);
    for (String[] setting : SETTINGS) {
      settings.set(setting[0], setting[1]);
    }
    String asked = wanted.json().replaceAll("([tT]ype\":\"timestamp)_ntz\"", "$1\"");
    settings.set("org.apache.spark.sql.parquet.row.requested_schema", asked);
    try {
      reader.initialize(
          new FileSplit(path, file.start, file.span(), new String[0]),
          new TaskAttemptContextImpl(settings, new TaskAttemptID()));
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
    reader.initBatch(new StructType(), new GenericInternalRow(0));
  }

  private static FileMetaData footer(Path path, Configuration configuration) throws IOException {
    try (ParquetFileReader opened =
        ParquetFileReader.open(HadoopInputFile.fromPath(path, configuration))) {
      FileMetaData footer = opened.getFooter().getFileMetaData();
      for (ColumnDescriptor column : footer.getSchema().getColumns()) {
        if (column.getPrimitiveType().getLogicalTypeAnnotation()
            instanceof TimestampLogicalTypeAnnotation) {
          throw new IOException(
              "column " + String.join(".", column.getPath())
                  + " has timestamps as INT64, which are not read here; read the table with Hive");
        }
      }
      return footer;
    }
  }

  @Override
  public int next() throws IOException {
    if (!reader.nextBatch()) {
      return 0;
    }
    for (int at = 0; at < fields.length; at++) {
      if (places[at] >= 0) {
        WritableColumnVector column = (WritableColumnVector) vector(at);
        convert(column, fields[at].dataType(), 0, reader.resultBatch().numRows());
      }
    }
    return reader.resultBatch().numRows();
  }

  /** Times become wall clocks, or instants of the session's zone, where they stand. */
  private void convert(WritableColumnVector column, DataType type, int first, int count) {
    boolean isUtc = writerZone.normalized().equals(ZoneOffset.UTC);
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType;
    DataType[] below = OrcVector.below(type);
    for (int at = 0; type instanceof StructType && at < below.length; at++) {
      convert(column.getChild(at), below[at], first, count);
    }
    if (type instanceof StructType || !isTime && below.length == 0) {
      return;
    }
    for (int row = first; row < first + count; row++) {
      if (isTime && !column.isNullAt(row)) {
        long stored = column.getLong(row);
        long wall = isUtc ? stored : DateTimeUtils.convertTz(stored, ZoneOffset.UTC, writerZone);
        column.putLong(row, type instanceof TimestampType ? zone.toInstant(wall) : wall);
      }
      for (int at = 0; at < below.length && !column.isNullAt(row); at++) {
        int offset = column.getArrayOffset(row);
        convert(column.getChild(at), below[at], offset, column.getArrayLength(row));
      }
    }
  }

  @Override
  public ColumnVector vector(int at) {
    return places[at] < 0 ? null : reader.resultBatch().column(places[at]);
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
