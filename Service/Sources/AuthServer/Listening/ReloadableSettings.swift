internal import AuthService
internal import NIOConcurrencyHelpers

/// The current settings of connections and requests. Connections and requests that begin after a change use the new settings.
final class ReloadableSettings: Sendable {
    private let settings: NIOLockedValueBox<ServerSettings>
    let bodies: BodyBudget
    private let certificates = NIOLockedValueBox<Certificates>(Certificates())

    /// The certificates of the listeners. Nil until the server runs, and for a listener without TLS.
    struct Certificates: Sendable {
        var server: TLSCertificate?
        var operations: TLSCertificate?

        var all: [TLSCertificate] { [server, operations].compactMap { $0 } }
    }

    init(_ settings: ServerSettings) {
        self.settings = NIOLockedValueBox(settings)
        bodies = BodyBudget(bytes: settings.limits.allBodies)
    }

    /// The certificates in use.
    var tls: Certificates {
        get { certificates.withLockedValue { $0 } }
        set { certificates.withLockedValue { $0 = newValue } }
    }

    var limits: RequestLimits { settings.withLockedValue(\.limits) }
    var deadlines: ReadDeadlines { settings.withLockedValue(\.deadlines) }
    var maximumConnections: Int { settings.withLockedValue(\.maximumConnections) }
    var nat64: NAT64Prefixes { settings.withLockedValue(\.nat64) }
    var connectionsOfOnePeer: Int { settings.withLockedValue(\.connectionsOfOnePeer) }

    /// Applies the settings that can change while the server runs.
    ///
    /// - Throws: `ConfigurationError` if the certificate cannot be used. In that case nothing changes.
    func apply(_ new: ServerSettings) throws(ConfigurationError) {
        var loaded: [(TLSCertificate, TLSCertificate.Loaded)] = []
        for (certificate, files) in [(tls.server, new.tls), (tls.operations, new.operations.tls)] {
            // Pipes were read once, at the start, and cannot be read again.
            guard let certificate, let files, files != certificate.loaded.files || files.canBeReadAgain else {
                continue
            }
            loaded.append((certificate, try TLSCertificate.load(files)))
        }
        for (certificate, files) in loaded { certificate.use(files) }
        bodies.resize(to: new.limits.allBodies)
        settings.withLockedValue { settings in
            settings.limits = new.limits
            settings.deadlines = new.deadlines
            settings.maximumConnections = new.maximumConnections
            settings.maximumConnectionsOfOnePeer = new.maximumConnectionsOfOnePeer
            settings.nat64 = new.nat64
        }
    }
}
