package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VarcharType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values of the plan service's JSON against those that Spark keeps inside. */
final class PlanValues {
  private PlanValues() {}

  static boolean isText(DataType type) {
    return type instanceof StringType || type instanceof CharType || type instanceof VarcharType;
  }

  /** Values of a row's partition columns, which are none of timestamps. */
  static JsonNode toJson(Object[] values, DataType[] types) {
    Object[] told = new Object[values.length];
    for (int at = 0; at < told.length; at++) {
      told[at] = values[at] == null ? null : toJson(values[at], types[at], null);
    }
    return Json.tree(told);
  }

  /** The value of a partition column. */
  static Object fromJson(JsonNode value, DataType type, SessionZone zone) {
    if (value.isNull()) {
      return null;
    }
    if (isText(type)) {
      return UTF8String.fromString(value.asText());
    }
    if (type instanceof BooleanType) {
      return value.booleanValue();
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new BigDecimal(value.asText()), decimal.precision(), decimal.scale());
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      double number = value.isTextual() ? Double.parseDouble(value.asText()) : value.doubleValue();
      return type instanceof FloatType ? (Object) (float) number : (Object) number;
    }
    return fromInteger(value.longValue(), type, zone);
  }

  private static Object fromInteger(long value, DataType type, SessionZone zone) {
    if (type instanceof ByteType) {
      return (byte) value;
    }
    if (type instanceof ShortType) {
      return (short) value;
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return (int) value;
    }
    if (type instanceof LongType || type instanceof TimestampNTZType) {
      return value;
    }
    if (type instanceof TimestampType) {
      return zone.toInstant(value);
    }
    throw new UnsupportedOperationException("a partition column of type " + type.simpleString());
  }

  /** A literal's value for a filter; null for what the service need not compare. */
  static Object toJson(Object value, DataType type, SessionZone zone) {
    if (type instanceof StringType) {
      return type.equals(DataTypes.StringType) ? value.toString() : null;
    }
    if (type instanceof DecimalType) {
      return ((Decimal) value).toJavaBigDecimal().toPlainString();
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      double number = ((Number) value).doubleValue();
      return Double.isNaN(number) || Double.isInfinite(number) ? null : value;
    }
    if (type instanceof TimestampType) {
      return zone.fromInstant((Long) value);
    }
    boolean isPlain =
        type instanceof BooleanType
            || type instanceof ByteType
            || type instanceof ShortType
            || type instanceof IntegerType
            || type instanceof LongType
            || type instanceof DateType
            || type instanceof TimestampNTZType;
    return isPlain ? value : null;
  }
}
