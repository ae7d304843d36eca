package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * Spark's predicates as the plan service's trees (docs/format/plan-service.md, Filters).
 *
 * <p>A comparison with NULL is never true. It becomes unknown, and NULL is left out of a list:
 * under NOT either keeps more rows than Spark does, never fewer.
 */
final class FilterTree {
  /** What is nested deeper is unknown: Jackson reads and writes no more than 1,000 levels. */
  private static final int DEPTH_MAX = 100;

  private final SessionZone zone;

  FilterTree(SessionZone zone) {
    this.zone = zone;
  }

  /** The tree of them all; null if there is none. */
  JsonNode allOf(Predicate[] predicates) {
    if (predicates.length == 0) {
      return null;
    }
    return predicates.length == 1 ? tree(predicates[0], 0) : combined("and", predicates, 0);
  }

  /** Both, either of which may be null. */
  static JsonNode both(JsonNode left, JsonNode right) {
    if (left == null || right == null) {
      return left == null ? right : left;
    }
    ObjectNode tree = leaf("and");
    tree.putArray("children").add(left).add(right);
    return tree;
  }

  private JsonNode tree(Expression expression, int depth) {
    if (!(expression instanceof Predicate) || depth > DEPTH_MAX) {
      return leaf("unknown");
    }
    Expression[] children = expression.children();
    switch (((Predicate) expression).name()) {
      case "AND":
        return combined("and", children, depth);
      case "OR":
        return combined("or", children, depth);
      case "NOT":
        return leaf("not").<ObjectNode>set("child", tree(children[0], depth + 1));
      case "IN":
        return in(children);
      case "IS_NULL":
        return ofColumn("is_null", children[0]);
      case "IS_NOT_NULL":
        return ofColumn("is_not_null", children[0]);
      case "STARTS_WITH":
        return comparison("starts_with", children[0], children[1]);
      case "ALWAYS_TRUE":
        return leaf("true");
      case "ALWAYS_FALSE":
        return leaf("false");
      default:
        return eitherWay(((Predicate) expression).name(), children);
    }
  }

  /** A chain of one operator is one list: programs make chains of thousands. */
  private JsonNode combined(String op, Expression[] children, int depth) {
    ObjectNode tree = leaf(op);
    ArrayNode trees = tree.putArray("children");
    Deque<Expression> left = new ArrayDeque<>();
    pushAll(left, children);
    while (!left.isEmpty()) {
      Expression child = left.pop();
      if (child instanceof Predicate && ((Predicate) child).name().equalsIgnoreCase(op)) {
        pushAll(left, child.children());
      } else {
        trees.add(tree(child, depth + 1));
      }
    }
    return tree;
  }

  private static void pushAll(Deque<Expression> left, Expression[] children) {
    for (int i = children.length - 1; i >= 0; i--) {
      left.push(children[i]);
    }
  }

  private JsonNode in(Expression[] children) {
    ArrayNode values = Json.MAPPER.createArrayNode();
    for (int i = 1; i < children.length; i++) {
      if (isNull(children[i])) {
        continue;
      }
      JsonNode value = value(children[i]);
      if (value == null) {
        return leaf("unknown");
      }
      values.add(value);
    }
    JsonNode tree = ofColumn("in", children[0]);
    if (values.isEmpty()) {
      return leaf("false");
    }
    return tree.has("column") ? ((ObjectNode) tree).<ObjectNode>set("values", values) : tree;
  }

  /** Spark puts the literal on either side. */
  private JsonNode eitherWay(String op, Expression[] children) {
    String mirrored = mirrored(op);
    if (mirrored == null || children.length != 2) {
      return leaf("unknown");
    }
    return children[0] instanceof Literal
        ? comparison(mirrored, children[1], children[0])
        : comparison(op, children[0], children[1]);
  }

  private static String mirrored(String op) {
    switch (op) {
      case "=":
      case "<=>":
        return op;
      case "<":
        return ">";
      case "<=":
        return ">=";
      case ">":
        return "<";
      case ">=":
        return "<=";
      default:
        return null;
    }
  }

  private JsonNode comparison(String op, Expression column, Expression literal) {
    if (op.equals("<=>") && isNull(literal)) {
      return ofColumn("is_null", column);
    }
    JsonNode value = value(literal);
    JsonNode tree = value == null ? leaf("unknown") : ofColumn(op, column);
    return tree.has("column") ? ((ObjectNode) tree).<ObjectNode>set("value", value) : tree;
  }

  private static JsonNode ofColumn(String op, Expression column) {
    if (!(column instanceof NamedReference)) {
      return leaf("unknown");
    }
    return leaf(op).<ObjectNode>set("column", Json.tree(((NamedReference) column).fieldNames()));
  }

  private static boolean isNull(Expression expression) {
    return expression instanceof Literal && ((Literal<?>) expression).value() == null;
  }

  /** Null for what is no literal, or not of a type that is compared. */
  private JsonNode value(Expression expression) {
    if (!(expression instanceof Literal) || isNull(expression)) {
      return null;
    }
    Literal<?> literal = (Literal<?>) expression;
    Object value = PlanValues.toJson(literal.value(), literal.dataType(), zone);
    if (value == null) {
      return null;
    }
    ObjectNode typed = Json.object().put("type", literal.dataType().typeName());
    return typed.<ObjectNode>set("value", Json.tree(value));
  }

  private static ObjectNode leaf(String op) {
    return Json.object().put("op", op);
  }
}
