import AndroidKeyAttestation
import AuthService
import PlayIntegrity
import StrictJSON

/// Providers for the demo and the client conformance run: the status list is empty, and only the app's response keys open tokens.
struct DemoProviders: EvidenceProviders {
    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        await NoProviders().decode(token, package: package, for: caller)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        try? RevocationStatusList(["entries": [:]])
    }
}
