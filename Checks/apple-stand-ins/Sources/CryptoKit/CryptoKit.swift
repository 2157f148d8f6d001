// Stand-in for CryptoKit: the availability of the Secure Enclave, which a test can switch off, and keys that are loaded
// from their representation.
@_exported public import Crypto
public import Foundation

public enum SecureEnclave {
    private struct State {
        var isAvailable = true
        var signingFailure: NSError?
    }

    private static let lock = NSLock()
    nonisolated(unsafe) private static var state = State()

    public static var isAvailable: Bool { lock.withLock { state.isAvailable } }

    /// Switches the Secure Enclave on or off, and ends `failSigning`. A simulator has no Secure Enclave.
    public static func setAvailable(_ isAvailable: Bool) { lock.withLock { state = State(isAvailable: isAvailable) } }
    /// Makes every signature with a Secure Enclave key fail with this error; nil: signatures succeed again.
    public static func failSigning(_ error: NSError?) { lock.withLock { state.signingFailure = error } }
    static var signingFailure: NSError? { lock.withLock { state.signingFailure } }
}

extension SecureEnclave {
    public enum P256 {
        public enum Signing {
            /// A key of the Secure Enclave. The representation of a real key works only on its device. In this stand-in, it
            /// begins with a word that marks the device.
            public struct PrivateKey {
                private let key: Crypto.P256.Signing.PrivateKey
                private let isForeign: Bool
                private static let mark = Data("enclave".utf8)
                private static let foreignMark = Data("another".utf8)

                public init() throws { (key, isForeign) = (Crypto.P256.Signing.PrivateKey(), false) }

                /// Loads a key. Loading a key of another device succeeds, but its signatures fail.
                public init(dataRepresentation: Data) throws {
                    isForeign = dataRepresentation.starts(with: Self.foreignMark)
                    guard isForeign || dataRepresentation.starts(with: Self.mark) else {
                        throw CryptoKitError.incorrectParameterSize
                    }
                    key = try Crypto.P256.Signing.PrivateKey(
                        rawRepresentation: dataRepresentation.dropFirst(Self.mark.count))
                }

                public var dataRepresentation: Data { Self.mark + key.rawRepresentation }
                /// The representation after a restore on another device.
                public var restoredRepresentation: Data { Self.foreignMark + key.rawRepresentation }
                public var publicKey: Crypto.P256.Signing.PublicKey { key.publicKey }

                public func signature<Bytes: DataProtocol>(for data: Bytes) throws -> Crypto.P256.Signing.ECDSASignature {
                    if let failure = SecureEnclave.signingFailure { throw failure }
                    guard !isForeign else {
                        throw NSError(domain: "CryptoTokenKit", code: -3, userInfo: ["AKSError": NSNumber(value: -536_870_203)])
                    }
                    return try key.signature(for: data)
                }
            }
        }
    }
}
