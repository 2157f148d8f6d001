internal import AuthService
internal import Bytes

/// The current settings of connections and requests. Connections and requests that begin after a change use the new settings.
final class ReloadableSettings: Sendable {
    private let settings: Locked<ServerSettings>
    let bodies: BodyBudget
    private let certificates = Locked<Certificates>(Certificates())

    /// The certificates of the listeners. Each is nil until the server runs, and for a listener without TLS.
    struct Certificates: Sendable {
        var server: TLSCertificate?
        var operations: TLSCertificate?

        var all: [TLSCertificate] { [server, operations].compactMap { $0 } }
    }

    init(_ settings: ServerSettings) {
        self.settings = Locked(settings)
        bodies = BodyBudget(bytes: settings.limits.allBodies)
    }

    /// The certificates in use.
    var tls: Certificates {
        get { certificates.withLock { $0 } }
        set { certificates.withLock { $0 = newValue } }
    }

    var limits: RequestLimits { settings.withLock(\.limits) }
    var deadlines: ReadDeadlines { settings.withLock(\.deadlines) }
    var maximumConnections: Int { settings.withLock(\.maximumConnections) }
    var nat64: NAT64Prefixes { settings.withLock(\.nat64) }
    var connectionsOfOnePeer: Int { settings.withLock(\.connectionsOfOnePeer) }

    /// Applies the settings that can change while the server runs.
    ///
    /// - Throws: `ConfigurationError` if a certificate cannot be used. In that case nothing changes.
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
        settings.withLock { settings in
            settings.limits = new.limits
            settings.deadlines = new.deadlines
            settings.maximumConnections = new.maximumConnections
            settings.maximumConnectionsOfOnePeer = new.maximumConnectionsOfOnePeer
            settings.nat64 = new.nat64
        }
    }
}
