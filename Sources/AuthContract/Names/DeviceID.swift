/// Names one device of one app: a lower-case version 4 UUID, always issued by the service.
public struct DeviceID: Sendable, Hashable, CustomStringConvertible {
    @_spi(Service) public let uuid: RandomUUID
    /// The id as it is written. Kept, as every request and every answer has it.
    public let text: String

    /// Issues a new id.
    public init(from random: some RandomSource) {
        uuid = RandomUUID(from: random)
        text = uuid.text
    }

    /// Parses an id; upper case is refused.
    public init(_ text: String) throws(ContractError) {
        guard let uuid = RandomUUID(text, upperCase: false) else {
            throw ContractError("device_id must be a lower-case version 4 UUID")
        }
        self.uuid = uuid
        self.text = text
    }

    /// The 16 bytes.
    public var bytes: [UInt8] { uuid.bytes }

    public var description: String { text }

    public static func == (left: DeviceID, right: DeviceID) -> Bool { left.uuid == right.uuid }

    public func hash(into hasher: inout Hasher) { hasher.combine(uuid) }
}

/// Makes one signed request different from every other: a version 4 UUID, fresh for each.
public struct RequestNonce: Sendable, Hashable {
    @_spi(Service) public let uuid: RandomUUID

    /// Makes a new nonce.
    public init(from random: some RandomSource) { uuid = RandomUUID(from: random) }

    /// Parses a nonce; either case is accepted, and compared in lower case.
    public init(_ text: String) throws(ContractError) {
        guard let uuid = RandomUUID(text, upperCase: true) else {
            throw ContractError("the nonce must be a version 4 UUID")
        }
        self.uuid = uuid
    }

    /// The nonce in lower case.
    public var text: String { uuid.text }

    /// The 16 bytes.
    public var bytes: [UInt8] { uuid.bytes }
}
