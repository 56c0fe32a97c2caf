package helenus;

import com.datastax.oss.driver.api.core.cql.Statement;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Operation ids for Cassandra's Java driver: a write that is sent again takes effect once.
 *
 * <pre>
 *   session.execute(Operations.named(add.bind("Blue in Green"), Operations.newId()));
 * </pre>
 *
 * The id travels in the custom payload, which the driver sends with every attempt of a request. So
 * its own retries, and speculative execution, are safe for statements that are not idempotent by
 * themselves: they are marked idempotent, and a node that knows the id answers without doing it
 * again. A program that tries again itself gives the same id. Batches are statements, too: all of
 * one is one operation.
 */
public final class Operations {
  private static final String PAYLOAD_KEY = "helenus-op";

  private Operations() {}

  /** A new name for an operation: a UUID of version 7. */
  public static UUID newId() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    long high = System.currentTimeMillis() << 16 | 0x7000L | random.nextLong(0x1000);
    return new UUID(high, random.nextLong() >>> 2 | 1L << 63);
  }

  /** The statement as the operation of that id. Statements are values: this is another one. */
  public static <S extends Statement<S>> S named(S statement, UUID id) {
    ByteBuffer bytes = ByteBuffer.allocate(16);
    bytes.putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits()).flip();
    Map<String, ByteBuffer> payload = new HashMap<>(statement.getCustomPayload());
    payload.put(PAYLOAD_KEY, bytes);
    return statement.setCustomPayload(payload).setIdempotent(true);
  }
}
