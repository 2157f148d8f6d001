import Foundation
import SynheartAuth

// The samples of Simulator.md, in its order. DocumentationTests compares the page with this file.

enum Simulator {
    static func configure() throws {
        var configuration = try SynheartAuth.Configuration(baseUrl: "http://127.0.0.1:8080")
        #if DEBUG && targetEnvironment(simulator)
            let folder = NSHomeDirectory() + "/Library/Application Support/synheart-auth"
            configuration.storage = FileStorage(directory: folder)
            configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
            configuration.attestation = DevelopmentAttestation()
        #endif
        try SynheartAuth.shared.configure(configuration)
    }

    static func configure(folder: String) throws -> SynheartAuth {
        var configuration = try SynheartAuth.Configuration(baseUrl: "http://127.0.0.1:8080")
        #if DEBUG
            configuration.storage = FileStorage(directory: folder)
            configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
            configuration.attestation = DevelopmentAttestation()
        #endif
        let auth = SynheartAuth(configuration)
        return auth
    }
}
