import AuthContract
import AuthService
import Crypto
import Foundation
import NIOSSL
import RESP
import ServiceTestHelpers
import SwiftASN1
import Testing
import X509

@testable import RedisStores

@Suite("TLS and ACL", .enabled(if: RedisInstallation.isHere))
struct TLSTests {
    /// A certificate authority, and a server certificate for a name.
    private struct Certificates {
        let folder: TemporaryFolder
        var authority: String { folder.path + "/ca.pem" }

        init(for name: String = "localhost") throws {
            folder = try TemporaryFolder()
            let (caKey, key) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
            let caName = try DistinguishedName { CommonName("Test CA") }
            let now = Date()
            let ca = try Certificate(
                version: .v3, serialNumber: .init(), publicKey: .init(caKey.publicKey), notValidBefore: now - 3600,
                notValidAfter: now + 86_400, issuer: caName, subject: caName, signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try .init { Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil)) },
                issuerPrivateKey: .init(caKey))
            let leaf = try Certificate(
                version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey), notValidBefore: now - 3600,
                notValidAfter: now + 86_400, issuer: caName, subject: try DistinguishedName { CommonName(name) },
                signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try .init { SubjectAlternativeNames([.dnsName(name)]) }, issuerPrivateKey: .init(caKey))
            for (file, text) in [
                ("ca.pem", try ca.serializeAsPEM().pemString), ("server.pem", try leaf.serializeAsPEM().pemString),
                ("server.key", key.pemRepresentation),
            ] { try text.write(toFile: "\(folder.path)/\(file)", atomically: true, encoding: .utf8) }
        }

        var settings: ConnectionSettings {
            get throws {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
                tls.certificateVerification = .noHostnameVerification
                var settings = ConnectionSettings()
                settings.tls = try NIOSSLContext(configuration: tls)
                return settings
            }
        }

        func server(_ users: [String] = []) async throws -> RedisServer {
            let port = try LoopbackPort.reserve()
            return try await RedisServer.start(
                [
                    "--port", "0", "--tls-port", "\(port)", "--tls-cert-file", "\(folder.path)/server.pem",
                    "--tls-key-file", "\(folder.path)/server.key", "--tls-auth-clients", "no",
                ] + users, port: port, settings: try settings)
        }
    }

    /// The rights listed in the documentation.
    static let rights =
        "~synheart-auth:* +hello +auth +select +client|setname +info +time +evalsha +eval +get +set +del +hmget +hset +hget "
        + "+hgetall +hdel +expire +pexpire +zadd +zrem +zcard +zscore +zrevrange +zrange +zrangebyscore +zpopmin "
        + "+zremrangebyscore +getdel"

    @Test func `the stores keep every guarantee over TLS, as a user with the documented rights only`() async throws {
        let certificates = try Certificates()
        let server = try await certificates.server()
        try await server.command(
            ["ACL", "SETUSER", "auth", "on", ">p@ss word", "resetkeys", "-@all"]
                + Self.rights.split(separator: " ").map(String.init))
        let url = "rediss://auth:p%40ss%20word@localhost:\(server.port)?ca=\(certificates.authority)"
        let stores = try await RedisStores.forTest(url)
        try await ConformanceTests.run(on: stores)
        let request = SampleRequest()
        let limited = try await stores.limits.claim(
            request.claims, of: request.device, at: Rate(burst: 1, perMinute: 1), timestamp: request.timestamp,
            expiresAt: request.timestamp + 660, now: request.timestamp, futureWindow: 60, tag: nil)
        #expect(limited == .judged(.claimed))
        let app = try AppID("com.example.app")
        #expect(try await stores.limits.exchange([app: 1]) == [app: 0])
        await stores.close()
    }

    private func refusal(_ url: String) async -> String {
        do throws(StoreOpenError) {
            var options = RedisStores.Options()
            options.connectDeadline = .milliseconds(50)
            let stores = try await RedisStores.connect(url, options: options, logger: silent)
            await stores.close()
            return "none"
        } catch { return "\(error)" }
    }

    @Test
    func `another name, an unknown authority, plain text and a wrong password are refused, and no secret is printed`()
        async throws
    {
        let (certificates, strangers) = (try Certificates(for: "redis.example"), try Certificates())
        let server = try await certificates.server()
        let own = try await strangers.server()
        try await own.command(["CONFIG", "SET", "requirepass", "right"])
        for (url, reason) in [
            ("rediss://localhost:\(server.port)?ca=\(certificates.authority)", "cannot be"),
            ("rediss://localhost:\(own.port)?ca=\(certificates.authority)", "cannot be"),
            ("redis://:hush@localhost:\(own.port)", "cannot be"),
            ("rediss://:hush@localhost:\(own.port)?ca=\(strangers.authority)", "user or the password"),
            ("rediss://localhost:\(own.port)?ca=\(strangers.authority)", "user or the password"),
            ("rediss://localhost:\(own.port)?ca=/none.pem", "certificate authorities"),
        ] {
            let sentence = await refusal(url)
            #expect(sentence.contains(reason), "\(sentence)")
            #expect(!sentence.contains("hush") && !sentence.contains("right"))
        }
    }

    @Test func `a failure of TLS is told in plain words, without a place in a library's sources`() async throws {
        let (named, strangers) = (try Certificates(for: "redis.example"), try Certificates())
        let (far, own, plain) = (try await named.server(), try await strangers.server(), try await RedisServer.start())
        for (url, reason) in [
            ("rediss://localhost:\(far.port)?ca=\(named.authority)", "certificate is for another host"),
            ("rediss://localhost:\(own.port)?ca=\(named.authority)", "comes from an unknown authority, or has expired"),
            ("rediss://localhost:\(plain.port)", "did not answer in time"),
        ] {
            let sentence = try #require(await RedisStores.diagnose(url).first).sentence
            #expect(sentence.contains(reason), "\(sentence)")
            #expect(!sentence.contains("BoringSSL") && !sentence.contains(".cc"), "\(sentence)")
        }
        // In TLS 1.3, the handshake of a client without a certificate succeeds. Only afterwards does the client learn that
        // the server refused it.
        try await own.command(["CONFIG", "SET", "tls-auth-clients", "yes"])
        let sentence = try #require(
            await RedisStores.diagnose("rediss://localhost:\(own.port)?ca=\(strangers.authority)").first
        ).sentence
        #expect(sentence.contains("tls-auth-clients no"), "\(sentence)")
    }
}
