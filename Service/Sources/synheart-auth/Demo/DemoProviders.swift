import AndroidKeyAttestation
import AuthService
import PlayIntegrity
import StrictJSON

/// The demo's providers: an empty status list. The app's own keys open its tokens.
struct DemoProviders: EvidenceProviders {
    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        await NoProviders().decode(token, package: package, for: caller)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        try? RevocationStatusList(["entries": [:]])
    }
}
