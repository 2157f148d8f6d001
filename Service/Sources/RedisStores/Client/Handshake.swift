internal import AuthService
internal import RESP

/// The login of a connection: `HELLO 3` if the server knows it, and RESP2 otherwise. A value without I/O.
struct Handshake: Sendable {
    private enum Stage: Sendable { case greeting, password, selection, done }

    private let login: RedisURL.Login
    private let database: Int
    private let clientName: String
    private var stage = Stage.greeting

    init(_ settings: ConnectionSettings) {
        (login, database, clientName) = (settings.login, settings.database, settings.clientName)
    }

    /// The commands to send first.
    var greeting: [RESPCommand] {
        var hello = ["HELLO", "3"]
        if let password = login.password { hello += ["AUTH", login.user ?? "default", password] }
        return [RESPCommand(hello)]
    }

    /// Continues the login after the server has replied to the last commands.
    ///
    /// - Returns: the next commands; nil: the login is done.
    mutating func replied(_ replies: [RESPValue]) throws(StoreError) -> [RESPCommand]? {
        let error: RedisError? = if case .error(let text)? = replies.last { RedisError(text) } else { nil }
        switch stage {
        case .greeting:
            guard let error else { return select() }
            // Continue with RESP2: servers before Redis 6 and some proxies do not know `HELLO`.
            guard ["NOPROTO", "ERR"].contains(error.code) else { throw error.loginError }
            guard let password = login.password else { return select() }
            stage = .password
            return [RESPCommand(["AUTH"] + (login.user.map { [$0] } ?? []) + [password])]
        case .password:
            if let error { throw error.loginError }
            return select()
        case .selection:
            stage = .done
            if database != 0, let error { throw error.selectionError(database) }
            return nil
        case .done: return nil
        }
    }

    private mutating func select() -> [RESPCommand] {
        stage = .selection
        // An error of `SETNAME` is ignored: an ACL may forbid it, and the name only helps operators.
        var commands = [RESPCommand("CLIENT", "SETNAME", clientName)]
        if database != 0 { commands.append(RESPCommand("SELECT", "\(database)")) }
        return commands
    }
}
