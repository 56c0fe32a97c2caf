// The Java driver against a node: DriverTest PORT
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import helenus.Operations;
import java.net.InetSocketAddress;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;

public class DriverTest {
  private static void expect(boolean right, String what) {
    if (!right) throw new AssertionError("not so: " + what);
    System.out.println("ok: " + what);
  }

  public static void main(String[] arguments) {
    InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
    String nodes = System.getenv().getOrDefault("HELENUS_NODES", "1");
    DriverConfigLoader settings =
        DriverConfigLoader.programmaticBuilder()
            .withString(
                DefaultDriverOption.REQUEST_CONSISTENCY, nodes.equals("1") ? "ONE" : "QUORUM")
            .build();
    try (CqlSession session =
        CqlSession.builder()
            .withConfigLoader(settings)
            .addContactPoint(address)
            .withLocalDatacenter("datacenter1")
            .build()) {
      session.execute(
          "CREATE KEYSPACE ks WITH replication = "
              + "{'class': 'SimpleStrategy', 'replication_factor': "
              + nodes
              + "}");
      session.execute("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))");
      TableMetadata table =
          session.getMetadata().getKeyspace("ks").get().getTable("t").get();
      expect(table.getPartitionKey().size() == 1, "the schema has the table's key");
      expect(session.getMetadata().getTokenMap().isPresent(), "there is a map of tokens");

      PreparedStatement insert = session.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)");
      for (int i = 0; i < 1000; ++i) session.execute(insert.bind(i % 10, i, "v" + i));
      Set<String> seen = new HashSet<>();
      SimpleStatement select = SimpleStatement.newInstance("SELECT v FROM ks.t").setPageSize(77);
      for (Row row : session.execute(select)) seen.add(row.getString("v"));
      expect(seen.size() == 1000, "every row comes in some page");
      session.execute("CREATE TABLE ks.counted (k int PRIMARY KEY, n counter)");
      PreparedStatement add = session.prepare("UPDATE ks.counted SET n = n + ? WHERE k = 1");
      UUID one = Operations.newId();
      UUID several = Operations.newId();
      for (int i = 0; i < 3; ++i) {
        session.execute(Operations.named(add.bind(1L), one));
        BatchStatement batch =
            BatchStatement.newInstance(DefaultBatchType.COUNTER, add.bind(10L), add.bind(100L));
        session.execute(Operations.named(batch, several));
      }
      long counted = session.execute("SELECT n FROM ks.counted WHERE k = 1").one().getLong("n");
      expect(counted == 111, "what is sent again under its id counts once");
      boolean refused = false;
      try {
        session.execute("SELECT * FROM ks.nosuch");
      } catch (InvalidQueryException error) {
        refused = true;
      }
      expect(refused, "an unknown table is an invalid query");
    }
  }
}
