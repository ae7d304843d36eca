package hmsbridge.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.TextInputFormat;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Reads a file of lines by Hive's own SerDe. */
final class TextFile implements BatchFile {
  private final RecordReader<LongWritable, Text> lines;
  private final LazySimpleSerDe serde = serde();
  private final TypeDescription row;
  private final HiveValues values;
  private final StructField[] fields;
  /** Places of the scan's columns in a line; -1: not there. */
  private final int[] places;
  private final OnHeapColumnVector[] vectors;
  private final RowToColumnConverter converter;

  TextFile(ScanFile file, ReadSpec spec, Configuration configuration) throws IOException {
    row = TypeDescription.fromString(spec.row);
    values = new HiveValues(spec.zone);
    fields = spec.schema.fields();
    places = new int[fields.length];
    for (int at = 0; at < fields.length; at++) {
      places[at] = Arrays.asList(spec.columns).indexOf(fields[at].name());
    }
    vectors = OnHeapColumnVector.allocateColumns(Keys.BATCH_ROWS, fields);
    converter = new RowToColumnConverter(spec.schema);
    Properties settings = new Properties();
    settings.putAll(spec.text);
    JobConf job = new JobConf(configuration);
    TextInputFormat format = new TextInputFormat();
    format.configure(job);
    FileSplit split = 
        new FileSplit(
            file.file.place(configuration), file.start, file.span(), new String[0]);
    try {
      serde.initialize(job, settings);
    } catch (SerDeException e) {
      throw new IOException(e);
    }
    lines = format.getRecordReader(split, job, Reporter.NULL);
  }

  private static LazySimpleSerDe serde() throws IOException {
    try {
      return new LazySimpleSerDe();
    } catch (SerDeException e) {
      throw new IOException(e);
    }
  }

  @Override
  public int next() throws IOException {
    for (OnHeapColumnVector vector : vectors) {
      vector.reset();
    }
    LongWritable offset = new LongWritable();
    Text line = new Text();
    int count = 0;
    try {
      while (count < Keys.BATCH_ROWS && lines.next(offset, line)) {
        converter.convert(read(line), vectors);
        count++;
      }
    } catch (SerDeException e) {
      throw new IOException("a line before byte " + lines.getPos(), e);
    }
    return count;
  }

  private GenericInternalRow read(Text line) throws SerDeException {
    Object read = serde.deserialize(line);
    StructObjectInspector inspector = (StructObjectInspector) serde.getObjectInspector();
    Object[] found = new Object[fields.length];
    for (int at = 0; at < fields.length; at++) {
      if (places[at] >= 0) {
        found[at] = values.field(read, inspector, places[at], fields[at].dataType(), row);
      }
    }
    return new GenericInternalRow(found);
  }

  @Override
  public ColumnVector vector(int at) {
    return places[at] < 0 ? null : vectors[at];
  }

  @Override
  public void close() throws IOException {
    lines.close();
  }
}
