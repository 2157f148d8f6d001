@_spi(Service) internal import AuthContract

/// Partitions of the key space. Every key belongs to a partition, and the partition's number is the key's hash tag, so all keys of
/// one script are in one slot of a Cluster. A device has one partition.
///
/// Each partition has its own epoch. A Cluster has 1024 partitions: enough to spread over its servers, and few enough to renew
/// all epochs of a server at once. Other deployments have one partition.
struct KeyPartitions: Sendable {
    /// The keys, or the prefixes of keys, of one partition. Computed once, because every request needs them.
    struct Keys: Sendable {
        let prefix: String
        let epoch: String
        /// The key that holds the id of the claims' history. It is set by the nodes that currently use the server.
        let holder: String
        /// The prefix of the keys in which nodes count their rounds (`RoundCount`).
        let rounds: String
        let claims: String
        let challenges: String
        let devices: String

        fileprivate init(_ prefix: String) {
            self.prefix = prefix
            epoch = prefix + "epoch"
            holder = prefix + "holder"
            rounds = prefix + "rounds:"
            claims = prefix + "c:"
            challenges = prefix + "h:"
            devices = prefix + "d:"
        }
    }

    let count: Int
    private let keys: [Keys]
    /// The Cluster slot of each partition.
    let slots: [Int]

    static let ofACluster = 1024

    init(count: Int, prefix: String) {
        self.count = count
        keys = (0..<count).map { Keys("\(prefix){\($0)}:") }
        slots = (0..<count).map { Self.slot(of: "\($0)") }
    }

    subscript(partition: Int) -> Keys { keys[partition] }

    func partition(of device: DeviceID) -> Int {
        count == 1 ? 0 : device.uuid.withBytes { Int($0[0]) << 8 | Int($0[1]) } % count
    }

    /// The partition of a random value.
    func partition(of bytes: [UInt8]) -> Int {
        count == 1 || bytes.count < 2 ? 0 : (Int(bytes[0]) << 8 | Int(bytes[1])) % count
    }

    /// The partition of any text.
    func partition(of text: String) -> Int { count == 1 ? 0 : Int(Self.checksum(text.utf8)) % count }

    /// The slot of a hash tag: CRC16 (XMODEM) modulo 16384.
    ///
    /// Source: Redis Cluster specification, *Key distribution model*.
    static func slot(of tag: String) -> Int { Int(checksum(tag.utf8)) % 16384 }

    private static func checksum(_ bytes: some Sequence<UInt8>) -> UInt16 {
        bytes.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ UInt16(byte) << 8) { sum, _ in sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
        }
    }
}
