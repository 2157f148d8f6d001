public import AuthContract
internal import Bytes
internal import Crypto

/// The name of a device in the log: the first 8 bytes of SHA-256 of the text of its id.
///
/// An id has 122 random bits, so its hash does not reveal it. A store can find the device by this hash.
public struct DeviceHash: Sendable, Hashable {
    /// The 8 bytes.
    public let bytes: [UInt8]

    /// The hash of an id.
    public init(of id: DeviceID) { self.init(ofText: id.text) }

    /// The hash of an id's text.
    package init(ofText text: String) { bytes = Array(SHA256.hash(data: Array(text.utf8)).prefix(8)) }

    /// Parses a hash as the log writes it: 16 lower-case hexadecimal digits.
    public init(_ text: String) throws(ContractError) {
        guard text.utf8.count == 16, let bytes = Hexadecimal.decode(text), Hexadecimal.encode(bytes) == text else {
            throw ContractError("device_hash must be 16 lower-case hexadecimal digits")
        }
        self.bytes = bytes
    }

    /// The hash as the log writes it.
    public var text: String { Hexadecimal.encode(bytes) }
}
