import ArgumentParser
import AuthContract
import AuthService
import Foundation
import Glibc
import SQLiteStores

/// Which database a command works on.
struct DatabaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The SQLite database.", discussion: "Default: $SYNHEART_AUTH_DATABASE, else synheart-auth.sqlite."))
    var database: String?

    var path: String {
        database ?? ProcessInfo.processInfo.environment["SYNHEART_AUTH_DATABASE"] ?? "synheart-auth.sqlite"
    }

    /// The service's rules over the database, for administration beside a service that may be running.
    func administration() throws -> AuthService {
        guard FileManager.default.fileExists(atPath: path) else {
            throw CommandFailure(.impossible, "there is no database at \(path): start `serve` or `apps add` first")
        }
        return try open()
    }

    /// The same, making the database where there is none.
    func open() throws -> AuthService {
        let stores = try SQLiteStores(path: path, role: .administration)
        return AuthService(stores: stores.all, key: try ServiceKeyFile(database: path).load())
    }
}

/// The service key beside the database: 32 bytes, mode 0600, made once.
struct ServiceKeyFile {
    let path: String

    init(database: String) {
        path = ProcessInfo.processInfo.environment["SYNHEART_AUTH_SERVICE_KEY_FILE"] ?? database + ".key"
    }

    func load() throws -> ServiceKey {
        if !FileManager.default.fileExists(atPath: path) { try create() }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let bytes = Base64.standard.decode(text.trimmingCharacters(in: .whitespacesAndNewlines)),
            let key = ServiceKey(bytes)
        else { throw CommandFailure(.impossible, "\(path) is not a service key: 32 bytes in base64") }
        return key
    }

    /// O_EXCL decides who makes it where two processes start at once; the other one reads what was made.
    private func create() throws {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { return }
            throw CommandFailure(.impossible, "cannot make \(path): \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: Data((Base64.standard.encode(SystemRandom().bytes(32)) + "\n").utf8))
        try handle.synchronize()
    }
}
