import AuthContract
import StrictJSON
import Testing

@testable import AuthService

/// The decisions about credentials, without a store.
struct CredentialCommandTests {
    private static let now = UnixTime(1_780_272_000)

    private static func credential(
        scope: CredentialScope = .allApps, expiresAt: UnixTime = now + 1000, revokedAt: UnixTime? = nil
    ) -> Credential {
        Credential(
            id: "id", name: "name", role: .viewer, scope: scope, secretHash: [], createdAt: now - 1000,
            expiresAt: expiresAt, revokedAt: revokedAt)
    }

    @Test("a credential is removed if it expired or was revoked before the time, to the second")
    func removal() {
        let time = Self.now
        let removed = [
            Self.credential(expiresAt: time - 1), Self.credential(revokedAt: time - 1),
            Self.credential(expiresAt: time - 1, revokedAt: time),
        ]
        let kept = [Self.credential(expiresAt: time), Self.credential(revokedAt: time), Self.credential()]
        for credential in removed {
            let change = credential.applying(.remove(endedBefore: time), at: Self.now, by: "test")
            #expect(change == CredentialChange(from: credential, to: nil, recording: nil))
        }
        for credential in kept {
            #expect(credential.applying(.remove(endedBefore: time), at: Self.now, by: "test") == nil)
        }
    }

    @Test("random commands leave the credential that a model leaves", arguments: 0..<40)
    func walk(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let apps = try (0..<4).map { try AppID("app\($0)") }
        // The model: the apps that the credential still has, and the time at which it ended.
        var left: Set<AppID> = Bool.random(using: &random) ? [] : Set(apps.dropLast())
        let isForAll = left.isEmpty
        var ended: UnixTime?
        var credential = Self.credential(scope: isForAll ? .allApps : .apps(left))
        var now = Self.now
        for _ in 0..<20 {
            now = now + Int64.random(in: 0...40, using: &random)
            let app = try #require(apps.randomElement(using: &random))
            let command: CredentialCommand = Int.random(in: 0..<8, using: &random) == 0 ? .revoke : .lose(app)
            let change = credential.applying(command, at: now, by: "test")
            var code: AuditEvent.Code?
            if ended == nil {
                switch command {
                case .revoke: (ended, code) = (now, .credentialRevoked)
                case .lose where left.contains(app):
                    code = left == [app] ? .credentialRevoked : .credentialNarrowed
                    if left == [app] { ended = now } else { left.remove(app) }
                default: break
                }
            }
            #expect(change?.event?.code == code)
            #expect(change.map { $0.before == credential && $0.event?.at == now } ?? true)
            if let change { credential = try #require(change.after) }
            #expect(credential.revokedAt == ended)
            #expect(credential.scope == (isForAll ? .allApps : .apps(left)))
        }
    }
}
