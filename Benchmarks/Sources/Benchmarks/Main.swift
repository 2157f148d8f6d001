import Foundation

/// More were measured than were signed ahead.
struct OutOfRequests: Error {}

/// What things cost, relative to a bare P-256 verification in the same run.
@main
struct Benchmarks {
    private static let groups: [(name: String, run: @Sendable () async throws -> [Measurement])] = [
        ("apple", AppleVerification.run), ("android", AndroidVerification.run), ("requests", SignedRequests.run),
        ("sdk", ClientSigning.run), ("devices", ManyDevices.run), ("claims", ManyClaims.run),
    ]
    /// Those that take seconds; the others are run when they are named.
    private static let usual: Set = ["apple", "android", "requests", "sdk"]

    static func main() async throws {
        let named = Set(CommandLine.arguments.dropFirst())
        let unknown = named.subtracting(groups.map(\.name))
        guard unknown.isEmpty else {
            print(
                "unknown: \(unknown.sorted().joined(separator: " ")); groups: \(groups.map(\.name).joined(separator: " "))"
            )
            exit(2)
        }
        let yardstick = opensslVerifyRate().map { Measurement("P-256 verify (openssl speed): R", perSecond: $0) }
        let bare = try await BareVerification.run()
        let R = yardstick ?? bare[0]
        print(
            "what                                                     per second     us each   ratio to R   allocations"
        )
        for result in [yardstick].compactMap({ $0 }) + bare { result.report(R) }
        for group in groups where named.isEmpty ? usual.contains(group.name) : named.contains(group.name) {
            for result in try await group.run() { result.report(R) }
        }
    }
}
