package ai.synheart.auth.backend;

import java.util.List;

/**
 * A request as the server received it.
 *
 * @param target path, and {@code ?} and query where there is a query, as on the wire: not decoded
 * @param headers every line, doubled ones too
 * @param body the raw bytes
 * @param peer the address of the other end of the connection
 */
public record Incoming(String method, String target, List<Header> headers, byte[] body, String peer) {
}
