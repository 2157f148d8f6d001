import Foundation
import Testing

@testable import SynheartAuth

#if !canImport(Security)
    /// The folders of records and software keys on platforms without a vendor's hardware.
    @Suite struct PlatformPartsTests {
        @Test func `XDG_STATE_HOME is the first choice`() {
            let environment = ["XDG_STATE_HOME": "/state", "HOME": "/home/anna"]
            #expect(PlatformParts.directory(environment) == "/state/synheart-auth")
        }

        @Test(arguments: [nil, "", "state"])
        func `without an absolute XDG_STATE_HOME, HOME is used`(state: String?) {
            var environment = ["HOME": "/home/anna"]
            environment["XDG_STATE_HOME"] = state
            #expect(PlatformParts.directory(environment) == "/home/anna/.local/state/synheart-auth")
        }

        @Test(arguments: [nil, "", "anna"])
        func `without an absolute HOME, the home directory of the user counts`(home: String?) {
            var environment: [String: String] = [:]
            environment["HOME"] = home
            #expect(PlatformParts.directory(environment) == NSHomeDirectory() + "/.local/state/synheart-auth")
        }

        @Test func `keys and records of the default configuration lie in that directory`() throws {
            let configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
            let directory = PlatformParts.directory(ProcessInfo.processInfo.environment)
            #expect((configuration.storage as? FileStorage)?.path == directory)
            #expect((configuration.keyStore as? SoftwareKeyStore)?.path == directory + "/keys")
        }
    }
#endif
