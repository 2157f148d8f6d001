internal import AuthContract
internal import Bytes

/// The random id of a node's process, new with each start.
///
/// The process id of the server's connection cannot identify a node, because the server later reuses it for another node's
/// connection.
struct NodeID: Sendable {
    let text = Hexadecimal.encode(SystemRandom().bytes(16))
}
