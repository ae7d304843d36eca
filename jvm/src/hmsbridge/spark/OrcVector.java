package hmsbridge.spark;

import java.util.Arrays;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A vector of ORC's as one of Spark's, without a copy; of its rows those that survived.
 *
 * <p>Before each batch {@link #begin} must be called. It keeps what ORC's vector holds (arrays that
 * ORC may replace), so that a value costs as little as in Spark's own vectors.
 */
final class OrcVector extends org.apache.spark.sql.vectorized.ColumnVector {
  /** What Decimal keeps in a long. */
  private static final int LONG_DIGITS = 18;

  /** Zeros: the places of rows that all have the first value. Shared, never written to. */
  private static volatile int[] firstPlaces = new int[Keys.BATCH_ROWS];

  private final ColumnVector source;
  private final OrcVector[] children;
  /** Set for a wall clock that is read as an instant. */
  private final SessionZone zone;

  /** Where ORC's vector has each row; null: at its own place. */
  private int[] places;
  private boolean[] nulls;
  private long[] longs;
  private double[] doubles;
  private byte[][] bytes;
  private int[] starts;
  private int[] lengths;
  private long[] offsets;
  private long[] counts;
  private int[] nanos;
  private HiveDecimalWritable[] decimals;

  OrcVector(DataType type, ColumnVector source, SessionZone zone, OrcVector... children) {
    super(type);
    this.source = source;
    this.zone = zone;
    this.children = children;
  }

  /**
   * Shows ORC's vector as it is now.
   *
   * @param survivors places of the rows to show; null: all
   * @param isParentRepeated whether the first value is that of all rows
   */
  void begin(int[] survivors, boolean isParentRepeated) {
    boolean isRepeated = isParentRepeated || source.isRepeating;
    places = isRepeated ? firstPlaces(source.isNull.length) : survivors;
    nulls = source.noNulls ? null : source.isNull;
    keepArrays();
    boolean isStruct = source instanceof StructColumnVector;
    for (OrcVector child : children) {
      child.begin(isStruct ? survivors : null, isStruct && isRepeated);
    }
  }

  private void keepArrays() {
    if (source instanceof LongColumnVector) {
      longs = ((LongColumnVector) source).vector;
    } else if (source instanceof BytesColumnVector) {
      BytesColumnVector texts = (BytesColumnVector) source;
      bytes = texts.vector;
      starts = texts.start;
      lengths = texts.length;
    } else if (source instanceof DoubleColumnVector) {
      doubles = ((DoubleColumnVector) source).vector;
    } else if (source instanceof DecimalColumnVector) {
      decimals = ((DecimalColumnVector) source).vector;
    } else if (source instanceof TimestampColumnVector) {
      longs = ((TimestampColumnVector) source).time;
      nanos = ((TimestampColumnVector) source).nanos;
    } else if (source instanceof MultiValuedColumnVector) {
      offsets = ((MultiValuedColumnVector) source).offsets;
      counts = ((MultiValuedColumnVector) source).lengths;
    }
  }

  private static int[] firstPlaces(int size) {
    int[] zeros = firstPlaces;
    if (zeros.length < size) {
      zeros = new int[size];
      firstPlaces = zeros;
    }
    return zeros;
  }

  private int at(int row) {
    return places == null ? row : places[row];
  }

  @Override
  public boolean isNullAt(int row) {
    return nulls != null && nulls[at(row)];
  }

  @Override
  public boolean hasNull() {
    return nulls != null;
  }

  /** As many as there may be: nobody counts them, and Spark asks for none or some only. */
  @Override
  public int numNulls() {
    return nulls == null ? 0 : nulls.length;
  }

  @Override
  public boolean getBoolean(int row) {
    return longs[at(row)] == 1;
  }

  @Override
  public byte getByte(int row) {
    return (byte) longs[at(row)];
  }

  @Override
  public short getShort(int row) {
    return (short) longs[at(row)];
  }

  @Override
  public int getInt(int row) {
    return (int) longs[at(row)];
  }

  @Override
  public long getLong(int row) {
    int at = at(row);
    return nanos == null ? longs[at] : micros(at);
  }

  /** Cut off towards the past: ORC keeps milliseconds, and the nanoseconds of the second. */
  private long micros(int at) {
    long micros = Math.floorDiv(longs[at], 1000L) * 1_000_000L + nanos[at] / 1000;
    return zone == null ? micros : zone.toInstant(micros);
  }

  @Override
  public float getFloat(int row) {
    return (float) doubles[at(row)];
  }

  @Override
  public double getDouble(int row) {
    return doubles[at(row)];
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    int at = at(row);
    if (nulls != null && nulls[at]) {
      return null;
    }
    if (precision <= LONG_DIGITS) {
      return Decimal.createUnsafe(decimals[at].serialize64(scale), precision, scale);
    }
    return Decimal.apply(decimals[at].getHiveDecimal().bigDecimalValue(), precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    int at = at(row);
    if (nulls != null && nulls[at]) {
      return null;
    }
    return UTF8String.fromBytes(bytes[at], starts[at], lengths[at]);
  }

  @Override
  public byte[] getBinary(int row) {
    int at = at(row);
    if (nulls != null && nulls[at]) {
      return null;
    }
    byte[] copy = new byte[lengths[at]];
    System.arraycopy(bytes[at], starts[at], copy, 0, copy.length);
    return copy;
  }

  @Override
  public ColumnarArray getArray(int row) {
    int at = at(row);
    if (nulls != null && nulls[at]) {
      return null;
    }
    return new ColumnarArray(children[0], (int) offsets[at], (int) counts[at]);
  }

  @Override
  public ColumnarMap getMap(int row) {
    int at = at(row);
    if (nulls != null && nulls[at]) {
      return null;
    }
    return new ColumnarMap(children[0], children[1], (int) offsets[at], (int) counts[at]);
  }

  @Override
  public OrcVector getChild(int ordinal) {
    return children[ordinal];
  }

  /** Nothing to free: the reader reuses ORC's vectors. */
  @Override
  public void close() {}

  /** The types below a nested one, in the same order; none below others. */
  static DataType[] below(DataType type) {
    if (type instanceof StructType) {
      StructType struct = (StructType) type;
      return Arrays.stream(struct.fields()).map(StructField::dataType).toArray(DataType[]::new);
    }
    if (type instanceof ArrayType) {
      return new DataType[] {((ArrayType) type).elementType()};
    }
    boolean isMap = type instanceof MapType;
    return isMap
        ? new DataType[] {((MapType) type).keyType(), ((MapType) type).valueType()}
        : new DataType[0];
  }

  /** ORC's vectors below one of a nested type, in its order. */
  static ColumnVector[] below(ColumnVector vector) {
    if (vector instanceof StructColumnVector) {
      return ((StructColumnVector) vector).fields;
    }
    if (vector instanceof ListColumnVector) {
      return new ColumnVector[] {((ListColumnVector) vector).child};
    }
    MapColumnVector map = (MapColumnVector) vector;
    return new ColumnVector[] {map.keys, map.values};
  }
}
