import AttestationTestKit

/// A chain that the fuzzer's bytes choose: an honest chain, changed before it is signed, and again before it is sent.
struct ChainPlan {
    var sent: [SentCertificate] = []
    var isForRegisteredKey: Bool { sent.first?.key == .key(.registered) }

    init(_ choices: inout Choices) {
        var (path, root) = Self.honest(&choices)
        let includesRoot = !choices.flag()
        var issuers: [Int: ModelCertificate.Name] = [:]
        var signers: [Int: Signer] = [:]
        var broken: Set<Int> = []
        for _ in 0..<choices.below(7) {
            let index = choices.below(path.count)
            switch choices.below(14) {
            case 0: if path.count < 8 { path.insert(Self.certificate(&choices), at: index) }
            case 1: if path.count > 1 { path.remove(at: index) }
            case 2: path.swapAt(index, choices.below(path.count))
            case 3: path[index].subject = choices.one(of: ModelCertificate.names)
            case 4: path[index].key = choices.one(of: ModelKey.allCases)
            case 5: path[index].validity = choices.one(of: ModelCertificate.Validity.allCases)
            case 6: path[index].isRevoked.toggle()
            case 7: path[index].extensions.append(Self.extensionValue(&choices))
            case 8: path[index].extensions = []
            case 9: issuers[index] = choices.one(of: ModelCertificate.names)
            case 10: signers[index] = Self.signer(&choices)
            case 11: broken.insert(index)
            case 12: root = root == .factory ? .remote : .factory
            default:
                for (position, found) in path[index].extensions.enumerated() {
                    guard case .description(var claims) = found else { continue }
                    claims.change(&choices)
                    path[index].extensions[position] = .description(claims)
                }
            }
        }
        for (index, certificate) in path.enumerated() {
            let next = index + 1 < path.count ? path[index + 1] : nil
            sent.append(
                .signed(
                    SignedCertificate(
                        certificate: certificate, issuer: issuers[index] ?? next?.subject ?? root.subject,
                        signer: signers[index] ?? next.map { .key($0.key) } ?? .root(root),
                        isSignatureBroken: broken.contains(index))))
        }
        if includesRoot { sent.append(.root(root)) }
        for _ in 0..<choices.below(3) where !sent.isEmpty {
            let index = choices.below(sent.count)
            switch choices.below(5) {
            case 0: sent.remove(at: index)
            case 1: sent.insert(sent[index], at: index)
            case 2: sent.swapAt(index, choices.below(sent.count))
            case 3: sent.append(.root(choices.flag() ? .factory : .remote))
            default: sent.insert(.root(choices.flag() ? .factory : .remote), at: index)
            }
        }
    }

    /// The chains that devices send.
    private static func honest(_ choices: inout Choices) -> ([ModelCertificate], RootKind) {
        var leaf = ModelCertificate(subject: ModelCertificate.names[0], key: .registered)
        leaf.extensions = [.description(ModelClaims())]
        var remote = [
            leaf, ModelCertificate(subject: ModelCertificate.names[3], key: .attestation),
            ModelCertificate(subject: ModelCertificate.names[6], key: .droidCA3),
            ModelCertificate(subject: ModelCertificate.names[7], key: .droidCA2),
        ]
        remote[1].extensions = [.provisioningInfo(count: 8)]
        let factory = [
            leaf, ModelCertificate(subject: ModelCertificate.names[1], key: .attestation),
            ModelCertificate(subject: ModelCertificate.names[1], key: .factoryIntermediate),
        ]
        switch choices.below(5) {
        case 0: return (factory, .factory)
        case 1: return (remote, .remote)
        case 2: return (remote, .factory)
        case 3:
            // The key of a virtual machine (AVF) certifies an attacker's key, which signs the leaf.
            var forged = remote
            forged[1].subject = ModelCertificate.names[5]
            forged.insert(ModelCertificate(subject: ModelCertificate.names[0], key: .attackers), at: 1)
            return (forged, .remote)
        default:
            var unknown = factory
            unknown[2].subject = [.commonName("Some CA")]
            return (unknown, .factory)
        }
    }

    private static func certificate(_ choices: inout Choices) -> ModelCertificate {
        var certificate = ModelCertificate(
            subject: choices.one(of: ModelCertificate.names), key: choices.one(of: ModelKey.allCases))
        for _ in 0..<choices.below(3) { certificate.extensions.append(extensionValue(&choices)) }
        return certificate
    }

    private static func extensionValue(_ choices: inout Choices) -> ModelCertificate.Extension {
        switch choices.below(6) {
        case 0, 1: .description(ModelClaims())
        case 2: .virtualMachine
        case 3: .provisioningInfo(count: UInt8(choices.below(24)))
        case 4: .provisioningInfo(count: nil)
        default: .other
        }
    }

    private static func signer(_ choices: inout Choices) -> Signer {
        let index = choices.below(ModelKey.allCases.count + 2)
        return switch index {
        case ModelKey.allCases.count: .root(.factory)
        case ModelKey.allCases.count + 1: .root(.remote)
        default: .key(ModelKey.allCases[index])
        }
    }
}
