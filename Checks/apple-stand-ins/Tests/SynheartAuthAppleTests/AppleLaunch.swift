import AuthContract
import Foundation

@testable import SynheartAuth

extension Phone {
    /// Launches the SDK, as a new process does, with Apple's Keychain, Secure Enclave and App Attest.
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
