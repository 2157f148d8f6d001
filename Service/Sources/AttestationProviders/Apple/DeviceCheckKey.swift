internal import AppAttest
public import AuthContract
internal import Crypto

/// A private key from Apple's developer portal with DeviceCheck enabled, which signs requests about receipts
/// ([Generating tokens](https://developer.apple.com/documentation/devicecheck/accessing-and-modifying-per-device-data)).
public struct DeviceCheckKey: Sendable {
    /// Prefixes of the App IDs that the key signs for.
    public let prefixes: Set<String>
    let signer: DeviceCheckSigner

    /// A key as the portal issues it.
    ///
    /// - Parameters:
    ///   - teamID: the team's id: ten letters and digits.
    ///   - keyID: the key's id in the portal: ten letters and digits.
    ///   - pem: the `.p8` file: PKCS#8 in PEM.
    ///   - prefixes: App ID prefixes; the team id by default, which all App IDs but very old ones have.
    /// - Throws: `ContractError` if an id or the key is malformed. Its text holds nothing of the key.
    public init(teamID: String, keyID: String, pem: String, prefixes: Set<String>? = nil) throws(ContractError) {
        guard Self.isIdentifier(teamID), Self.isIdentifier(keyID) else {
            throw ContractError("the team id and the key id are ten letters and digits each")
        }
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw ContractError("the DeviceCheck key is not a P-256 private key in PEM")
        }
        self.prefixes = prefixes ?? [teamID]
        signer = DeviceCheckSigner(teamID: teamID, keyID: keyID, privateKey: key)
    }

    func isFor(_ appID: AppleAppID) -> Bool {
        prefixes.contains { appID.text.hasPrefix($0 + ".") }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    }
}

extension DeviceCheckKey: CustomStringConvertible, CustomReflectable {
    /// Team and key id, and nothing of the key.
    public var description: String { signer.description }
    /// Nothing of the key.
    public var customMirror: Mirror { signer.customMirror }
}
