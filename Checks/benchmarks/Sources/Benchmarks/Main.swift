import Foundation

/// The measurement needed more requests than were signed in advance.
struct OutOfRequests: Error {}

/// The cost of operations, relative to a bare P-256 verification in the same run.
@main
struct Benchmarks {
    private static let groups: [(name: String, run: @Sendable () async throws -> [Measurement])] = [
        ("apple", AppleVerification.run), ("android", AndroidVerification.run), ("requests", SignedRequests.run),
        ("sdk", ClientSigning.run), ("devices", ManyDevices.run), ("claims", ManyClaims.run),
    ]
    /// The benchmarks that take seconds. The others run only if they are named.
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
        print(
            "what                                                     per second     us each   ratio to R   allocations"
        )
        var before = opensslVerifyRate()
        for group in [("bare", BareVerification.run)] + groups
        where group.0 == "bare" || (named.isEmpty ? usual.contains(group.0) : named.contains(group.0)) {
            let results = try await group.1()
            // Measure the yardstick before and after the benchmarks, because the speed of the machine varies.
            let after = opensslVerifyRate()
            let yardstick = Measurement(
                "P-256 verify (openssl speed): R", perSecond: ((before ?? .nan) + (after ?? .nan)) / 2)
            for result in [yardstick] + results { result.report(yardstick) }
            before = after
        }
    }
}
