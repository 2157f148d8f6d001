import AndroidKeyAttestation
import AttestationProviders
import AuthContract
import AuthServer
import AuthService
import PlayIntegrity
import Synchronization

/// The providers that are asked now. A reload puts others in their place; what was asked of those before is answered.
final class LiveProviders: EvidenceProviders {
    private let current: Mutex<Providers>
    private let make: @Sendable (ServiceConfiguration) async throws -> Providers
    private let (replaced, replacement) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameter make: providers of a configuration; throws where it cannot be used.
    init(
        _ configuration: ServiceConfiguration,
        make: @escaping @Sendable (ServiceConfiguration) async throws -> Providers
    ) async throws {
        current = Mutex(try await make(configuration))
        self.make = make
    }

    private var now: Providers { current.withLock { $0 } }

    /// Providers of another configuration, which nobody asks yet.
    func prepare(_ configuration: ServiceConfiguration) async throws -> Providers { try await make(configuration) }

    /// Asks these from now on.
    func use(_ providers: Providers) {
        current.withLock { $0 = providers }
        replacement.yield()
    }

    /// Does the providers' work in the background, until the task is cancelled: that of those before ends when others come.
    func run(for service: AuthService) async {
        while !Task.isCancelled {
            let providers = now
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await providers.run(for: service) }
                group.addTask { for await _ in self.replaced { return } }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// How the lists stand that the apps name.
    var readiness: Readiness.Check {
        Readiness.Check("revocation_lists") { [self] in try await now.checkLists() }
    }

    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        await now.evidence.decode(token, package: package, serviceAccount: serviceAccount)
    }

    func decode(_ token: String, packages: [String], serviceAccount: Secret) async -> DecodeOutcome {
        await now.evidence.decode(token, packages: packages, serviceAccount: serviceAccount)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        await now.evidence.revocations(from: source)
    }

    func report() async -> ProviderReport { await now.evidence.report() }
}
