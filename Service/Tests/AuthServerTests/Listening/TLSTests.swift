import AuthContract
import Crypto
import Foundation
import NIOSSL
import SwiftASN1
import Testing
import X509

@testable import AuthServer

/// TLS on the public and the operations listener.
@Suite struct TLSTests {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("synheart-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private var files: TLSFiles {
        TLSFiles(
            certificate: folder.appendingPathComponent("certificate.pem").path,
            key: folder.appendingPathComponent("key.pem").path)
    }

    /// Writes a new self-signed certificate and returns its PEM.
    @discardableResult private func writeCertificate(writingKey: Bool = true) throws -> String {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("localhost") }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: -3600), notValidAfter: Date(timeIntervalSinceNow: 3600),
            issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions { SubjectAlternativeNames([.dnsName("localhost")]) },
            issuerPrivateKey: .init(key))
        let pem = try certificate.serializeAsPEM().pemString
        try Data(pem.utf8).write(to: URL(fileURLWithPath: files.certificate))
        if writingKey { try Data(key.pemRepresentation.utf8).write(to: URL(fileURLWithPath: files.key)) }
        return pem
    }

    private func client(trusting pem: String) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)))
        return try NIOSSLContext(configuration: configuration)
    }

    @Test func `the public listener speaks TLS and says so`() async throws {
        let pem = try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        var settings = ServerSettings()
        settings.tls = files
        let context = try client(trusting: pem)
        try await TestServer.with(settings: settings) { server in
            #expect(server.addresses.publicURL == "https://127.0.0.1:\(server.publicPort)")
            #expect(server.addresses.operationsURL == "http://127.0.0.1:\(server.operationsPort)")
            let request = RawRequest(
                method: "GET", target: Route.keySet.rawValue, headers: [("Connection", "close")])
            let response = try await RawConnection.exchange(port: server.publicPort, request, tls: context)
            #expect(response.status == 200)
        }
    }

    @Test func `the operations listener speaks TLS with a certificate of its own, under the same rules for Host`()
        async throws
    {
        let pem = try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        var settings = ServerSettings()
        settings.operations.tls = TLSFiles(certificate: files.certificate, key: files.key, of: "operations")
        let first = try client(trusting: pem)
        try await TestServer.with(settings: settings) { [settings] server async throws in
            #expect(server.addresses.publicURL.hasPrefix("http://"))
            #expect(server.addresses.operationsURL == "https://127.0.0.1:\(server.operationsPort)")
            func get(_ target: String, host: String, _ context: NIOSSLContext) async throws -> RawResponse {
                try await RawConnection.exchange(
                    port: server.operationsPort, RawRequest(method: "GET", target: target, host: host), tls: context)
            }
            #expect(try await get("/openapi.json", host: "localhost", first).status == 200)
            #expect(try await get("/openapi.json", host: "evil.example", first).status == 400)
            let metrics = try await get("/metrics", host: "10.0.0.1", first)
            #expect(metrics.text.contains("\nsynheart_tls_certificate_expiry_timestamp_seconds "))
            // After a reload, the server uses the new content of the files.
            let second = try client(trusting: try writeCertificate())
            try server.server.apply(settings)
            #expect(try await get("/healthz", host: "localhost", second).status == 200)
            await #expect(throws: (any Error).self) { try await get("/healthz", host: "localhost", first) }
        }
    }

    @Test func `an error about the certificate of the operations listener names its setting`() {
        var settings = ServerSettings()
        settings.operations.tls = TLSFiles(certificate: files.certificate, key: files.key, of: "operations")
        let error = #expect(throws: ConfigurationError.self) { try settings.check() }
        #expect(error?.key == "operations.tls_certificate")
    }

    @Test func `a client without TLS gets no unencrypted response`() async throws {
        try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        var settings = ServerSettings()
        settings.tls = files
        try await TestServer.with(settings: settings) { server in
            let response = try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return try? await connection.response()
            }
            #expect(response == nil)
        }
    }

    @Test func `changed certificate files are reloaded, broken ones are not`() throws {
        try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        let certificate = try TLSCertificate(files)
        #expect(try !certificate.reload())
        try writeCertificate()
        #expect(try certificate.reload())
        #expect(try !certificate.reload())
        try writeCertificate(writingKey: false)
        #expect(throws: (any Error).self) { try certificate.reload() }
        try Data("not PEM".utf8).write(to: URL(fileURLWithPath: files.certificate))
        #expect(throws: (any Error).self) { try certificate.reload() }
        try FileManager.default.removeItem(atPath: files.key)
        #expect(throws: (any Error).self) { try certificate.reload() }
        try writeCertificate()
        #expect(try certificate.reload())
    }

    @Test func `a certificate in a pipe is read once, and kept at every reload`() throws {
        try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pem = try Data(contentsOf: URL(fileURLWithPath: files.certificate))
        try FileManager.default.removeItem(atPath: files.certificate)
        try #require(mkfifo(files.certificate, 0o600) == 0)
        let path = files.certificate
        Thread.detachNewThread { try? pem.write(to: URL(fileURLWithPath: path)) }
        var settings = ServerSettings()
        settings.tls = files
        // The configuration and the server check the settings first. A check must not read the pipe: only one read is possible.
        try settings.check()
        let certificate = try TLSCertificate(files)
        #expect(try !certificate.reload())
        let live = ReloadableSettings(ServerSettings())
        live.tls.server = certificate
        try settings.check()
        try live.apply(settings)
        #expect(certificate.loaded.files == files)
    }

    @Test func `an overtaken reload does not restore the old certificate`() throws {
        try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        let certificate = try TLSCertificate(files)
        let known = certificate.loaded
        let late = try TLSCertificate.load(files)
        // While `late` was loaded, another reload switched to a different certificate file.
        let moved = folder.appendingPathComponent("moved.pem").path
        try FileManager.default.copyItem(atPath: files.certificate, toPath: moved)
        certificate.use(try TLSCertificate.load(TLSFiles(certificate: moved, key: files.key)))
        #expect(!certificate.replace(known, with: late))
        #expect(certificate.loaded.files.certificate == moved)
        #expect(certificate.replace(certificate.loaded, with: late))
    }

    @Test(
        arguments: [
            (
                false, nil,
                "server.tls_certificate: must name a PEM file with a certificate chain, but CERTIFICATE does not exist"
            ),
            (true, nil, "server.tls_key: must name a PEM file with a private key, but KEY does not exist"),
            (
                true, "",
                "server.tls_key: must name a PEM file with a private key that has no passphrase, but KEY holds none that can be read"
            ),
            (
                true, "x",
                "server.tls_key: must name a PEM file with a private key that has no passphrase, but KEY holds none that can be read"
            ),
            (
                true, "other",
                "server.tls_key: must name the key of the first certificate in CERTIFICATE, but KEY holds another key: put the leaf first, or name its key"
            ),
            (true, "folder", "server.tls_key: must name a PEM file with a private key, but KEY is a folder"),
        ] as [(Bool, String?, String)])
    func `an error says what was expected, what was found, and what to do`(
        hasCertificate: Bool, key: String?, message: String
    ) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        if hasCertificate { try writeCertificate(writingKey: false) }
        switch key {
        case "other":
            try Data(P256.Signing.PrivateKey().pemRepresentation.utf8).write(to: URL(fileURLWithPath: files.key))
        case "folder":
            try FileManager.default.createDirectory(atPath: files.key, withIntermediateDirectories: false)
        default: try key.map { try Data($0.utf8).write(to: URL(fileURLWithPath: files.key)) }
        }
        var settings = ServerSettings()
        settings.tls = files
        let error = #expect(throws: ConfigurationError.self) { try settings.check() }
        let wanted = message.replacing("CERTIFICATE", with: files.certificate).replacing("KEY", with: files.key)
        #expect(error?.description == wanted)
    }

    @Test func `an error names a certificate file without a certificate`() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try writeCertificate()
        try Data("none".utf8).write(to: URL(fileURLWithPath: files.certificate))
        let error = #expect(throws: ConfigurationError.self) { try TLSCertificate.load(files) }
        #expect(error?.key == "server.tls_certificate")
        #expect(error?.reason.contains("holds no certificate that can be read") == true)
    }

    @Test func `the expiry of the certificate is a metric`() async throws {
        let pem = try writeCertificate()
        defer { try? FileManager.default.removeItem(at: folder) }
        let end = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)).first?.notValidAfter
        var settings = ServerSettings()
        settings.tls = files
        try await TestServer.with(settings: settings) { server in
            let text = try await server.operations("/metrics").text
            #expect(text.contains("\nsynheart_tls_certificate_expiry_timestamp_seconds \(end ?? 0)\n"))
        }
    }

    @Test func `files that cannot be used are a configuration error`() {
        var settings = ServerSettings()
        settings.tls = files
        #expect(throws: ConfigurationError.self) { try settings.check() }
    }
}
