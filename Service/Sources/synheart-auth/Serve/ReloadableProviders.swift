import AndroidKeyAttestation
import AttestationProviders
import AuthContract
import AuthServer
import AuthService
import PlayIntegrity
import Synchronization

/// The current providers. A reload replaces them, and the previous providers finish their calls.
final class ReloadableProviders: EvidenceProviders {
    private let current: Mutex<Providers>
    private let make: @Sendable (ServiceConfiguration) async throws -> Providers
    private let (replaced, replacement) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameter make: creates the providers of a configuration. It throws if the configuration is unusable.
    init(
        _ configuration: ServiceConfiguration,
        make: @escaping @Sendable (ServiceConfiguration) async throws -> Providers
    ) async throws {
        current = Mutex(try await make(configuration))
        self.make = make
    }

    private var now: Providers { current.withLock { $0 } }

    /// Creates the providers of another configuration, without using them yet.
    func prepare(_ configuration: ServiceConfiguration) async throws -> Providers { try await make(configuration) }

    /// Uses these providers for later calls.
    func use(_ providers: Providers) {
        current.withLock { $0 = providers }
        replacement.yield()
    }

    /// Runs the providers' background work until the task is cancelled. The work of replaced providers ends.
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

    /// The readiness check of the revocation lists that the apps name. If a list is unusable, the service is degraded,
    /// because registrations that need the list cannot be verified.
    var readiness: Readiness.Check {
        .noting("revocation_lists") { [self] in
            do { return try await now.checkLists() } catch { throw Readiness.Degraded("\(error)") }
        }
    }

    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        await now.evidence.decode(token, package: package, for: caller)
    }

    func decode(_ token: String, packages: [String], for caller: IntegrityCaller) async -> DecodeOutcome {
        await now.evidence.decode(token, packages: packages, for: caller)
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        await now.evidence.revocations(from: source)
    }

    func report() async -> ProviderReport { await now.evidence.report() }
}
