package hmsbridge.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/**
 * What a scan reads of each row, and the vectors that all files of a task are read into.
 *
 * <p>Stored columns are found by their place, as Hive does; fields within them by name.
 */
final class Projection {
  final TypeDescription row;
  final TypeDescription event;
  final Keys keys = new Keys();
  /** Spark's vectors by their places in the scan's schema; null for partition columns. */
  final OrcVector[] vectors;
  final boolean hasColumns;
  final boolean hasRowId;

  private final SessionZone zone;
  private final boolean[] includedOfRow;
  /** ORC's vectors by the columns' places in the row; null for those that are not read. */
  private final ColumnVector[] columns;

  Projection(ReadSpec spec) {
    row = TypeDescription.fromString(spec.row);
    event = EventFile.schema(row);
    zone = new SessionZone(spec.zone);
    includedOfRow = new boolean[row.getMaximumId() + 1];
    columns = new ColumnVector[spec.columns.length];
    StructField[] fields = spec.schema.fields();
    vectors = new OrcVector[fields.length];
    List<String> partitions = Arrays.asList(spec.partitionColumns);
    List<String> stored = Arrays.asList(spec.columns);
    boolean foundRowId = false;
    for (int at = 0; at < fields.length; at++) {
      String name = fields[at].name();
      int place = stored.indexOf(name);
      if (place >= 0) {
        vectors[at] = column(fields[at].dataType(), place);
      } else if (name.equals(ReadSpec.ROW_ID)) {
        vectors[at] = rowId((StructType) fields[at].dataType());
        foundRowId = true;
      } else if (!partitions.contains(name)) {
        throw new IllegalArgumentException("the table has no column " + name);
      }
    }
    hasRowId = foundRowId;
    hasColumns = includedOfRow[0];
  }

  /** A batch for files that have the table's columns only. */
  VectorizedRowBatch rawBatch() {
    VectorizedRowBatch batch = new VectorizedRowBatch(columns.length, Keys.BATCH_ROWS);
    System.arraycopy(columns, 0, batch.cols, 0, columns.length);
    return batch;
  }

  VectorizedRowBatch eventBatch() {
    VectorizedRowBatch batch = new VectorizedRowBatch(EventFile.COLUMNS, Keys.BATCH_ROWS);
    batch.cols[EventFile.WRITE_ID] = keys.writeIds;
    batch.cols[EventFile.BUCKET] = keys.buckets;
    batch.cols[EventFile.ROW_ID] = keys.rowIds;
    batch.cols[EventFile.CURRENT_WRITE_ID] = keys.currentWriteIds;
    batch.cols[EventFile.ROW] = rowVector();
    return batch;
  }

  /** ORC fills each vector of a struct, also for what is not read: one takes all of that. */
  private StructColumnVector rowVector() {
    ColumnVector unread = new StructColumnVector(Keys.BATCH_ROWS);
    ColumnVector[] filled = columns.clone();
    for (int place = 0; place < filled.length; place++) {
      if (filled[place] == null) {
        filled[place] = unread;
      }
    }
    return new StructColumnVector(Keys.BATCH_ROWS, filled);
  }

  /** Which of ORC's numbered columns are read of a file that has the table's columns only. */
  boolean[] includedOfRow() {
    return includedOfRow.clone();
  }

  boolean[] includedOfEvent(boolean needsKeys, boolean needsCurrent) {
    boolean[] included = new boolean[event.getMaximumId() + 1];
    included[0] = true;
    included[EventFile.id(EventFile.WRITE_ID)] = needsKeys;
    included[EventFile.id(EventFile.BUCKET)] = needsKeys;
    included[EventFile.id(EventFile.ROW_ID)] = needsKeys;
    included[EventFile.id(EventFile.CURRENT_WRITE_ID)] = needsCurrent;
    int first = EventFile.id(EventFile.ROW);
    System.arraycopy(includedOfRow, 0, included, first, includedOfRow.length);
    return included;
  }

  private OrcVector column(DataType type, int place) {
    TypeDescription column = row.getChildren().get(place);
    columns[place] =
        TypeDescription.createStruct()
            .addField("column", column.clone())
            .createRowBatch(TypeDescription.RowBatchVersion.ORIGINAL, Keys.BATCH_ROWS)
            .cols[0];
    includedOfRow[0] = true;
    return vector(type, column, columns[place]);
  }

  private OrcVector vector(DataType type, TypeDescription column, ColumnVector source) {
    includedOfRow[column.getId()] = true;
    if (type instanceof StructType) {
      return struct((StructType) type, column, source);
    }
    if (type instanceof ArrayType) {
      DataType element = ((ArrayType) type).elementType();
      return nested(type, column, source, element);
    }
    if (type instanceof MapType) {
      MapType map = (MapType) type;
      return nested(type, column, source, map.keyType(), map.valueType());
    }
    boolean isWallClock =
        type instanceof TimestampType
            && column.getCategory() == TypeDescription.Category.TIMESTAMP;
    return new OrcVector(type, source, isWallClock ? zone : null);
  }

  private OrcVector struct(StructType type, TypeDescription column, ColumnVector source) {
    StructField[] fields = type.fields();
    OrcVector[] children = new OrcVector[fields.length];
    for (int at = 0; at < fields.length; at++) {
      int place = place(column.getFieldNames(), fields[at].name());
      TypeDescription child = column.getChildren().get(place);
      children[at] = vector(fields[at].dataType(), child, OrcVector.below(source)[place]);
    }
    return new OrcVector(type, source, null, children);
  }

  private OrcVector nested(
      DataType type, TypeDescription column, ColumnVector source, DataType... wanted) {
    ColumnVector[] below = OrcVector.below(source);
    OrcVector[] children = new OrcVector[wanted.length];
    for (int at = 0; at < wanted.length; at++) {
      children[at] = vector(wanted[at], column.getChildren().get(at), below[at]);
    }
    return new OrcVector(type, source, null, children);
  }

  static int place(List<String> names, String wanted) {
    for (int place = 0; place < names.size(); place++) {
      if (names.get(place).equalsIgnoreCase(wanted)) {
        return place;
      }
    }
    throw new IllegalArgumentException("the table has no field " + wanted + " among " + names);
  }

  /** Spark leaves out fields that a statement does not ask for. */
  private OrcVector rowId(StructType type) {
    StructField[] fields = type.fields();
    OrcVector[] children = new OrcVector[fields.length];
    for (int at = 0; at < fields.length; at++) {
      children[at] = new OrcVector(fields[at].dataType(), key(fields[at].name()), null);
    }
    return new OrcVector(type, new StructColumnVector(Keys.BATCH_ROWS), null, children);
  }

  private ColumnVector key(String name) {
    switch (name) {
      case "writeid":
        return keys.writeIds;
      case "bucketid":
        return keys.buckets;
      case "rowid":
        return keys.rowIds;
      default:
        throw new IllegalArgumentException("ROW__ID has no field " + name);
    }
  }
}
