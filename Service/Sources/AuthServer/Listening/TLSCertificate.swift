package import AuthContract
internal import Bytes
internal import Foundation
internal import NIOSSL

extension TLSFiles {
    /// Whether both files can be re-read, because neither is a pipe.
    var canBeReadAgain: Bool { !FileContents.isReadOnce(certificate) && !FileContents.isReadOnce(key) }

    fileprivate var certificateKey: String { "\(group).tls_certificate" }
    fileprivate var keyKey: String { "\(group).tls_key" }

    /// Reads both files as the listener does, and returns the certificate's validity.
    ///
    /// - Throws: an error that says what is wrong, such as a key of another certificate.
    package func validity() throws(ConfigurationError) -> ClosedRange<UnixTime> {
        try TLSCertificate(self).validity
    }
}

/// The certificate of a listener. It is re-read when its files change. Open connections keep the certificate that they have.
final class TLSCertificate: Sendable {
    private let current: Locked<Loaded>

    /// The content of the files, and the TLS context made from it.
    struct Loaded: Sendable {
        let files: TLSFiles
        fileprivate let version: Version
        fileprivate let context: NIOSSLContext
        let validity: ClosedRange<UnixTime>
    }

    /// A value that changes whenever a file does.
    fileprivate struct Version: Equatable, Sendable {
        let certificate: [UInt8]
        let key: [UInt8]
    }

    /// Reads the files: PEM, the chain leaf first.
    init(_ files: TLSFiles) throws(ConfigurationError) {
        current = Locked(try Self.load(files))
    }

    /// The TLS handler of a new connection.
    func makeHandler() -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: current.withLock(\.context))
    }

    /// The validity of the certificate.
    var validity: ClosedRange<UnixTime> { current.withLock(\.validity) }

    /// Re-reads the files, and uses them if they changed. If they cannot be read or do not belong together, throws and keeps the
    /// certificate. Also keeps it if a file is a pipe, which can be read only once.
    ///
    /// - Returns: whether the certificate was replaced.
    func reload() throws(ConfigurationError) -> Bool {
        let known = loaded
        guard known.files.canBeReadAgain else { return false }
        let read = try Self.read(known.files)
        guard read != known.version else { return false }
        return replace(known, with: try Self.load(known.files, read))
    }

    /// The files in use.
    var loaded: Loaded { current.withLock { $0 } }

    /// Replaces the loaded files, unless another call replaced them since they were read, such as a reload of the configuration.
    /// Then returns false, because newer files must not be replaced by older ones.
    func replace(_ known: Loaded, with new: Loaded) -> Bool {
        current.withLock { current in
            guard current.files == known.files, current.version == known.version else { return false }
            current = new
            return true
        }
    }

    /// Replaces the files in use with loaded ones, whose paths may differ.
    func use(_ loaded: Loaded) { current.withLock { $0 = loaded } }

    /// Reads files and checks that they fit together.
    static func load(_ files: TLSFiles) throws(ConfigurationError) -> Loaded { try load(files, try read(files)) }

    private static func read(_ files: TLSFiles) throws(ConfigurationError) -> Version {
        Version(
            certificate: try contents(of: files.certificate, key: files.certificateKey, "certificate chain"),
            key: try contents(of: files.key, key: files.keyKey, "private key"))
    }

    private static func contents(
        of path: String, key: String, _ what: String
    ) throws(ConfigurationError) -> [UInt8] {
        do throws(SettingsFile.Unreadable) {
            return try SettingsFile.contents(of: path, upTo: 1 << 20)
        } catch {
            throw ConfigurationError(key, "must name a PEM file with a \(what), but \(path) \(error)")
        }
    }

    private static func load(_ files: TLSFiles, _ version: Version) throws(ConfigurationError) -> Loaded {
        guard let chain = try? NIOSSLCertificate.fromPEMBytes(version.certificate), let leaf = chain.first else {
            throw ConfigurationError(
                files.certificateKey,
                "must name a PEM file with a certificate chain, leaf first, but \(files.certificate) holds no certificate that can be read"
            )
        }
        guard let key = try? NIOSSLPrivateKey(bytes: version.key, format: .pem) else {
            throw ConfigurationError(
                files.keyKey,
                "must name a PEM file with a private key that has no passphrase, but \(files.key) holds none that can be read"
            )
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        guard let context = try? NIOSSLContext(configuration: configuration) else {
            throw ConfigurationError(
                files.keyKey,
                "must name the key of the first certificate in \(files.certificate), but \(files.key) holds another key: put the leaf first, or name its key"
            )
        }
        let (from, until) = (Int64(leaf.notValidBefore), Int64(leaf.notValidAfter))
        return Loaded(
            files: files, version: version, context: context, validity: UnixTime(min(from, until))...UnixTime(until))
    }
}
