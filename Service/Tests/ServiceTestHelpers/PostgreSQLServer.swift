import Foundation

/// A PostgreSQL server for tests, in a temporary folder and on a free loopback port.
///
/// PostgreSQL refuses to run as root. In that case its programs run as the user `postgres`.
package final class PostgreSQLServer: Sendable {
    package let folder: String
    package let port: Int

    /// The initial content of a server.
    package enum Origin {
        case empty
        /// A streaming replica of another server.
        case replica(of: PostgreSQLServer)
    }

    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
    }

    /// The folder of PostgreSQL's programs, on Debian and other systems; nil if it was not found.
    package static let programs: String? = {
        let files = FileManager.default
        let versions = (try? files.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        let folders =
            versions.compactMap { Int($0) }.filter { $0 >= 15 }.sorted(by: >).map { "/usr/lib/postgresql/\($0)/bin" }
            + ["/opt/homebrew/opt/postgresql@15/bin", "/usr/local/bin", "/usr/bin"]
        return folders.first { files.isExecutableFile(atPath: "\($0)/initdb") }
    }()

    /// Whether the tests that need PostgreSQL run. In CI, missing programs are a failure and not a reason to skip.
    package static var isAvailable: Bool {
        programs != nil || ProcessInfo.processInfo.environment["SYNHEART_AUTH_STRICT"] != nil
    }

    /// One server for the tests that do not break it.
    package static func shared() async throws -> PostgreSQLServer { try await SharedServer.instance.server() }

    package init(_ origin: Origin = .empty, settings: [String: String] = [:], access: String? = nil) throws {
        guard Self.programs != nil else {
            throw Unusable(description: "PostgreSQL 15 or newer is not installed: run scripts/prepare postgresql")
        }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("postgresql-\(UUID())").path
        port = try LoopbackPort.reserve()
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        try Self.own(folder)
        switch origin {
        case .empty:
            try run("initdb", ["-D", data, "-U", "auth", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"])
        case .replica(let primary):
            try run(
                "pg_basebackup",
                ["-h", "127.0.0.1", "-p", "\(primary.port)", "-U", "auth", "-D", data, "-R", "-c", "fast", "--no-sync"])
        }
        var settings = settings
        settings.merge(
            [
                "listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''", "max_connections": "200",
                "shared_buffers": "'64MB'", "port": "\(port)", "logging_collector": "off",
                // By default, recovery syncs each file. One call for the whole file system is faster.
                "recovery_init_sync_method": "syncfs",
            ]
        ) { given, _ in given }
        let lines = settings.map { "\($0) = \($1)\n" }.sorted().joined()
        try Self.append(lines, to: "\(data)/postgresql.conf")
        if let access { try access.write(toFile: "\(data)/pg_hba.conf", atomically: false, encoding: .utf8) }
    }

    deinit {
        stop("immediate")
        try? FileManager.default.removeItem(atPath: folder)
    }

    package var data: String { "\(folder)/data" }

    /// A URL of a database of this server.
    package func url(_ database: String = "postgres", _ parameters: String = "") -> String {
        "postgresql://auth@127.0.0.1:\(port)/\(database)\(parameters)"
    }

    // MARK: Life

    package func start() throws {
        let end = ContinuousClock.now + .seconds(20)
        while true {
            do {
                // pg_ctl waits until the server accepts connections.
                try run("pg_ctl", ["-D", data, "-l", "\(folder)/log", "-w", "-t", "60", "start"])
                return
            } catch {
                // After a crash, a child of the old server may still hold its shared memory.
                guard ContinuousClock.now < end else {
                    let log = (try? String(contentsOfFile: "\(folder)/log", encoding: .utf8)) ?? ""
                    throw Unusable(description: "\(error): \(log.suffix(1000))")
                }
                usleep(50_000)
            }
        }
    }

    package func stop(_ mode: String = "fast") { _ = try? run("pg_ctl", ["-D", data, "-m", mode, "-w", "stop"]) }

    package func promote() throws { try run("pg_ctl", ["-D", data, "-w", "promote"]) }

    /// Kills all processes of the server at once, as a crash does.
    package func kill() throws {
        let all = try processes()
        try signal(SIGKILL)
        // Another server can start only when none of these processes uses the shared memory.
        while all.contains(where: Self.isAlive) { usleep(5000) }
        while (try? run("pg_isready", ["-h", "127.0.0.1", "-p", "\(port)", "-t", "1"])) != nil {}
    }

    /// Stops all processes of the server without ending them.
    package func pause() throws {
        // Stops the process that forks the others first. Otherwise a child that starts after `processes()` would still answer.
        let server = try processes()[0]
        Foundation.kill(server, SIGSTOP)
        while Self.state(of: server) != "T" { usleep(1000) }
        try signal(SIGSTOP)
    }

    package func resume() throws { try signal(SIGCONT) }

    /// Whether a process runs. A zombie does not.
    private static func isAlive(_ process: pid_t) -> Bool {
        state(of: process).map { !["Z", "X"].contains($0) } ?? false
    }

    /// The state letter in `/proc`; nil if there is no such process.
    private static func state(of process: pid_t) -> String? {
        let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return status.split(separator: ")").last?.split(separator: " ").first.map(String.init)
    }

    private func signal(_ number: Int32) throws {
        for process in try processes() { Foundation.kill(process, number) }
    }

    /// The server's own process, which forks the others, and then its children.
    private func processes() throws -> [pid_t] {
        let file = try String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8)
        guard let parent = file.split(separator: "\n").first.flatMap({ pid_t($0) }) else {
            throw Unusable(description: "there is no process")
        }
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let children = tasks.compactMap { pid_t($0) }.filter { process in
            let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
            let fields = status.split(separator: ")").last?.split(separator: " ") ?? []
            return fields.count > 1 && pid_t(fields[1]) == parent
        }
        return [parent] + children
    }

    // MARK: Databases

    /// Creates a database. Returns its URL.
    package func database(_ parameters: String = "") throws -> String {
        let name = "test_" + UUID().uuidString.lowercased().replacingOccurrences(of: "-", with: "")
        try sql("CREATE DATABASE \(name)")
        return url(name, parameters)
    }

    /// Runs statements with psql. Returns its output.
    @discardableResult
    package func sql(_ text: String, in url: String? = nil) throws -> String {
        try run("psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, url ?? self.url()])
    }

    // MARK: Programs

    /// Runs a program to its end. Returns its output.
    ///
    /// Does not use Foundation's `Process`: on Linux it waits until every descendant has ended, including a started server.
    @discardableResult
    package func run(_ program: String, _ arguments: [String]) throws -> String {
        let path = "\(Self.programs ?? "")/\(program)"
        let command =
            geteuid() == 0 ? ["/usr/sbin/runuser", "-u", "postgres", "--", path] + arguments : [path] + arguments
        // The output goes to a file and not to a pipe. A started server keeps its output open, so reading a pipe would not end.
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("output-\(UUID())")
        defer { try? FileManager.default.removeItem(at: output) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var words: [UnsafeMutablePointer<CChar>?] = command.map { (word: String) in strdup(word) } + [nil]
        defer { for word in words { free(word) } }
        var variables: [UnsafeMutablePointer<CChar>?] =
            ["PATH=/usr/bin:/bin", "LC_ALL=C"].map { (word: String) in strdup(word) } + [nil]
        defer { for variable in variables { free(variable) } }
        var child: pid_t = 0
        guard posix_spawn(&child, command[0], &actions, nil, &words, &variables) == 0 else {
            throw Unusable(description: "\(command[0]) cannot be started")
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let text = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
        guard status == 0 else {
            throw Unusable(description: "\(program) \(arguments.joined(separator: " ")): \(text)")
        }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Makes the server's user the owner of a path.
    package static func own(_ path: String) throws {
        guard geteuid() == 0 else { return }
        guard let user = getpwnam("postgres") else { throw Unusable(description: "there is no user postgres") }
        chown(path, user.pointee.pw_uid, user.pointee.pw_gid)
    }

    private static func append(_ text: String, to path: String) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }
}

/// Starts the shared server once, and stops it when the tests end.
private actor SharedServer {
    static let instance = SharedServer()
    private var started: PostgreSQLServer?

    func server() throws -> PostgreSQLServer {
        if let started { return started }
        // The shared server does not need `fsync`: the tests of durability use their own servers.
        let server = try PostgreSQLServer(settings: ["fsync": "off"])
        try server.start()
        started = server
        Self.stopAtExit(server)
        return server
    }

    nonisolated(unsafe) private static var running: PostgreSQLServer?

    private static func stopAtExit(_ server: PostgreSQLServer) {
        running = server
        atexit {
            SharedServer.running?.stop("immediate")
            if let folder = SharedServer.running?.folder { try? FileManager.default.removeItem(atPath: folder) }
        }
    }
}
