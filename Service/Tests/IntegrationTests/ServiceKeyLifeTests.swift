import Foundation
import GRDB
import StrictJSON
import Testing

/// A database works only with its own service key, for every command and every way to specify the key.
@Suite struct ServiceKeyLife {
    let folder: TemporaryFolder
    let database: String
    private let variable = "SYNHEART_AUTH_SERVICE_KEY"
    private let first = ServiceKeyLife.key(1)
    private let second = ServiceKeyLife.key(2)

    init() throws {
        folder = try TemporaryFolder()
        database = folder.path("db.sqlite")
    }

    private static func key(_ byte: UInt8) -> String { Data(repeating: byte, count: 32).base64EncodedString() }

    private var keyFile: String { database + ".key" }

    private func run(_ words: String, key: String? = nil, input: String? = nil) async throws -> Binary.Result {
        try await Binary.run(
            words.split(separator: " ").map(String.init) + ["--database", database], input: input,
            environment: key.map { [variable: $0] } ?? [:])
    }

    /// Creates a database with an app and a signing key.
    private func make(key: String? = nil) async throws {
        try #require(try await run("apps add --file -", key: key, input: DevelopmentDevice.app).status == 0)
        try #require(try await run("signing-keys rotate", key: key).status == 0)
    }

    /// Commands that read, and commands that seal values.
    private static let commands = [
        "apps list", "signing-keys rotate", "devices list", "credentials create --name x --role admin", "audit verify",
        "apps add --file -", "service-key rotate", "serve --port 0 --operations-port 0",
    ]

    @Test(arguments: commands)
    func `without the key's variable a command is refused and creates no key`(_ command: String) async throws {
        try await make(key: first)
        #expect(!FileManager.default.fileExists(atPath: keyFile))
        let before = try sealed()
        let result = try await run(command, input: DevelopmentDevice.app)
        #expect(result.status == 2, "\(result)")
        #expect(result.errors.contains(keyFile) && result.errors.contains(variable), "\(result.errors)")
        #expect(!result.output.contains("ready"))
        #expect(!FileManager.default.fileExists(atPath: keyFile))
        #expect(try sealed() == before)
    }

    @Test(arguments: commands)
    func `a command under another key is refused, and names the key`(_ command: String) async throws {
        try await make(key: first)
        let before = try sealed()
        let result = try await run(command, key: second, input: DevelopmentDevice.app)
        #expect(result.status == 2, "\(result)")
        #expect(result.errors.contains("environment \(variable)"), "\(result.errors)")
        #expect(!result.errors.contains(second) && !result.output.contains("ready"))
        #expect(try sealed() == before)
    }

    @Test(arguments: commands)
    func `a missing key file is not created again`(_ command: String) async throws {
        try await make()
        try FileManager.default.removeItem(atPath: keyFile)
        let result = try await run(command, input: DevelopmentDevice.app)
        #expect(result.status == 2, "\(result)")
        #expect(result.errors.contains(keyFile))
        #expect(!FileManager.default.fileExists(atPath: keyFile))
    }

    @Test func `another key file is refused by its name`() async throws {
        try await make()
        try Data(second.utf8).write(to: URL(fileURLWithPath: keyFile))
        let result = try await run("apps list")
        #expect(result.status == 2)
        #expect(result.errors.contains("(\(keyFile))"), "\(result.errors)")
    }

