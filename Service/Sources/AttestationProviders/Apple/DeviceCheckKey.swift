internal import AppAttest
package import AuthContract
internal import Crypto

/// The DeviceCheck key of a team, from the service's configuration.
package struct DeviceCheckKey: Sendable {
    /// Signs the requests.
    let signer: DeviceCheckSigner
    /// Prefixes of the App IDs that the key signs for.
    package let prefixes: Set<String>

    /// A key from Apple's developer portal.
    ///
    /// - Parameters:
    ///   - teamID: the team's id: ten letters and digits.
    ///   - keyID: the key's id in the portal: ten letters and digits.
    ///   - pem: the `.p8` file: PKCS#8 in PEM.
    ///   - prefixes: App ID prefixes. By default the team id: all App IDs except very old ones begin with it.
    /// - Throws: `ContractError` if an id or the key is malformed. Its text reveals nothing about the key.
    package init(teamID: String, keyID: String, pem: String, prefixes: Set<String>? = nil) throws(ContractError) {
        guard Self.isIdentifier(teamID), Self.isIdentifier(keyID) else {
            throw ContractError("the team id and the key id are ten letters and digits each")
        }
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw ContractError("the DeviceCheck key is not a P-256 private key in PEM")
        }
        signer = DeviceCheckSigner(teamID: teamID, keyID: keyID, privateKey: key)
        self.prefixes = prefixes ?? [teamID]
    }

    func isFor(_ appID: AppleAppID) -> Bool {
        prefixes.contains { appID.text.hasPrefix($0 + ".") }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    }
}

extension DeviceCheckKey: CustomStringConvertible, CustomReflectable {
    /// The team id and the key id, without the key.
    package var description: String { signer.description }
    /// The same as `description`, so that a dump does not show the key.
    package var customMirror: Mirror { signer.customMirror }
}
