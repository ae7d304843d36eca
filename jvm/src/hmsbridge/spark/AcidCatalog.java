package hmsbridge.spark;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog of the metastore's ACID tables, to read and to append to. */
public final class AcidCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog {
  private String name;
  private PlanTables tables;

  @Override
  public void initialize(String catalog, CaseInsensitiveStringMap options) {
    name = catalog;
    tables = new PlanTables(catalog);
  }

  private synchronized PlanTables tables() {
    tables = tables.current();
    return tables;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"default"};
  }

  @Override
  public String[][] listNamespaces() {
    return tables().namespaces();
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    return tables().namespace(namespace);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return tables().list(namespace);
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    Table table = tables().load(identifier);
    if (table == null) {
      throw new UnsupportedOperationException(
          identifier + " is a plain table or a view, and " + name + " has ACID tables only: read it"
              + " as spark_catalog." + identifier + " in a session with enableHiveSupport(), and with"
              + " session_catalog=True if it is a view over ACID tables");
    }
    return table;
  }

  @Override
  public Table loadTable(Identifier identifier, String version) {
    throw ReadOnly.refuseTimeTravel(identifier.toString());
  }

  @Override
  public Table loadTable(Identifier identifier, long timestamp) {
    throw ReadOnly.refuseTimeTravel(identifier.toString());
  }

  @Override
  public Table createTable(
      Identifier identifier,
      StructType schema,
      Transform[] partitions,
      Map<String, String> properties) {
    throw ReadOnly.refuse("CREATE TABLE", identifier.toString());
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    throw ReadOnly.refuse("ALTER TABLE", identifier.toString());
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    throw ReadOnly.refuse("DROP TABLE", identifier.toString());
  }

  @Override
  public boolean purgeTable(Identifier identifier) {
    throw ReadOnly.refuse("DROP TABLE", identifier.toString());
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw ReadOnly.refuse("RENAME", from.toString());
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    return BucketFunction.load(identifier);
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw ReadOnly.refuse("CREATE NAMESPACE", Arrays.toString(namespace));
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw ReadOnly.refuse("ALTER NAMESPACE", Arrays.toString(namespace));
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean isCascading) {
    throw ReadOnly.refuse("DROP NAMESPACE", Arrays.toString(namespace));
  }
}
