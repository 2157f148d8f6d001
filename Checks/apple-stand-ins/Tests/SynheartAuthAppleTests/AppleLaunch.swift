import AuthContract
import Foundation

@testable import SynheartAuth

extension Phone {
    /// Launches a process on Apple's parts: Keychain, Secure Enclave, App Attest.
    func launchOnApple(
        group: String? = nil, bundle: String = Phone.app, activity: ExpiringActivity = ExpiringActivity(),
        scheme: SignatureScheme = .one
    ) throws -> SynheartAuth {
        try launch { configuration in
            configuration.storage = KeychainStorage(
                accessGroup: group, lockDirectory: group.map { _ in NSTemporaryDirectory() }, bundleID: bundle)
            configuration.keyStore = SecureEnclaveKeyStore(accessGroup: group, bundleID: bundle)
            configuration.attestation = AppAttestProvider(bundleID: bundle)
            configuration.runningTime = activity
            configuration.scheme = scheme
        }
    }
}
