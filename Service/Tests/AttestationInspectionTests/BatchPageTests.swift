import AndroidKeyAttestation
import AppAttest
import PlayIntegrity
import StrictJSON
import Testing

import struct Foundation.Data
import struct Foundation.URL

/// The article *Batch* names every member that a policy may have.
@Suite struct BatchPageTests {
    @Test(arguments: [
        ("App Attest", AppAttestPolicy.jsonMembers.map(\.name) + ReceiptVerifier.Policy.jsonMembers.map(\.name)),
        ("`android-key-attestation`", KeyAttestationPolicy.jsonMembers.map(\.name)),
        ("`play-integrity`", PlayIntegrityPolicy.jsonMembers.map(\.name)),
    ])
    func `the table of policies lists the members of the library's table, and no others`(
        format: String, names: [String]
    ) throws {
        let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = package.appending(path: "Sources/AttestationInspection/AttestationInspection.docc/Batch.md")
        let text = String(decoding: try Data(contentsOf: page), as: UTF8.self)
        let policies = try #require(text.range(of: "### Policies").map { text[$0.upperBound...] })
        let row = try #require(policies.split(separator: "\n").first { $0.hasPrefix("| \(format) |") })
        let cell = row.dropFirst("| \(format) |".count).prefix { $0 != "|" }
        // The cell also has `allow` and `refuse` in backticks. They are values, not names of members.
        let listed = Set(
            cell.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
        )
        .subtracting(["allow", "refuse"])
        #expect(listed == Set(names))
    }
}
