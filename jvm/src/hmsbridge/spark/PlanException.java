package hmsbridge.spark;

/**
 * A question to the plan service that has no answer: the service's own kind and message.
 *
 * <p>Of a class that PySpark shows as an error of its own, without Java's stack.
 */
final class PlanException extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  static final String NO_SUCH_NAMESPACE = "NoSuchNamespace";
  static final String NO_SUCH_TABLE = "NoSuchTable";
  /** Ours: the service does not answer at all. */
  static final String UNREACHABLE = "Unreachable";

  private final String kind;

  PlanException(String kind, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
  }

  boolean is(String other) {
    return kind.equals(other);
  }
}
