import AndroidKeyAttestation
import AuthService
import PlayIntegrity
import StrictJSON

/// The demo's providers: an empty status list. The app's own keys open its tokens.
struct DemoProviders: EvidenceProviders {
    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        await NoProviders().decode(token, package: package, serviceAccount: serviceAccount)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        try? RevocationStatusList(["entries": [:]])
    }
}
