package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.sql.Timestamp;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.TimestampNTZType;

/**
 * Comparisons with a wall clock, as bounds that are a little too wide.
 *
 * <p>ORC's statistics have nanoseconds, Spark's values microseconds; and a timestamp that is read
 * as an instant may be two days off the clock, whatever the time zone. So of a timestamp ORC is
 * only asked whether it is before some time.
 */
final class TimestampSearch {
  private static final long NTZ_SLACK_MICROS = 1000;
  private static final long SLACK_MICROS = TimeUnit.DAYS.toMicros(2);

  /** ORC reads times of the last second before 1970 as of the one after, but counts them right. */
  private static final long NEAR_1970_MICROS = TimeUnit.DAYS.toMicros(3);

  /** The years 1600 to 9999: before, calendars differ. */
  private static final long FIRST_MICROS = TimeUnit.DAYS.toMicros(-135_140);

  private static final long LAST_MICROS = TimeUnit.DAYS.toMicros(2_932_890);

  private TimestampSearch() {}

  static boolean isOne(TypeDescription column) {
    return column.getCategory() == TypeDescription.Category.TIMESTAMP;
  }

  /** Null: unknown, which is taken for true. */
  static SearchArguments.Condition comparison(
      String operator, SearchArguments.Column column, JsonNode filter, boolean isNegated) {
    String asked = isNegated ? SearchArguments.opposite(operator) : operator;
    Iterable<JsonNode> values =
        operator.equals("in")
            ? filter.path("values")
            : Collections.singletonList(filter.path("value"));
    long least = Long.MAX_VALUE;
    long greatest = Long.MIN_VALUE;
    for (JsonNode value : values) {
      JsonNode micros = value.path("value");
      if (!isComparable(micros)) {
        return null;
      }
      least = Math.min(least, micros.longValue());
      greatest = Math.max(greatest, micros.longValue());
    }
    return least > greatest ? null : between(asked, column, least, greatest);
  }

  private static SearchArguments.Condition between(
      String operator, SearchArguments.Column column, long least, long greatest) {
    long slack = column.read instanceof TimestampNTZType ? NTZ_SLACK_MICROS : SLACK_MICROS;
    SearchArguments.Condition isEarly = before(column.name, greatest + slack);
    SearchArguments.Condition isLate = SearchArguments.not(before(column.name, least - slack));
    switch (operator) {
      case "<":
      case "<=":
        return isEarly;
      case ">":
      case ">=":
        return isLate;
      case "=":
      case "<=>":
      case "in":
        return SearchArguments.all(isLate, isEarly);
      default:
        return null;
    }
  }

  private static SearchArguments.Condition before(String name, long micros) {
    Timestamp time = new Timestamp(Math.floorDiv(micros, 1_000_000L) * 1000);
    time.setNanos((int) Math.floorMod(micros, 1_000_000L) * 1000);
    return builder -> builder.lessThan(name, PredicateLeaf.Type.TIMESTAMP, time);
  }

  private static boolean isComparable(JsonNode micros) {
    return micros.isIntegralNumber()
        && micros.canConvertToLong()
        && Math.abs(micros.longValue()) > NEAR_1970_MICROS
        && micros.longValue() > FIRST_MICROS
        && micros.longValue() < LAST_MICROS;
  }
}
