internal import AuthService

/// An error reply. Its first word is the code.
struct RedisError: Sendable, Hashable {
    let code: Substring
    let text: String

    init(_ text: String) {
        self.text = text
        code = text.prefix { $0 != " " }
    }

    /// The slot and the server of `MOVED` and `ASK`; nil for other errors.
    var redirection: (isAsk: Bool, slot: Int, host: String, port: Int)? {
        let words = text.split(separator: " ")
        guard words.count == 3, code == "MOVED" || code == "ASK", let slot = Int(words[1]),
            let colon = words[2].lastIndex(of: ":"), let port = Int(words[2][words[2].index(after: colon)...]),
            (1...65535).contains(port)
        else { return nil }
        return (code == "ASK", slot, String(words[2][..<colon]), port)
    }

    /// Whether the error shows that this server, for example a replica, must not be used for the key now. `RoutedCall` then drops
    /// the route or ends the session.
    var meansWrongServer: Bool {
        ["READONLY", "LOADING", "MASTERDOWN", "MOVED", "CLUSTERDOWN", "NOREPLICAS", "UNKILLABLE", "NOAUTH"].contains(
            code)
    }

    /// The error that a caller sees after a failed login. A server repeats the arguments of an unknown command, which include
    /// the password. So the error contains only a known code of the server's reply.
    var loginError: StoreError {
        switch code {
        case "WRONGPASS", "NOAUTH": StoreError(.unavailable, "Redis refuses the user or the password")
        case "NOPERM": StoreError(.unavailable, "the user's ACL lacks a right that the login needs")
        case "BUSY", "CLUSTERDOWN", "DENIED", "LOADING", "MASTERDOWN", "MISCONF":
            StoreError(.unavailable, "Redis takes no login now (\(code))")
        case "ERR": StoreError(.unavailable, "Redis refuses a login with user and password (ERR)")
        default: StoreError(.unavailable, "Redis refuses a login with user and password")
        }
    }

    /// The error that a caller sees if the `SELECT` that ends the login fails.
    func selectionError(_ database: Int) -> StoreError {
        code == "ERR" ? StoreError(.unavailable, "Redis refuses database \(database)") : loginError
    }

    /// The error that a caller sees. A server's text contains no secret of this service, except that some versions name the
    /// user.
    var storeError: StoreError {
        switch code {
        case "OOM": StoreError(.unavailable, "Redis is full: \(text)")
        case "WRONGPASS", "NOAUTH": StoreError(.unavailable, "Redis refuses the user or the password")
        case "NOPERM": StoreError(.unavailable, "the user's ACL lacks a right: \(text)")
        default: StoreError(.unavailable, "Redis answered: \(text)")
        }
    }
}

extension StoreError {
    /// This error with the server in its reason.
    func naming(_ endpoint: RedisURL.Endpoint) -> StoreError {
        reason.contains("\(endpoint)") ? self : StoreError(code, "\(endpoint): \(reason)")
    }
}
