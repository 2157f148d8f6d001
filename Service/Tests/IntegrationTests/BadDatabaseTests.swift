import Foundation
import Testing

/// If a database cannot be used, the service reports that in a sentence at start, and serves nothing.
@Suite struct BadDatabase {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func serve(_ database: String) async throws -> Binary.Result {
        try await Binary.run(["serve", "--database", database, "--port", "0", "--operations-port", "0"])
    }

    @Test func `a file that is not a database is refused`() async throws {
        try Data("this is not a database, and it is longer than a header of one would be".utf8)
            .write(to: URL(fileURLWithPath: folder.path("db.sqlite")))
        let result = try await serve(folder.path("db.sqlite"))
        #expect(result.status == 2)
        #expect(!result.output.contains("ready"))
        #expect(result.errors.contains("db.sqlite"))
    }

    @Test func `a missing folder is refused`() async throws {
        let result = try await serve(folder.path("nowhere/db.sqlite"))
        #expect(result.status == 2)
        #expect(!result.output.contains("ready"))
    }

    @Test func `nothing makes a new database where one is gone`() async throws {
        let database = folder.path("db.sqlite")
        let service = try await RunningService(database: database)
        // A killed process leaves the files beside the database behind.
        service.kill()
        for file in [database, database + ".key"] { try FileManager.default.removeItem(atPath: file) }
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        for result in [
            try await serve(database),
            try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: example.output),
            try await Binary.run(["apps", "list", "--database", database]),
            try await Binary.run(["doctor", "--database", database, "--port", "0", "--operations-port", "0"]),
        ] {
            #expect(result.status != 0)
            let text = result.output + result.errors
            #expect(text.contains("db.sqlite is gone, and its claims are still in"), "\(text)")
            #expect(!FileManager.default.fileExists(atPath: database))
            // A new key file would be in the place where the operator restores the old one.
            #expect(!FileManager.default.fileExists(atPath: database + ".key"))
        }
        try FileManager.default.moveItem(atPath: database + "-claims", toPath: folder.path("claims"))
        // A folder that cannot be read may contain claims. Root can read every folder, so the test uses a link whose target does
        // not exist.
        try FileManager.default.createSymbolicLink(
            atPath: database + "-claims", withDestinationPath: folder.path("nowhere"))
        let unreadable = try await serve(database)
        #expect(unreadable.status == 2 && unreadable.errors.contains("cannot be read"), "\(unreadable.errors)")
        #expect(!FileManager.default.fileExists(atPath: database))
        try FileManager.default.removeItem(atPath: database + "-claims")
        let anew = try await RunningService(database: database)
        #expect(anew.stop() == 0)
    }

    @Test func `an app record with a typing error is refused by name`() async throws {
        let result = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", folder.path("db.sqlite")],
            input: #"{"app_id":"com.example.app","ios":{"app_ids":["T.com.example.app"],"enviroments":["production"]}}"#
        )
        #expect(result.status == 1)
        #expect(result.errors.contains("ios.enviroments"))
    }
}
