internal import AuthService
internal import RESP

extension ClusterMap {
    /// The owner of each range of slots, as one node sees it, and the slots that this node gives away or imports.
    struct View: Sendable {
        let ranges: [(slots: ClosedRange<Int>, owner: RedisURL.Endpoint)]
        var moving: Set<Int> = []

        var masters: Set<RedisURL.Endpoint> { Set(ranges.map(\.owner)) }

        /// Reads the replies to `CLUSTER SLOTS` and `CLUSTER NODES`.
        ///
        /// - Parameter asked: the node that answered. Its reply may leave out its own host.
        init?(_ slots: RESPValue, nodes: RESPValue, from asked: RedisURL.Endpoint) {
            guard let text = nodes.text, let moving = Self.moving(in: text) else { return nil }
            self.init(slots, from: asked)
            self.moving = moving
        }

        /// The slots in the node's own line of `CLUSTER NODES`: `[93-<-id]` is imported, and `[77->-id]` given away. Nil if there is
        /// no such line.
        ///
        /// Source: the documentation of `CLUSTER NODES`, *Special slot entries*.
        static func moving(in text: String) -> Set<Int>? {
            let lines = text.split(whereSeparator: \.isNewline).map { $0.split(separator: " ") }
            guard
                let own = lines.first(where: { line in
                    line.count >= 8 && line[2].split(separator: ",").contains("myself")
                })
            else { return nil }
            var moving: Set<Int> = []
            for entry in own[8...] where entry.first == "[" {
                guard let slot = Int(entry.dropFirst().prefix { $0.isNumber }), (0..<16384).contains(slot) else {
                    return nil
                }
                moving.insert(slot)
            }
            return moving
        }

        /// Reads the reply to `CLUSTER SLOTS`.
        init?(_ value: RESPValue, from asked: RedisURL.Endpoint) {
            guard let entries = value.elements, !entries.isEmpty else { return nil }
            var ranges: [(ClosedRange<Int>, RedisURL.Endpoint)] = []
            for entry in entries {
                guard let parts = entry.elements, parts.count >= 3, let first = parts[0].integer,
                    let last = parts[1].integer, 0 <= first, first <= last, last < 16384,
                    let node = parts[2].elements, node.count >= 2, let port = node[1].integer,
                    (1...65535).contains(port)
                else { return nil }
                let host = node[0].text ?? ""
                guard host != "?" else { continue }
                ranges.append(
                    (
                        Int(first)...Int(last),
                        RedisURL.Endpoint(host: host.isEmpty ? asked.host : host, port: Int(port))
                    ))
            }
            self.ranges = ranges
        }

        func owner(of slot: Int) -> RedisURL.Endpoint? { ranges.first { $0.slots.contains(slot) }?.owner }
    }
}
