package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.TypeDescription;

/** A filter's value as ORC compares it with its statistics. */
final class SearchValue {
  /** Before this day java.sql.Date counts days by another calendar than Spark. */
  private static final LocalDate FIRST_DATE = LocalDate.of(1600, 1, 1);

  final PredicateLeaf.Type type;
  final Object literal;

  private SearchValue(PredicateLeaf.Type type, Object literal) {
    this.type = type;
    this.literal = literal;
  }

  /** What ORC takes a column for; null where its statistics are not compared as Spark compares. */
  static PredicateLeaf.Type leafType(TypeDescription column) {
    switch (column.getCategory()) {
      case BYTE:
      case SHORT:
      case INT:
      case LONG:
        return PredicateLeaf.Type.LONG;
      case FLOAT:
      case DOUBLE:
        return PredicateLeaf.Type.FLOAT;
      case BOOLEAN:
        return PredicateLeaf.Type.BOOLEAN;
      case STRING:
      case VARCHAR:
        return PredicateLeaf.Type.STRING;
      case DATE:
        return PredicateLeaf.Type.DATE;
      case DECIMAL:
        return PredicateLeaf.Type.DECIMAL;
      case TIMESTAMP:
        return PredicateLeaf.Type.TIMESTAMP;
      default:
        // Spark compares a char padded.
        return null;
    }
  }

  /**
   * Null if the value is null, or ORC would not compare it as Spark does.
   *
   * @param value type and value, as the plan service has them
   */
  static SearchValue of(JsonNode value, TypeDescription column) {
    PredicateLeaf.Type type = leafType(column);
    JsonNode given = value.path("value");
    if (type == null || given.isNull() || given.isMissingNode()) {
      return null;
    }
    Object literal = literal(type, given, column);
    return literal == null ? null : new SearchValue(type, literal);
  }

  private static Object literal(PredicateLeaf.Type type, JsonNode given, TypeDescription column) {
    switch (type) {
      case LONG:
        return given.isIntegralNumber() && given.canConvertToLong() ? given.longValue() : null;
      case FLOAT:
        return fraction(given, column);
      case BOOLEAN:
        return given.isBoolean() ? given.booleanValue() : null;
      case STRING:
        return given.isTextual() && isOrderedAlike(given.textValue()) ? given.textValue() : null;
      case DATE:
        return given.isIntegralNumber() ? date(given.longValue()) : null;
      case DECIMAL:
        return given.isTextual() ? decimal(given.textValue()) : null;
      default:
        return null;
    }
  }

  /** Spark takes both zeros for equal and a NaN for the greatest number, ORC's statistics do not. */
  private static Double fraction(JsonNode given, TypeDescription column) {
    if (!given.isNumber()) {
      return null;
    }
    boolean isSingle = column.getCategory() == TypeDescription.Category.FLOAT;
    double number = isSingle ? (float) given.doubleValue() : given.doubleValue();
    return number == 0 || Double.isNaN(number) || Double.isInfinite(number) ? null : number;
  }

  /** ORC writes the bounds of texts by their bytes and compares them by UTF-16. */
  private static boolean isOrderedAlike(String text) {
    return text.chars().allMatch(unit -> unit < Character.MIN_SURROGATE);
  }

  private static Date date(long days) {
    LocalDate date = LocalDate.ofEpochDay(days);
    return date.isBefore(FIRST_DATE) || date.getYear() > 9999 ? null : Date.valueOf(date);
  }

  private static HiveDecimalWritable decimal(String text) {
    HiveDecimal exact = HiveDecimal.create(new BigDecimal(text), false);
    return exact == null ? null : new HiveDecimalWritable(exact);
  }

  /** The first text behind all that begin with this one; null if that is not known. */
  SearchValue afterPrefix() {
    if (type != PredicateLeaf.Type.STRING || ((String) literal).isEmpty()) {
      return null;
    }
    String prefix = (String) literal;
    char last = prefix.charAt(prefix.length() - 1);
    if (last + 1 >= Character.MIN_SURROGATE) {
      return null;
    }
    return new SearchValue(type, prefix.substring(0, prefix.length() - 1) + (char) (last + 1));
  }
}
