import ArgumentParser
import AttestationTestKit
import SoftwareDevice

/// The test kit's Apple and Google, which attest simulated devices.
struct AuthorityOptions: ParsableArguments {
    @Option(help: "The test kit's Apple; made where there is none.") var authority = "synheart-authority.pem"
    @Option(name: .customLong("google-authority"), help: "The test kit's Google; made where there is none.")
    var googleAuthority = "synheart-google.json"

    init() {}

    /// Those of a folder.
    init(in folder: String) {
        authority = folder + "/" + "synheart-authority.pem"
        googleAuthority = folder + "/" + "synheart-google.json"
    }

    func apple() throws -> AppleAuthority { try AuthorityFile.load(authority) }

    func google() throws -> GoogleAuthority { try AuthorityFile.google(googleAuthority) }
}
