package hmsbridge.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's own catalog, but for the metastore's ACID tables, which Spark itself shows as empty or
 * with deleted rows. So no answer of the plan service is an error and never left to Spark.
 */
public final class AcidSessionCatalog extends DelegatingCatalogExtension {
  private String catalog;
  private PlanTables tables;

  /**
   * Connects to nothing yet: Spark uses its own catalog in silence if this fails
   * (CatalogManager.v2SessionCatalog).
   */
  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    super.initialize(name, options);
    catalog = name;
  }

  private synchronized PlanTables tables() {
    tables = tables == null ? new PlanTables(catalog) : tables.current();
    return tables;
  }

  /** Null for a table that is Spark's. */
  private Table acidTable(Identifier identifier) {
    try {
      return tables().load(identifier);
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    Table table = acidTable(identifier);
    if (table != null && isToBeDropped()) {
      throw new UnsupportedOperationException(
          "saveAsTable over " + identifier + " is refused: Spark would drop this ACID table before"
              + " it writes. Drop it yourself if that is meant, or use Hive or `hms-bridge sql`");
    }
    return table == null ? super.loadTable(identifier) : table;
  }

  /**
   * Whether a table is loaded by {@code frame.write.mode("overwrite").saveAsTable(name)}, which then
   * drops it by Spark's own catalog and asks nobody else (Spark 3.5: DataFrameWriter.saveAsTable, 4:
   * SaveAsV1TableCommand.run). The stack alone tells.
   */
  private static boolean isToBeDropped() {
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int at = 1; at < calls.length; at++) {
      String caller = calls[at].getClassName();
      if ((caller.endsWith(".DataFrameWriter") || caller.endsWith(".SaveAsV1TableCommand"))
          && calls[at - 1].getClassName().endsWith(".SparkSession")) {
        return true;
      }
    }
    return false;
  }

  @Override
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    if (acidTable(identifier) != null) {
      throw ReadOnly.refuseTimeTravel(identifier.toString());
    }
    return super.loadTable(identifier, version);
  }

  @Override
  public Table loadTable(Identifier identifier, long timestamp) throws NoSuchTableException {
    if (acidTable(identifier) != null) {
      throw ReadOnly.refuseTimeTravel(identifier.toString());
    }
    return super.loadTable(identifier, timestamp);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    return acidTable(identifier) != null || super.tableExists(identifier);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    boolean isOurs = BucketFunction.isNamed(identifier);
    return isOurs ? BucketFunction.load(identifier) : super.loadFunction(identifier);
  }

  /** Dropping is the metastore's work, as it is without us; a changed definition is a writer's. */
  @Override
  public Table alterTable(Identifier identifier, TableChange... changes)
      throws NoSuchTableException {
    if (acidTable(identifier) != null) {
      throw ReadOnly.refuse("ALTER TABLE", identifier.toString());
    }
    return super.alterTable(identifier, changes);
  }

  @Override
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    if (acidTable(from) != null) {
      throw ReadOnly.refuse("RENAME", from.toString());
    }
    super.renameTable(from, to);
  }
}
