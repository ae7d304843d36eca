package hmsbridge.spark;

import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.serde2.objectinspector.ListObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.MapObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.PrimitiveObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.io.Text;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * Values of Hive's SerDe of lines as Spark keeps them inside.
 *
 * <p>It gives dates and times as texts, since its calendar is Hive 2's; Spark parses them.
 */
final class HiveValues {
  /** Spark takes more for a time than Hive does. */
  private static final Pattern TIME =
      Pattern.compile(" *\\d+-\\d{1,2}-\\d{1,2}[ T]\\d{1,2}:\\d{1,2}:\\d{1,2}(\\.\\d{1,9})? *");

  private final SessionZone zone;

  HiveValues(String zone) {
    this.zone = new SessionZone(zone);
  }

  /** The field at a place of a struct: the SerDe has no names. */
  Object field(
      Object row, StructObjectInspector inspector, int place, DataType type, TypeDescription hive) {
    StructField field = inspector.getAllStructFieldRefs().get(place);
    Object value = inspector.getStructFieldData(row, field);
    return value(value, field.getFieldObjectInspector(), type, hive.getChildren().get(place));
  }

  private Object value(
      Object value, ObjectInspector inspector, DataType type, TypeDescription hive) {
    if (value == null) {
      return null;
    }
    if (inspector instanceof PrimitiveObjectInspector) {
      return primitive(value, (PrimitiveObjectInspector) inspector, type, hive);
    }
    DataType[] below = OrcVector.below(type);
    List<TypeDescription> children = hive.getChildren();
    if (inspector instanceof ListObjectInspector) {
      ListObjectInspector list = (ListObjectInspector) inspector;
      ObjectInspector element = list.getListElementObjectInspector();
      return array(list.getList(value), element, below[0], children.get(0));
    }
    if (inspector instanceof MapObjectInspector) {
      MapObjectInspector map = (MapObjectInspector) inspector;
      Map<?, ?> pairs = map.getMap(value);
      return new ArrayBasedMapData(
          array(pairs.keySet(), map.getMapKeyObjectInspector(), below[0], children.get(0)),
          array(pairs.values(), map.getMapValueObjectInspector(), below[1], children.get(1)));
    }
    Object[] row = new Object[below.length];
    for (int at = 0; at < row.length; at++) {
      int place = Projection.place(hive.getFieldNames(), ((StructType) type).fieldNames()[at]);
      row[at] = field(value, (StructObjectInspector) inspector, place, below[at], hive);
    }
    return new GenericInternalRow(row);
  }

  private GenericArrayData array(
      Iterable<?> items, ObjectInspector inspector, DataType type, TypeDescription hive) {
    List<Object> values = new ArrayList<>();
    items.forEach(item -> values.add(value(item, inspector, type, hive)));
    return new GenericArrayData(values.toArray());
  }

  private Object primitive(
      Object value, PrimitiveObjectInspector inspector, DataType type, TypeDescription hive) {
    Object plain = inspector.getPrimitiveJavaObject(value);
    switch (hive.getCategory()) {
      case STRING:
        return UTF8String.fromBytes(((Text) inspector.getPrimitiveWritableObject(value)).copyBytes());
      case CHAR:
        return UTF8String.fromString(plain.toString()).trimRight();
      case VARCHAR:
        return UTF8String.fromString(plain.toString());
      case DECIMAL:
        HiveDecimal decimal = (HiveDecimal) plain;
        return Decimal.apply(decimal.bigDecimalValue(), hive.getPrecision(), hive.getScale());
      case DATE:
        return orNull(DateTimeUtils.stringToDate(UTF8String.fromString((String) plain)));
      case TIMESTAMP:
        if (!TIME.matcher((String) plain).matches()) {
          return null;
        }
        UTF8String shown = UTF8String.fromString((String) plain);
        Object wall = orNull(DateTimeUtils.stringToTimestampWithoutTimeZone(shown, false));
        boolean isInstant = wall != null && type instanceof TimestampType;
        return isInstant ? (Object) zone.toInstant((Long) wall) : wall;
      case TIMESTAMP_INSTANT:
        UTF8String zoned = UTF8String.fromString((String) plain);
        return orNull(DateTimeUtils.stringToTimestamp(zoned, ZoneOffset.UTC));
      default:
        return plain;
    }
  }

  private static Object orNull(Option<Object> parsed) {
    return parsed.isDefined() ? parsed.get() : null;
  }
}
