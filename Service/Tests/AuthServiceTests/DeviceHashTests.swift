import AuthContract
import AuthService
import Testing

/// The hash that stands for a device id in the log.
struct DeviceHashTests {
    private static let id = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
    /// The output of `printf %s "$id" | sha256sum | cut -c1-16`.
    private static let hash = "2e63ae89698b95dd"

    @Test func `the hash of an id is what sha256sum says`() throws {
        #expect(try DeviceHash(of: DeviceID(Self.id)).text == Self.hash)
        #expect(try DeviceHash(Self.hash) == DeviceHash(of: DeviceID(Self.id)))
    }

    @Test(arguments: [
        "", "2e63ae89698b95d", "2e63ae89698b95dd0", "2E63AE89698B95DD", "2e63ae89698b95dg", id, "éééééééé",
    ])
    func `a text that is no hash is refused`(text: String) {
        #expect(throws: ContractError.self) { try DeviceHash(text) }
    }
}
