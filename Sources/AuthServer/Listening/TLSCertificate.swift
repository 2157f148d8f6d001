public import AuthContract
internal import Foundation
internal import NIOConcurrencyHelpers
internal import NIOSSL

extension TLSFiles {
    /// Reads both files as the listener does, and says when the certificate is good.
    ///
    /// - Throws: what is wrong with them, such as a key of another certificate.
    public func validity() throws -> ClosedRange<UnixTime> {
        _ = try TLSCertificate(certificate: certificate, key: key)
        let pem = Array(try Data(contentsOf: URL(fileURLWithPath: certificate)))
        let leaf = try NIOSSLCertificate.fromPEMBytes(pem).first
        let (from, until) = (Int64(leaf?.notValidBefore ?? 0), Int64(leaf?.notValidAfter ?? 0))
        return UnixTime(min(from, until))...UnixTime(until)
    }
}

/// The certificate of the public listener, read again when its files change. Connections that are open keep the one that
/// they began with.
final class TLSCertificate: Sendable {
    private let certificatePath: String
    private let keyPath: String
    private let current: NIOLockedValueBox<Loaded>

    private struct Loaded {
        let context: NIOSSLContext
        let version: Version
    }

    /// What changes whenever a file does.
    private struct Version: Equatable {
        let certificate: [UInt8]
        let key: [UInt8]
    }

    /// Reads the files: PEM, the chain leaf first.
    init(certificate: String, key: String) throws {
        certificatePath = certificate
        keyPath = key
        current = NIOLockedValueBox(try Self.load(try Self.read(certificate, key)))
    }

    /// The TLS handler of a new connection.
    func makeHandler() -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: current.withLockedValue(\.context))
    }

    /// Takes the files as they are now, where they changed; throws, and keeps what it has, where they do not fit together.
    ///
    /// - Returns: whether they had changed.
    func reload() throws -> Bool {
        let version = try Self.read(certificatePath, keyPath)
        guard version != current.withLockedValue(\.version) else { return false }
        let loaded = try Self.load(version)
        current.withLockedValue { $0 = loaded }
        return true
    }

    private static func read(_ certificate: String, _ key: String) throws -> Version {
        Version(
            certificate: Array(try Data(contentsOf: URL(fileURLWithPath: certificate))),
            key: Array(try Data(contentsOf: URL(fileURLWithPath: key))))
    }

    private static func load(_ version: Version) throws -> Loaded {
        let chain = try NIOSSLCertificate.fromPEMBytes(version.certificate)
        let key = try NIOSSLPrivateKey(bytes: version.key, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        return Loaded(context: try NIOSSLContext(configuration: configuration), version: version)
    }
}
