internal import AuthContract
internal import AuthService
internal import Foundation

/// The addresses of the servers, and the login.
///
/// | form | |
/// |---|---|
/// | `redis://[[user]:password@]host[:port][/db]` | one server |
/// | `redis+sentinel://[[user]:password@]h1[:p1],h2[:p2]/MASTER[?db=N]` | behind Sentinel; the list names all Sentinels |
/// | `redis+cluster://[[user]:password@]h1[:p1],h2[:p2]` | a Cluster; the list names some of its nodes |
///
/// `rediss` in place of `redis` is TLS. The query takes `ca=/path`, `prefix=text`, and for Sentinel `db=N`,
/// `sentinel_user=` and `sentinel_password=`. All parts except hosts and numbers are percent-decoded.
struct RedisURL: Sendable, Hashable {
    /// The address of a server.
    struct Endpoint: Sendable, Hashable, CustomStringConvertible {
        let host: String
        let port: Int

        var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    enum Form: Sendable, Hashable {
        case single
        case sentinel(master: String)
        case cluster
    }

    struct Login: Sendable, Hashable {
        var user: String?
        var password: String?
    }

    let form: Form
    let endpoints: [Endpoint]
    let usesTLS: Bool
    let login: Login
    private(set) var sentinelLogin = Login()
    private(set) var database = 0
    private(set) var trustFile: String?
    private(set) var prefix: String?

    private static let schemes: [String: (kind: Kind, usesTLS: Bool)] = [
        "redis": (.single, false), "rediss": (.single, true),
        "redis+sentinel": (.sentinel, false), "rediss+sentinel": (.sentinel, true),
        "redis+cluster": (.cluster, false), "rediss+cluster": (.cluster, true),
    ]

    private enum Kind { case single, sentinel, cluster }

