package hmsbridge.spark;

import java.time.LocalDate;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DateColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Makes the setters of a write's columns. */
final class ColumnSetters {
  /** What Decimal keeps in a long. */
  private static final int LONG_DIGITS = 18;
  private static final long MICROS = 1_000_000L;

  private static final long DAY_MICROS = 86_400L * MICROS;
  /** 1582-10-05 to -14 by Spark's calendar: there are no such days in that of Hive's files. */
  private static final long GAP_FIRST = -141_437;
  private static final long GAP_END = -141_427;
  /** Of the last second before 1970, from its first whole millisecond. */
  private static final long LOST_FIRST = 1000 - MICROS;

  private ColumnSetters() {}

  /** Days are of the calendar that Spark counts by, timestamps are a wall clock's. */
  static void startBatch(VectorizedRowBatch batch) {
    for (ColumnVector column : batch.cols) {
      start(column);
    }
  }

  private static void start(ColumnVector vector) {
    if (vector instanceof DateColumnVector) {
      ((DateColumnVector) vector).changeCalendar(true, false);
    } else if (vector instanceof TimestampColumnVector) {
      TimestampColumnVector times = (TimestampColumnVector) vector;
      times.setIsUTC(true);
      times.changeCalendar(true, false);
    } else if (vector instanceof StructColumnVector
        || vector instanceof MultiValuedColumnVector) {
      for (ColumnVector below : OrcVector.below(vector)) {
        start(below);
      }
    }
  }

  /**
   * @param orc the stored type: for a timestamp it tells a wall clock from an instant
   * @param zone whose wall clock it is
   */
  static ColumnSetter of(DataType type, TypeDescription orc, SessionZone zone) {
    ColumnSetter value = ofValue(type, orc, zone);
    return (to, at, from, ordinal) -> {
      if (from.isNullAt(ordinal)) {
        to.noNulls = false;
        to.isNull[at] = true;
      } else {
        to.isNull[at] = false;
        value.set(to, at, from, ordinal);
      }
    };
  }

