import Foundation
import Glibc
import StrictJSON
import Testing

/// Pipes, devices, folders and links in place of the files that a command line names.
@Suite(.serialized) struct `Kinds of files` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Runs a bash command line in the folder. `$B` is the binary.
    private func bash(_ line: String) async throws -> Binary.Result {
        try await Binary.run(
            ["-c", line], in: folder.url, environment: ["B": Binary.url.path], of: URL(fileURLWithPath: "/bin/bash"))
    }

    private func fifo(_ name: String) throws -> String {
        try #require(mkfifo(folder.path(name), 0o600) == 0)
        return folder.path(name)
    }

    @Test func `a pipe works as an input file`() async throws {
        for line in [
            #""$B" apps add --file <("$B" apps example)"#,
            #"exec 3< <("$B" apps example); "$B" apps change --file /dev/fd/3"#,
            #""$B" attestation inspect <(printf '\240') || test $? = 1"#,
            #""$B" config check --config <(echo 'log_level: debug')"#,
            #""$B" config show --config <(echo '{"log_level": "debug"}') | grep debug"#,
            #""$B" apps list --config <(echo 'database: synheart-auth.sqlite')"#,
            #"mkfifo named; "$B" apps example > named & "$B" apps change --file named"#,
        ] {
            let result = try await bash(line)
            #expect(result.status == 0, "\(line): \(result.errors)")
        }
    }

    @Test func `a named pipe without a writer does not hang a command`() async throws {
        let pipe = try fifo("pipe")
        async let record = Binary.run(["apps", "add", "--file", pipe], in: folder.url)
        async let body = Binary.run(["attestation", "inspect", pipe], in: folder.url)
        async let secret = Binary.run(["config", "check"], environment: ["SYNHEART_AUTH_SERVICE_KEY_FILE": pipe])
        let results = try await [record, body, secret]
        for result in results {
            #expect(result.status != 0)
            #expect(result.errors.contains("nothing was written to it"), "\(result.errors)")
        }
    }

    @Test func `an endless input is bounded`() async throws {
        let record = try await Binary.run(["attestation", "inspect", "/dev/zero"])
        #expect(record.status == 2)
        #expect(record.errors.contains("larger than 1024 KiB"), "\(record.errors)")
        let folder = try await Binary.run(["apps", "add", "--file", "/"], in: folder.url)
        #expect(folder.status == 2)
        #expect(folder.errors.contains("Is a directory"), "\(folder.errors)")
    }

    @Test func `a database is a regular file`() async throws {
        let pipe = try fifo("db.sqlite")
        let free = ["--port", "0", "--operations-port", "0"]
        for (arguments, status) in [
            (["apps", "list"], 2), (["credentials", "create", "--role", "admin"], 2), (["audit", "verify"], 2),
            (["serve"] + free, 2), (["doctor"] + free, 1), (["config", "check"], 1),
        ] {
            let result = try await Binary.run(arguments + ["--database", pipe], in: folder.url)
            #expect(Int(result.status) == status, "\(arguments) \(result.errors)")
            #expect((result.errors + result.output).contains("not a regular file"), "\(arguments) \(result.errors)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["db.sqlite"])
    }

    // MARK: Output

    private func save(to path: String) async throws -> Binary.Result {
        try Data([0xA0]).write(to: folder.url.appendingPathComponent("object.bin"))
        return try await Binary.run(
            [
                "attestation", "verify", "object.bin", "--format", "app-attest-attestation", "--save-recording", path,
            ], in: folder.url)
    }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test func `a recording replaces a file, and only its owner can read it`() async throws {
        let file = folder.path("saved.json")
        try Data("of before".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        // A process that has the old file open still reads the old content.
        let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: file))
        #expect(try await save(to: file).status == 1)
        #expect(try mode(file) == 0o600)
        #expect(try JSONValue(parsing: Data(contentsOf: URL(fileURLWithPath: file))).object != nil)
        #expect(try reader.readToEnd() == Data("of before".utf8))
    }

    @Test func `a link to a file stays a link`() async throws {
        let (file, link) = (folder.path("saved.json"), folder.path("link.json"))
        try Data().write(to: URL(fileURLWithPath: file))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "saved.json")
        #expect(try await save(to: link).status == 1)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "saved.json")
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)).isEmpty == false)
    }

    @Test func `an output that cannot be saved is an error and leaves nothing`() async throws {
        let pipe = try fifo("pipe")
        for path in [pipe, "/dev/full", folder.path("nowhere/saved.json"), folder.url.path] {
            let result = try await save(to: path)
            #expect(result.status == 2, "\(path): \(result.errors)")
            #expect(result.errors.contains("cannot write \(path): "), "\(result.errors)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        #expect(left == ["object.bin", "pipe"])
    }
}
