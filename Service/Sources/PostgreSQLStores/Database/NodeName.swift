internal import AuthContract
internal import Bytes

/// What a node calls itself to the others: random, so that it is new with each start.
///
/// The number of a server's process would not do. The server gives it to another node's connection later.
struct NodeName: Sendable {
    let text = Hexadecimal.encode(SystemRandom().bytes(16))
}
