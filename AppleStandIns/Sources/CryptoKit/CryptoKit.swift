// Stand-in for CryptoKit: the Secure Enclave's availability, which a test can take away, and keys by their representation.
import Crypto
import Foundation

public enum SecureEnclave {
    private static let lock = NSLock()
    nonisolated(unsafe) private static var available = true

    public static var isAvailable: Bool { lock.withLock { available } }

    /// As in a simulator.
    public static func setAvailable(_ isAvailable: Bool) { lock.withLock { available = isAvailable } }
}

extension SecureEnclave {
    public enum P256 {
        public enum Signing {
            /// The representation of a real key works only on its device; this one starts with a word instead.
            public struct PrivateKey {
                private let key: Crypto.P256.Signing.PrivateKey
                private static let mark = Data("enclave".utf8)

                public init() throws { key = Crypto.P256.Signing.PrivateKey() }

                public init(dataRepresentation: Data) throws {
                    guard dataRepresentation.starts(with: Self.mark) else { throw CocoaError(.coderInvalidValue) }
                    key = try Crypto.P256.Signing.PrivateKey(
                        rawRepresentation: dataRepresentation.dropFirst(Self.mark.count))
                }

                public var dataRepresentation: Data { Self.mark + key.rawRepresentation }
                public var publicKey: PublicKey { PublicKey(x963Representation: key.publicKey.x963Representation) }

                public func signature(for data: Data) throws -> ECDSASignature {
                    ECDSASignature(derRepresentation: try key.signature(for: data).derRepresentation)
                }
            }

            public struct PublicKey { public let x963Representation: Data }
            public struct ECDSASignature { public let derRepresentation: Data }
        }
    }
}