    /// Parses a URL. The error never contains a part of it that may be a secret.
    init(_ text: String) throws(StoreOpenError) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 }) else {
            throw Self.bad("has characters that must be percent-encoded, or is too long")
        }
        guard let colon = text.firstRange(of: "://"),
            let (kind, usesTLS) = Self.schemes[String(text[..<colon.lowerBound])]
        else {
            throw Self.bad(
                "must begin with redis://, redis+sentinel:// or redis+cluster://, or with rediss for TLS")
        }
        self.usesTLS = usesTLS
        var rest = text[colon.upperBound...]
        let query = rest.firstIndex(of: "?").map { rest[rest.index(after: $0)...] }
        rest = rest.prefix { $0 != "?" }
        let authority = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(authority.count).dropFirst()
        let at = authority.lastIndex(of: "@")
        login = try at.map { at throws(StoreOpenError) in try Self.login(authority[..<at]) } ?? Login()
        let hosts = at.map { authority[authority.index(after: $0)...] } ?? authority
        let defaultPort = kind == .sentinel ? 26379 : 6379
        var endpoints: [Endpoint] = []
        for part in hosts.split(separator: ",", omittingEmptySubsequences: false) {
            endpoints.append(try Self.endpoint(part, defaultPort: defaultPort))
        }
        guard Set(endpoints).count == endpoints.count else { throw Self.bad("names one server twice") }
        self.endpoints = endpoints
        switch kind {
        case .single:
            guard endpoints.count == 1 else {
                throw Self.bad("names several servers; use redis+sentinel:// or redis+cluster://")
            }
            form = .single
            if !path.isEmpty { database = try Self.database(path) }
        case .sentinel:
            let master = try Self.decoded(path)
            guard !master.isEmpty, master.utf8.count <= 128 else {
                throw Self.bad("must name the master after the Sentinels, such as redis+sentinel://host/mymaster")
            }
            form = .sentinel(master: master)
        case .cluster:
            guard path.isEmpty else { throw Self.bad("has a path; a Cluster has one database only") }
            form = .cluster
        }
        if let query { try readQuery(query, kind) }
    }

    private mutating func readQuery(_ query: Substring, _ kind: Kind) throws(StoreOpenError) {
        var seen: Set<String> = []
        for part in query.split(separator: "&", omittingEmptySubsequences: false) {
            let name = String(part.prefix { $0 != "=" })
            guard name.count < part.count, seen.insert(name).inserted else {
                throw Self.bad("has an option without a value, or one twice")
            }
            let value = part.dropFirst(name.count + 1)
            switch (name, kind) {
            case ("ca", _):
                guard usesTLS else { throw Self.bad("has the option ca, but does not use TLS: write rediss") }
                trustFile = try Self.decoded(value)
            case ("prefix", _):
                let prefix = try Self.decoded(value)
                guard (1...64).contains(prefix.utf8.count), !prefix.contains("{"), !prefix.contains("}") else {
                    throw Self.bad("has a prefix that is longer than 64 bytes, or contains { or }")
                }
                self.prefix = prefix
            case ("db", .sentinel): database = try Self.database(value)
            case ("sentinel_user", .sentinel): sentinelLogin.user = try Self.decoded(value)
            case ("sentinel_password", .sentinel): sentinelLogin.password = try Self.decoded(value)
            default:
                throw Self.bad(
                    "has an unknown option; known are ca, prefix, and for Sentinel db, sentinel_user and sentinel_password"
                )
            }
        }
        guard sentinelLogin.user == nil || sentinelLogin.password != nil else {
            throw Self.bad("has sentinel_user without sentinel_password")
        }
    }

    private static func login(_ text: Substring) throws(StoreOpenError) -> Login {
        let user = text.prefix { $0 != ":" }
        guard user.count < text.count else { throw bad("has a user without a password") }
        let password = try decoded(text.dropFirst(user.count + 1))
        guard !password.isEmpty else { throw bad("has an empty password") }
        return Login(user: user.isEmpty ? nil : try decoded(user), password: password)
    }

    private static func endpoint(_ text: Substring, defaultPort: Int) throws(StoreOpenError) -> Endpoint {
        var host = text
        var port: Substring?
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { throw bad("has an IPv6 address without ]") }
            host = text[text.index(after: text.startIndex)..<end]
            let after = text[text.index(after: end)...]
            guard after.isEmpty || after.first == ":" else { throw bad("has a host in another form than name:port") }
            port = after.isEmpty ? nil : after.dropFirst()
            var address = [UInt8](repeating: 0, count: 16)
            guard inet_pton(AF_INET6, String(host), &address) == 1 else { throw bad("has a broken IPv6 address") }
        } else if let colon = text.firstIndex(of: ":") {
            (host, port) = (text[..<colon], text[text.index(after: colon)...])
        }
        let isName = host.utf8.allSatisfy { byte in
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
                || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._:".utf8.contains(byte)
        }
        guard !host.isEmpty, host.utf8.count <= 253, isName else { throw bad("has no host, or a broken one") }
        guard let port else { return Endpoint(host: String(host), port: defaultPort) }
        guard let number = Int(port), (1...65535).contains(number), port.utf8.first != UInt8(ascii: "+") else {
            throw bad("has a port that is not 1 to 65535")
        }
        return Endpoint(host: String(host), port: number)
    }

    private static func database(_ text: Substring) throws(StoreOpenError) -> Int {
        guard let number = Int(text), (0...16383).contains(number), text.utf8.first != UInt8(ascii: "+") else {
            throw bad("has a database that is not a number")
        }
        return number
    }

    private static func decoded(_ text: Substring) throws(StoreOpenError) -> String {
        guard let decoded = String(text).removingPercentEncoding else { throw bad("has a broken percent escape") }
        return decoded
    }

    private static func bad(_ what: String) -> StoreOpenError {
        StoreOpenError(.malformedURL, "The URL of Redis \(what).")
    }
}

extension RedisURL: CustomStringConvertible {
    /// The servers, without the login.
    var description: String { endpoints.map(\.description).joined(separator: ",") }
}
