package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.DataType;

/**
 * Turns a filter tree of the plan service into what ORC leaves out stripes and row groups by.
 *
 * <p>The result is true for every row for which the filter is: what ORC's statistics do not judge
 * just as Spark does is taken for true. So a {@code not} first goes down to the comparisons.
 */
final class SearchArguments {
  private final ReadSpec spec;
  private final TypeDescription row;

  private SearchArguments(ReadSpec spec, TypeDescription row) {
    this.spec = spec;
    this.row = row;
  }

  /** A condition that ORC can judge; adds itself to what is being built. */
  interface Condition {
    void addTo(SearchArgument.Builder builder);
  }

  /** Null if no row can be left out. */
  static SearchArgument of(ReadSpec spec, TypeDescription row) {
    if (spec.filter == null) {
      return null;
    }
    JsonNode filter;
    try {
      filter = Json.MAPPER.readTree(spec.filter);
    } catch (IOException error) {
      throw new IllegalArgumentException("the filter is no JSON: " + spec.filter, error);
    }
    Condition condition = new SearchArguments(spec, row).condition(filter, false);
    if (condition == null) {
      return null;
    }
    SearchArgument.Builder builder = SearchArgumentFactory.newBuilder().startAnd();
    condition.addTo(builder);
    return builder.end().build();
  }

  /**
   * Whether a file's statistics are of what is read of it. ORC itself knows of most conversions
   * that they are not, but not that a text may be cut off when it becomes a varchar.
   */
  static boolean fits(TypeDescription fileRow, TypeDescription row) {
    List<TypeDescription> columns = row.getChildren();
    List<TypeDescription> stored = fileRow.getChildren();
    for (int place = 0; place < Math.min(columns.size(), stored.size()); place++) {
      boolean isCut = columns.get(place).getCategory() == TypeDescription.Category.VARCHAR;
      if (isCut && !columns.get(place).equals(stored.get(place))) {
        return false;
      }
    }
    return true;
  }

  /** Null: unknown, which is taken for true. */
  private Condition condition(JsonNode filter, boolean isNegated) {
    String operator = filter.path("op").asText();
    switch (operator) {
      case "not":
        return condition(filter.path("child"), !isNegated);
      case "and":
      case "or":
        return joined(filter.path("children"), operator.equals("or") == isNegated, isNegated);
      default:
        Column column = column(filter.path("column"));
        return column == null ? null : comparison(operator, column, filter, isNegated);
    }
  }

  /** Of an AND what is unknown is left out, an OR is unknown as soon as one of it is. */
  private Condition joined(JsonNode children, boolean isAnd, boolean isNegated) {
    List<Condition> known = new ArrayList<>();
    for (JsonNode child : children) {
      Condition condition = condition(child, isNegated);
      if (condition != null) {
        known.add(condition);
      } else if (!isAnd) {
        return null;
      }
    }
    return known.isEmpty() ? null : joined(isAnd, known);
  }

  static Condition all(Condition... conditions) {
    return joined(true, Arrays.asList(conditions));
  }

  private static Condition joined(boolean isAnd, List<Condition> conditions) {
    return builder -> {
      SearchArgument.Builder open = isAnd ? builder.startAnd() : builder.startOr();
      conditions.forEach(condition -> condition.addTo(open));
      open.end();
    };
  }

  static Condition not(Condition condition) {
    return builder -> {
      builder.startNot();
      condition.addTo(builder);
      builder.end();
    };
  }

  /** A stored column as ORC looks it up: below {@code row} by itself, if the file has events. */
  static final class Column {
    final String name;
    final TypeDescription type;
    /** What Spark reads it as. */
    final DataType read;

    Column(String name, TypeDescription type, DataType read) {
      this.name = AcidTable.quoted(name);
      this.type = type;
      this.read = read;
    }

    Condition below(SearchValue value) {
      return builder -> builder.lessThan(name, value.type, value.literal);
    }

    Condition upTo(SearchValue value) {
      return builder -> builder.lessThanEquals(name, value.type, value.literal);
    }

    Condition equal(SearchValue value) {
      return builder -> builder.equals(name, value.type, value.literal);
    }
  }

  /**
   * Null for a column that the scan does not read, and for a field of a struct: where the struct is
   * null, ORC counts no null of the field.
   */
  private Column column(JsonNode names) {
    if (names.size() != 1) {
      return null;
    }
    String name = names.get(0).asText();
    int place = Arrays.asList(spec.columns).indexOf(name);
    boolean isRead = Arrays.asList(spec.schema.fieldNames()).contains(name);
    return place < 0 || !isRead
        ? null
        : new Column(name, row.getChildren().get(place), spec.schema.apply(name).dataType());
  }

  private Condition comparison(
      String operator, Column column, JsonNode filter, boolean isNegated) {
    if (operator.equals("is_null") || operator.equals("is_not_null")) {
      return isNull(column, operator.equals("is_null") == isNegated);
    }
    if (TimestampSearch.isOne(column.type)) {
      return TimestampSearch.comparison(operator, column, filter, isNegated);
    }
    if (operator.equals("in")) {
      return in(column, filter.path("values"), isNegated);
    }
    SearchValue value = SearchValue.of(filter.path("value"), column.type);
    return value == null ? null : compared(isNegated ? opposite(operator) : operator, column, value);
  }

  private static Condition compared(String operator, Column column, SearchValue value) {
    switch (operator) {
      case "=":
      case "<=>":
        return column.equal(value);
      case "!=":
        return not(column.equal(value));
      case "<":
        return column.below(value);
      case ">=":
        return not(column.below(value));
      case "<=":
        return column.upTo(value);
      case ">":
        return not(column.upTo(value));
      case "starts_with":
        SearchValue end = value.afterPrefix();
        return end == null ? null : all(not(column.below(value)), column.below(end));
      default:
        return null;
    }
  }

  /** What is true where the comparison is false. */
  static String opposite(String operator) {
    switch (operator) {
      case "=":
        return "!=";
      case "<":
        return ">=";
      case "<=":
        return ">";
      case ">":
        return "<=";
      case ">=":
        return "<";
      default:
        return "unknown";
    }
  }

  private static Condition isNull(Column column, boolean isNegated) {
    PredicateLeaf.Type type = SearchValue.leafType(column.type);
    if (type == null) {
      return null;
    }
    Condition isNull = builder -> builder.isNull(column.name, type);
    return isNegated ? not(isNull) : isNull;
  }

  /** A null among the values makes nothing true that is not, but its {@code not} never true. */
  private static Condition in(Column column, JsonNode values, boolean isNegated) {
    List<Object> literals = new ArrayList<>();
    PredicateLeaf.Type type = null;
    for (JsonNode node : values) {
      if (node.path("value").isNull() && !isNegated) {
        continue;
      }
      SearchValue value = SearchValue.of(node, column.type);
      if (value == null) {
        return null;
      }
      type = value.type;
      literals.add(value.literal);
    }
    if (literals.isEmpty()) {
      return null;
    }
    PredicateLeaf.Type known = type;
    Condition in = builder -> builder.in(column.name, known, literals.toArray());
    return isNegated ? not(in) : in;
  }
}
