import Foundation
import SynheartAuth

// The samples of AppExtensions.md, in its order. DocumentationTests compares the page with this file.

#if !canImport(Darwin)
    extension FileManager {
        /// Like Apple's function, returns nil without the entitlement.
        fileprivate func containerURL(forSecurityApplicationGroupIdentifier group: String) -> URL? {
            group == "group.com.example" ? temporaryDirectory : nil
        }
    }
#endif

enum AppExtensions {
    static func sharedConfiguration() throws -> SynheartAuth.Configuration {
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
        let group = "TEAMID1234.com.example.shared"
        let locks = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: "group.com.example")
        configuration.storage = KeychainStorage(accessGroup: group, lockDirectory: locks?.path)
        configuration.keyStore = SecureEnclaveKeyStore(accessGroup: group)
        return configuration
    }

    static func extensionConfiguration() throws -> SynheartAuth.Configuration {
        var configuration = try sharedConfiguration()
        configuration.rotatesAutomatically = false
        return configuration
    }
}
