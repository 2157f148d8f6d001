import ArgumentParser
import AttestationTestKit
import SoftwareDevice

/// The test kit's Apple and Google, which attest simulated devices.
struct AuthorityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The test kit's Apple; its Google lies beside it, in NAME.google.json. Made where there are none.",
            valueName: "NAME.pem"))
    var authority = "synheart-authority.pem"

    init() {}

    /// Those of a folder.
    init(in folder: String) { authority = folder + "/synheart-authority.pem" }

    func apple() throws -> AppleAuthority { try AuthorityFile.load(authority) }

    func google() throws -> GoogleAuthority {
        let name = authority.hasSuffix(".pem") ? String(authority.dropLast(4)) : authority
        return try AuthorityFile.google(name + ".google.json")
    }
}