  private static ColumnSetter ofValue(DataType type, TypeDescription orc, SessionZone zone) {
    if (type instanceof StructType) {
      return ofStruct((StructType) type, orc, zone);
    }
    if (type instanceof ArrayType) {
      return ofList(of(((ArrayType) type).elementType(), orc.getChildren().get(0), zone));
    }
    if (type instanceof MapType) {
      MapType map = (MapType) type;
      return ofMap(
          of(map.keyType(), orc.getChildren().get(0), zone),
          of(map.valueType(), orc.getChildren().get(1), zone));
    }
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      boolean isWallClock =
          type instanceof TimestampType
              && orc.getCategory() == TypeDescription.Category.TIMESTAMP;
      return ofTimestamp(isWallClock ? zone : null);
    }
    if (type instanceof DecimalType) {
      return ofDecimal((DecimalType) type);
    }
    return ofPlain(type);
  }

  private static ColumnSetter ofPlain(DataType type) {
    if (type instanceof BooleanType) {
      return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = from.getBoolean(n) ? 1 : 0;
    }
    if (type instanceof ByteType) {
      return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = from.getByte(n);
    }
    if (type instanceof ShortType) {
      return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = from.getShort(n);
    }
    if (type instanceof LongType) {
      return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = from.getLong(n);
    }
    if (type instanceof FloatType) {
      return (to, at, from, n) -> ((DoubleColumnVector) to).vector[at] = from.getFloat(n);
    }
    if (type instanceof DoubleType) {
      return (to, at, from, n) -> ((DoubleColumnVector) to).vector[at] = from.getDouble(n);
    }
    if (type instanceof BinaryType) {
      return (to, at, from, n) -> setBytes(to, at, from.getBinary(n));
    }
    if (type instanceof DateType) {
      return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = storable(from.getInt(n));
    }
    if (PlanValues.isText(type)) {
      return (to, at, from, n) -> setBytes(to, at, from.getUTF8String(n).getBytes());
    }
    return (to, at, from, n) -> ((LongColumnVector) to).vector[at] = from.getInt(n);
  }

  private static int storable(int day) {
    if (GAP_FIRST <= day && day < GAP_END) {
      throw unstorable(LocalDate.ofEpochDay(day) + ": in the calendar of Hive's files 1582-10-15"
          + " follows 1582-10-04");
    }
    return day;
  }

  private static IllegalArgumentException unstorable(String what) {
    return new IllegalArgumentException("a value cannot be stored as Hive's ORC has it: " + what);
  }

  private static void setBytes(ColumnVector to, int at, byte[] bytes) {
    ((BytesColumnVector) to).setRef(at, bytes, 0, bytes.length);
  }

  private static ColumnSetter ofDecimal(DecimalType type) {
    int precision = type.precision();
    int scale = type.scale();
    return (to, at, from, ordinal) -> {
      DecimalColumnVector decimals = (DecimalColumnVector) to;
      Decimal value = from.getDecimal(ordinal, precision, scale);
      if (precision <= LONG_DIGITS) {
        decimals.vector[at].setFromLongAndScale(value.toUnscaledLong(), scale);
      } else {
        decimals.set(at, HiveDecimal.create(value.toJavaBigDecimal()));
      }
    };
  }

  private static ColumnSetter ofTimestamp(SessionZone zone) {
    return (to, at, from, ordinal) -> {
      TimestampColumnVector times = (TimestampColumnVector) to;
      long given = from.getLong(ordinal);
      long micros = zone == null ? given : zone.toWallClock(given);
      storable((int) Math.floorDiv(micros, DAY_MICROS));
      if (LOST_FIRST <= micros && micros < 0) {
        throw unstorable("a fraction of the last second before 1970, which all readers would show a"
            + " second later");
      }
      times.time[at] = Math.floorDiv(micros, 1000L);
      times.nanos[at] = (int) Math.floorMod(micros, MICROS) * 1000;
    };
  }

  private static ColumnSetter ofStruct(StructType type, TypeDescription orc, SessionZone zone) {
    StructField[] fields = type.fields();
    ColumnSetter[] setters = new ColumnSetter[fields.length];
    for (int field = 0; field < setters.length; field++) {
      setters[field] = of(fields[field].dataType(), orc.getChildren().get(field), zone);
    }
    return (to, at, from, ordinal) -> {
      ColumnVector[] below = ((StructColumnVector) to).fields;
      SpecializedGetters struct = from.getStruct(ordinal, setters.length);
      for (int field = 0; field < setters.length; field++) {
        setters[field].set(below[field], at, struct, field);
      }
    };
  }

  private static ColumnSetter ofList(ColumnSetter element) {
    return (to, at, from, ordinal) -> {
      ListColumnVector list = (ListColumnVector) to;
      ArrayData values = from.getArray(ordinal);
      int start = reserve(list, at, values.numElements());
      list.child.ensureSize(list.childCount, true);
      for (int place = 0; place < values.numElements(); place++) {
        element.set(list.child, start + place, values, place);
      }
    };
  }

  private static ColumnSetter ofMap(ColumnSetter key, ColumnSetter value) {
    return (to, at, from, ordinal) -> {
      MapColumnVector map = (MapColumnVector) to;
      MapData values = from.getMap(ordinal);
      int start = reserve(map, at, values.numElements());
      map.keys.ensureSize(map.childCount, true);
      map.values.ensureSize(map.childCount, true);
      for (int place = 0; place < values.numElements(); place++) {
        key.set(map.keys, start + place, values.keyArray(), place);
        value.set(map.values, start + place, values.valueArray(), place);
      }
    };
  }

  /** Where the values of the row begin among those of the batch. */
  private static int reserve(MultiValuedColumnVector vector, int at, int count) {
    int start = vector.childCount;
    vector.offsets[at] = start;
    vector.lengths[at] = count;
    vector.childCount += count;
    return start;
  }
}
