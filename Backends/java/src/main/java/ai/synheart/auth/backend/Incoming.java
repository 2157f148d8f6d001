package ai.synheart.auth.backend;

import java.util.List;

/**
 * A request as the server received it.
 *
 * @param target the path, with {@code ?} and the query if there is one, as on the wire: not decoded
 * @param headers every header line, also of a repeated header
 * @param body the raw bytes
 * @param peer the address of the other end of the connection
 */
public record Incoming(String method, String target, List<Header> headers, byte[] body, String peer) {
}
