/// The id of one device of one app: a lower-case version 4 UUID that the service issued.
public struct DeviceID: Sendable, Hashable, CustomStringConvertible {
    @_spi(Service) public let uuid: RandomUUID

    /// Makes a new id.
    public init(from random: some RandomSource) { uuid = RandomUUID(from: random) }

    /// Parses an id. Refuses upper case.
    public init(_ text: String) throws(ContractError) {
        guard let uuid = RandomUUID(text, upperCase: false) else {
            throw ContractError("device_id must be a lower-case version 4 UUID")
        }
        self.uuid = uuid
    }

    /// The id as text.
    public var text: String { uuid.text }

    /// The 16 bytes.
    public var bytes: [UInt8] { uuid.bytes }

    public var description: String { text }
}

/// A request nonce: a version 4 UUID, new for each signed request.
public struct RequestNonce: Sendable, Hashable {
    @_spi(Service) public let uuid: RandomUUID

    /// Makes a new nonce.
    public init(from random: some RandomSource) { uuid = RandomUUID(from: random) }

    /// Parses a nonce in either case. Nonces that differ in case alone are equal.
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
