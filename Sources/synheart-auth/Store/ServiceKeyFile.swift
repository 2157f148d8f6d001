import AuthContract
import AuthServer
import AuthService
import Foundation
import Glibc

/// The service key beside the database: 32 bytes, mode 0600, made once.
struct ServiceKeyFile {
    let path: String

    init(database: String) { path = database + ".key" }

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

extension ServiceConfiguration {
    /// Where the database is.
    var databasePath: String { text(.database) ?? "synheart-auth.sqlite" }

    /// The key of the store, by the one rule that the service and the commands beside it follow: what is configured, else
    /// the file beside the database.
    func storeKey() throws -> ServiceKey { try serviceKey ?? ServiceKeyFile(database: databasePath).load() }
}
