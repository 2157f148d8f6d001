internal import AuthService
internal import RESP

/// The slots that a node of a Cluster gives away or imports. Keys of such a slot may be at either of two nodes.
enum MovingSlots {
    /// Reads the slots on a connection to the node.
    static func read(on connection: RedisConnection) async throws(StoreError) -> Set<Int> {
        let replies = try await connection.require([RESPCommand("CLUSTER", "NODES")], isBounded: false)
        guard let text = replies.first?.text, let slots = slots(in: text) else {
            throw StoreError(.unreadable, "Redis answered CLUSTER NODES in another form")
        }
        return slots
    }

    /// The slots in the node's own line of `CLUSTER NODES`: `[93-<-id]` is imported, and `[77->-id]` given away. Nil if there is no
    /// such line.
    ///
    /// Source: the documentation of `CLUSTER NODES`, *Special slot entries*.
    static func slots(in text: String) -> Set<Int>? {
        let lines = text.split(whereSeparator: \.isNewline).map { $0.split(separator: " ") }
        guard let own = lines.first(where: { $0.count >= 8 && $0[2].split(separator: ",").contains("myself") }) else {
            return nil
        }
        var slots: Set<Int> = []
        for entry in own[8...] where entry.first == "[" {
            guard let slot = Int(entry.dropFirst().prefix { $0.isNumber }), (0..<16384).contains(slot) else {
                return nil
            }
            slots.insert(slot)
        }
        return slots
    }
}
