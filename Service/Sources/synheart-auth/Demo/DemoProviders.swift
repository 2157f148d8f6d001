import AndroidKeyAttestation
import AuthService
import PlayIntegrity
import StrictJSON

/// The demo's providers: a list of revoked keys that names none. Its tokens are opened with the app's own keys.
struct DemoProviders: EvidenceProviders {
    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        await NoProviders().decode(token, package: package, serviceAccount: serviceAccount)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        try? RevocationStatusList(["entries": [:]])
    }
}
