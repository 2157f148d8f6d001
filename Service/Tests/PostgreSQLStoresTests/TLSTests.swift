import AuthService
import Crypto
import Foundation
import ServiceTestHelpers
import SwiftASN1
import Testing
import X509

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// TLS with a server whose certificates are from a test authority.
    @Suite
    struct TLSTests {
        private struct Authority {
            let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
            let name: DistinguishedName
            let certificate: Certificate

            init(_ text: String) throws {
                name = try DistinguishedName { CommonName(text) }
                certificate = try Certificate(
                    version: .v3, serialNumber: .init(), publicKey: key.publicKey, notValidBefore: Date() - 3600,
                    notValidAfter: Date() + 3600, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
                    extensions: try Certificate.Extensions {
                        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                        Critical(KeyUsage(keyCertSign: true))
                    },
                    issuerPrivateKey: key)
            }

            /// A server's certificate and its key, as PEM.
            func issue(for host: String) throws -> (certificate: String, key: String) {
                let key = P256.Signing.PrivateKey()
                let certificate = try Certificate(
                    version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey), notValidBefore: Date() - 3600,
                    notValidAfter: Date() + 3600, issuer: name, subject: try DistinguishedName { CommonName("server") },
                    signatureAlgorithm: .ecdsaWithSHA256,
                    extensions: try Certificate.Extensions { SubjectAlternativeNames([.dnsName(host)]) },
                    issuerPrivateKey: self.key)
                return (try certificate.serializeAsPEM().pemString, key.pemRepresentation)
            }
        }

        private let server: PostgreSQLServer
        private let root: String

        /// A server that accepts only TLS connections, with a certificate for `db.example.com`.
        init() throws {
            let authority = try Authority("Tests")
            let identity = try authority.issue(for: "db.example.com")
            server = try PostgreSQLServer(
                settings: [
                    "ssl": "on", "ssl_cert_file": "'server.crt'", "ssl_key_file": "'server.key'", "fsync": "off",
                ], access: "hostssl all all 127.0.0.1/32 trust\n")
            root = "\(server.folder)/root.pem"
            try authority.certificate.serializeAsPEM().pemString.write(toFile: root, atomically: false, encoding: .utf8)
            for (name, text) in [("server.crt", identity.certificate), ("server.key", identity.key)] {
                let path = "\(server.data)/\(name)"
                try text.write(toFile: path, atomically: false, encoding: .utf8)
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
                try PostgreSQLServer.own(path)
            }
            try server.start()
        }

        /// `hostaddr` is the server's address. `host` is the name that the certificate must have.
        private func url(_ host: String, _ more: String = "") -> String {
            "postgresql://auth@\(host):\(server.port)/postgres?hostaddr=127.0.0.1\(more)"
        }

        private func refusal(_ url: String) async -> StoreOpenError? {
            do throws(StoreOpenError) {
                await (try PostgreSQLStores.connect(url, logger: silent)).close()
                return nil
            } catch { return error }
        }

        @Test func `a server is accepted by its name and our authority, and by nothing less`() async throws {
            let verified = "&sslmode=verify-full&sslrootcert=\(root)"
            #expect(await refusal(url("db.example.com", verified)) == nil)
            let other = "\(server.folder)/other.pem"
            try Authority("Others").certificate.serializeAsPEM().pemString
                .write(toFile: other, atomically: false, encoding: .utf8)
            for (url, words) in [
                (url("other.example.com", verified), "does not match host name"),
                (url("db.example.com", "&sslmode=verify-full&sslrootcert=\(other)"), "certificate verify failed"),
                (url("db.example.com", "&sslmode=verify-full&sslrootcert=/nowhere"), "does not exist"),
                (url("db.example.com", "&sslmode=disable"), "no encryption"),
            ] {
                let error = try #require(await refusal(url))
                #expect(error.code == .unreachable)
                #expect(error.description.contains(words), "\(error)")
            }
        }
    }
}