    @Test func `only the owner can read the key file and the database`() async throws {
        try await make()
        for file in [keyFile, database] {
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter {
            $0.hasPrefix("db.sqlite.key")
        }
        #expect(left == ["db.sqlite.key"])
    }

    @Test func `during a rotation both keys are needed, afterwards only the new one`() async throws {
        try await make(key: first)
        let both = "\(second), \(first)"
        #expect(try await run("apps list", key: both).status == 0)
        #expect(try await run("apps list", key: "\(first),\(second)").status == 0)
        let service = try await RunningService(database: database, environment: [variable: both])
        #expect(try await run("apps list", key: first).status == 2, "the service seals with the new key")
        let rotated = try await run("service-key rotate --json", key: both)
        #expect(rotated.status == 0, "\(rotated)")
        #expect(try JSONValue(parsing: rotated.output).object?["resealed"]?.integer.map { $0 >= 2 } == true)
        #expect(service.stop() == 0)
        #expect(try await run("apps list", key: first).status == 2)
        #expect(try await run("apps list", key: second).output.contains("com.example"))
        let restarted = try await RunningService(database: database, environment: [variable: second])
        restarted.kill()
        #expect(try await run("audit list", key: second).output.contains("service_key.rotated"))
    }

    @Test func `a rotation beside a service that knows only the old key is refused`() async throws {
        try await make(key: first)
        let service = try await RunningService(database: database, environment: [variable: first])
        let result = try await run("service-key rotate", key: "\(second),\(first)")
        #expect(result.status == 2 && result.errors.contains("running service"), "\(result)")
        #expect(service.stop() == 0)
        #expect(try await run("apps list", key: first).status == 0)
    }

    @Test func `beside a service with the old key, a command with a new list reads, and changes nothing`() async throws
    {
        try await make(key: first)
        let both = "\(second),\(first)"
        let service = try await RunningService(database: database, environment: [variable: first])
        let before = try sealed()
        #expect(try await run("apps list", key: both).status == 0)
        for command in ["signing-keys rotate", "service-key rotate"] {
            let result = try await run(command, key: both)
            #expect(result.status == 2 && result.errors.contains("Restart the service"), "\(result)")
        }
        #expect(try sealed() == before)
        #expect(try await run("apps list", key: first).status == 0)
        #expect(service.stop() == 0)
    }

    @Test func `going back to the old key is refused beside a service and allowed without one`() async throws {
        try await make(key: first)
        let service = try await RunningService(database: database, environment: [variable: "\(second),\(first)"])
        let result = try await run("service-key rotate", key: "\(first),\(second)")
        #expect(result.status == 2 && result.errors.contains("Stop the service"), "\(result)")
        #expect(service.stop() == 0)
        #expect(try await run("service-key rotate", key: "\(first),\(second)").status == 0)
        #expect(try await run("apps list", key: first).status == 0)
    }

    @Test func `a key file may list two keys, and a configuration file may too`() async throws {
        try await make()
        let old = try String(contentsOfFile: keyFile, encoding: .utf8)
        try Data("\(second)\n\(old)".utf8).write(to: URL(fileURLWithPath: keyFile))
        #expect(try await run("service-key rotate").status == 0)
        try FileManager.default.removeItem(atPath: keyFile)
        let file = folder.path("c.yaml")
        try Data("service_key: [\(first), \(second)]\ndatabase: \(database)\n".utf8).write(
            to: URL(fileURLWithPath: file))
        #expect(try await Binary.run(["service-key", "rotate", "--config", file]).status == 0)
        #expect(try await run("apps list", key: first).status == 0)
        #expect(try await run("apps list", key: second).status == 2)
    }

    @Test func `only the key that opens a database of an earlier version adopts it`() async throws {
        try await make(key: first)
        let queue = try DatabaseQueue(path: database)
        try await queue.write { try $0.execute(sql: "DELETE FROM facts WHERE name = 'service_key_checks'") }
        let refused = try await run("apps list", key: second)
        #expect(refused.status == 2 && refused.errors.contains("does not open"), "\(refused)")
        #expect(try await run("apps list", key: first).status == 0)
        let count = try await queue.read {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM facts WHERE name = 'service_key_checks'")
        }
        #expect(count == 1)
    }

    @Test func `through a link the key and the claims beside the file itself are used`() async throws {
        try await make()
        let name = folder.path("link.sqlite")
        try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: "db.sqlite")
        #expect(try await Binary.run(["apps", "list", "--database", name]).status == 0)
        let service = try await RunningService(database: database)
        let second = try await Binary.run([
            "serve", "--database", name, "--port", "0", "--operations-port", "0",
        ])
        #expect(second.status == 2 && !second.output.contains("ready"))
        #expect(service.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: name + ".key"))
    }

    @Test(arguments: ["", "AAAA", "\(Self.key(1)) x", "\(Self.key(1)),\(Self.key(1))"])
    func `a key file without a key is refused and kept`(_ text: String) async throws {
        try await make()
        try Data(text.utf8).write(to: URL(fileURLWithPath: keyFile))
        let result = try await run("apps list")
        #expect(result.status == 2 && result.errors.contains(keyFile), "\(result)")
        #expect(try String(contentsOfFile: keyFile, encoding: .utf8) == text)
    }

    @Test func `a pipe as a key file is refused without a wait`() async throws {
        try #require(mkfifo(keyFile, 0o600) == 0)
        #expect(try await run("apps add --file -", input: DevelopmentDevice.app).status == 2)
    }

    @Test(.enabled(if: TinyDisk.canBeMounted, "a file system of a few megabytes needs the right to mount one"))
    func `a full disk leaves no empty key, and with room the same command works`() async throws {
        let disk = try #require(TinyDisk(kilobytes: 16_384))
        try disk.fill()
        let arguments = ["apps", "add", "--file", "-", "--database", disk.path("db.sqlite")]
        let refused = try await Binary.run(arguments, input: DevelopmentDevice.app)
        #expect(refused.status == 2, "\(refused)")
        let size = try? FileManager.default.attributesOfItem(atPath: disk.path("db.sqlite.key"))[.size] as? Int
        #expect(size == nil || size == 45)
        try disk.makeRoom()
        #expect(try await Binary.run(arguments, input: DevelopmentDevice.app).status == 0)
    }

    /// The app records and the sealed signing keys, as they are stored.
    private func sealed() throws -> [String] {
        try DatabaseQueue(path: database).read { database in
            try String.fetchAll(
                database, sql: "SELECT record FROM apps UNION ALL SELECT hex(sealed_key) FROM signing_keys")
        }
    }
}
