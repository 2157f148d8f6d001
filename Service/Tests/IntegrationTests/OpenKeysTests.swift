import Foundation
import StrictJSON
import Testing

/// `synheart-auth playintegrity open-keys`, with a file that is encrypted in the same way as Play Console's.
@Suite struct OpenKeysTests {
    let folder: TemporaryFolder
    let vectors: JSONObject

    init() throws {
        folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Tests/PlayIntegrityTests/Vectors/keys.json")
        vectors = try #require(try JSONValue(parsing: Array(Data(contentsOf: file))).object)
        try Data(base64Encoded: text("play_console_enc_file_base64"))?.write(to: url("app.enc"))
        try Data(text("play_console_rsa_private_key_pem").utf8).write(to: url("private.pem"))
    }

    private func text(_ name: String) throws -> String { try #require(vectors[name]?.string) }

    private func url(_ name: String) -> URL { folder.url.appendingPathComponent(name) }

    private func open(_ file: String = "app.enc", key: String = "private.pem") async throws -> Binary.Result {
        try await Binary.run(["playintegrity", "open-keys", file, "--private-key", key], in: folder.url)
    }

    @Test func `the printed keys fit into an app record`() async throws {
        let result = try await open()
        #expect(result.status == 0, "\(result.errors)")
        let keys = try JSONValue(parsing: result.output)
        #expect(keys.object?["decryption_key"]?.string == vectors["DECRYPTION_KEY"]?.string)
        #expect(keys.object?["verification_key"]?.string == vectors["VERIFICATION_KEY"]?.string)

        let record: JSONValue = [
            "app_id": "com.example.app",
            "android": [
                "packages": ["com.example.app"],
                "certificate_digests": ["ERERERERERERERERERERERERERERERERERERERERERE"],
                "play_integrity": ["keys": [keys]],
            ],
        ]
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", folder.path("db.sqlite")], input: record.text())
        #expect(added.status == 0, "\(added.errors)")
        let shown = try await Binary.run(["apps", "show", "com.example.app", "--database", folder.path("db.sqlite")])
        #expect(!shown.output.contains(try #require(keys.object?["decryption_key"]?.string)))
    }

    @Test func `a wrong key, another file, no key and no file have different errors`() async throws {
        try Data([UInt8](repeating: 7, count: 256)).write(to: url("garbage.enc"))
        let garbage = try await open("garbage.enc")
        #expect(garbage.status == 1)
        #expect(garbage.errors == "synheart-auth: garbage.enc: the file is not encrypted for this key\n")
        try Data("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".utf8).write(to: url("public.pem"))
        let noKey = try await open(key: "public.pem")
        #expect(noKey.status == 1)
        #expect(noKey.errors == "synheart-auth: public.pem: not an RSA private key in PEM\n")
        let absent = try await open("absent.enc")
        #expect(absent.status == 2)
        #expect(absent.errors.hasPrefix("synheart-auth: cannot read absent.enc"))
    }
}
