import ArgumentParser
import AttestationTestKit
import Foundation
import SoftwareDevice

/// The test kit's simulated Apple and Google, which attest simulated devices.
struct AuthorityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The test kit's Apple; its Google lies beside it, in NAME.google.json. Made where there are none.",
            valueName: "NAME.pem"))
    var authority = "synheart-authority.pem"

    init() {}

    /// The authorities in a folder.
    init(in folder: String) { authority = folder + "/synheart-authority.pem" }

    func apple() throws -> AppleAuthority { try load(authority) { try AuthorityFile.load(authority) } }

    func google() throws -> GoogleAuthority {
        let name = (authority.hasSuffix(".pem") ? String(authority.dropLast(4)) : authority) + ".google.json"
        return try load(name) { try AuthorityFile.google(name) }
    }

    /// Replaces parser errors with a fixed text, because they may quote the file, which contains a private key.
    private func load<Authority>(_ path: String, _ load: () throws -> Authority) throws -> Authority {
        do {
            return try load()
        } catch let error as CocoaError where error.isFileError {
            throw CommandFailure(.impossible, "\(path) cannot be read or created: \(error.localizedDescription)")
        } catch {
            throw CommandFailure(
                .impossible, "\(path) is not an authority of the test kit. Remove it, and a new one is made")
        }
    }
}
