import AuthContract
import AuthService
import StrictJSON
import Testing

/// The vectors of `docs/vectors/assertions.json`: which paths need an assertion.
@Suite("Vectors of the protocol: assertions")
struct ProtocolAssertionVectorTests {
    private struct File: Decodable {
        let demands: [Demand]

        struct Demand: Decodable {
            let list: String
            let prefixes: [String]
            let path: String
            let needed: Bool
        }

        struct Policy: Hashable {
            let list: String
            let prefixes: [String]
        }
    }

    @Test("a path needs an assertion where its case says so, under either list")
    func demands() async throws {
        let file: File = try ProtocolVectors.load("assertions")
        let policies = Dictionary(grouping: file.demands) { File.Policy(list: $0.list, prefixes: $0.prefixes) }
        for (policy, demands) in policies {
            let world = try await AppleWorld(ios: [policy.list: .array(policy.prefixes.map { .string($0) })])
            let (device, _) = try await world.device()
            for item in demands {
                let draft = RequestDraft().with { $0.path = item.path }
                let refusal = try await refusal { try await world.world.verify(device, draft) }
                #expect(refusal?.code == (item.needed ? .assertionRequired : nil), "\(item)")
            }
        }
    }
}
