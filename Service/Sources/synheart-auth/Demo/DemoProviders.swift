import AndroidKeyAttestation
import AuthService
import PlayIntegrity
import StrictJSON

/// Providers for the demo and the client conformance run. The list of revoked keys is empty, and tokens are
/// decoded only with the app's response keys.
struct DemoProviders: EvidenceProviders {
    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        await NoProviders().decode(token, package: package, for: caller)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        try? RevocationStatusList(["entries": [:]])
    }
}
