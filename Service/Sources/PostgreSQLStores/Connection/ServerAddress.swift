internal import AuthService
internal import CPostgreSQL
internal import Foundation

/// The servers of a URL, each with its connection parameters.
///
/// libpq parses the URL. The stores connect to one server at a time: libpq's asynchronous calls have no deadline for each of
/// several servers, so a server that hangs would hide the others.
struct ServerAddress: Sendable {
    /// One server.
    struct Server: Sendable {
        /// libpq's parameters. They may contain a password.
        let parameters: [String: String]
        /// The host and the port, for error texts.
        let name: String
        /// Whether the server is on this machine: a socket or a loopback address.
        let isLocal: Bool
        /// Whether the connection is encrypted and the server's certificate and name are checked.
        let isVerified: Bool
    }

    let servers: [Server]
    /// The longest time for one server to answer.
    let connectTimeout: Duration

    /// Reads `postgresql://user:password@host:port,host:port/database?parameter=value`.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - defaults: values of parameters that the URL does not have; nil: the values that libpq takes from the environment.
    init(_ url: String, defaults: [String: String]? = nil) throws(StoreOpenError) {
        // libpq's message about a malformed URL may quote a password, so it is not used.
        guard url.hasPrefix("postgresql://") || url.hasPrefix("postgres://") else {
            throw StoreOpenError(
                .malformedURL, "A PostgreSQL URL begins with postgresql://, as in postgresql://user@host:5432/database."
            )
        }
        guard let options = PQconninfoParse(url, nil) else {
            throw StoreOpenError(
                .malformedURL,
                "The PostgreSQL URL is malformed: percent-encode special characters in the user and the password, and check the names of its parameters."
            )
        }
        defer { PQconninfoFree(options) }
        let parameters = Self.values(options)
        connectTimeout = try Self.timeout(parameters["connect_timeout"])
        try Self.check(parameters)
        let known = if let defaults { defaults } else { try Self.environment() }
        servers = try Self.servers(parameters, defaults: known)
    }

    /// The parameters that have a value. libpq treats an empty value as missing.
    private static func values(_ options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val, value.pointee != 0 {
                values[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return values
    }

    /// libpq's values for parameters that a URL does not have, from the environment (PGHOST, PGHOSTADDR, PGSERVICE …).
    private static func environment() throws(StoreOpenError) -> [String: String] {
        guard let options = PQconndefaults() else { throw StoreOpenError(.unavailable, "There is no memory.") }
        defer { PQconninfoFree(options) }
        return values(options)
    }

    private static func check(_ parameters: [String: String]) throws(StoreOpenError) {
        guard parameters["gssencmode", default: "disable"] == "disable" else {
            throw StoreOpenError(
                .malformedURL,
                "gssencmode of the PostgreSQL URL must be disable: connections are encrypted with TLS. Remove it from the URL."
            )
        }
        guard ["read-write", "primary"].contains(parameters["target_session_attrs", default: "read-write"]) else {
            throw StoreOpenError(
                .malformedURL,
                "target_session_attrs of the PostgreSQL URL must be read-write or primary: the service writes, and what a standby says may be old. Remove it from the URL."
            )
        }
    }

    private static func timeout(_ text: String?) throws(StoreOpenError) -> Duration {
        guard let text else { return .seconds(2) }
        guard let seconds = Int(text), (1...60).contains(seconds) else {
            throw StoreOpenError(.malformedURL, "connect_timeout of the PostgreSQL URL is 1 to 60 seconds.")
        }
        return .seconds(seconds)
    }

    private static func servers(
        _ parameters: [String: String], defaults: [String: String]
    ) throws(StoreOpenError) -> [Server] {
        let service = parameters["service"] ?? defaults["service"]
        var parameters = parameters
        // A service file takes precedence over the environment, and only libpq reads it.
        if service == nil {
            for name in ["host", "hostaddr"] where parameters[name] == nil { parameters[name] = defaults[name] }
            if parameters["port"] == nil, defaults["port"]?.contains(",") == true {
                parameters["port"] = defaults["port"]
            }
        }
        func list(_ name: String) -> [String] {
            parameters[name].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
        }
        let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(hosts.count, addresses.count, 1)
        guard hosts.isEmpty || addresses.isEmpty || hosts.count == addresses.count,
            ports.count <= 1 || ports.count == count
        else {
            throw StoreOpenError(
                .malformedURL,
                "The PostgreSQL URL has \(count) hosts, \(addresses.count) addresses and \(ports.count) ports, those of the environment included: give each host its own."
            )
        }
        return (0..<count).map { index in
            func part(_ list: [String]) -> String {
                list.count > index ? list[index] : (list.count == 1 ? list[0] : "")
            }
            // For one of several hosts, libpq fills empty values with defaults too.
            func given(_ list: [String], _ name: String) -> String {
                let part = part(list)
                return part.isEmpty && service == nil ? defaults[name] ?? "" : part
            }
            return server(
                parameters, host: given(hosts, "host"), address: given(addresses, "hostaddr"), port: part(ports),
                service: service)
        }
    }

    private static func server(
        _ shared: [String: String], host: String, address: String, port: String, service: String?
    ) -> Server {
        var parameters = shared
        parameters["host"] = host.isEmpty ? nil : host
        parameters["hostaddr"] = address.isEmpty ? nil : address
        parameters["port"] = port.isEmpty ? nil : port
        // A libpq service may name any server, so the server does not count as local.
        let isLocal = service == nil && isLocal(address.isEmpty ? host : address)
        // Unless the URL says otherwise, no data leaves this machine unencrypted or goes to an unverified server. Neither the
        // environment (PGSSLMODE) nor a libpq service weakens that.
        let mode = parameters["sslmode"] ?? (isLocal ? "prefer" : "verify-full")
        parameters["sslmode"] = mode
        // libpq prefers GSSAPI's encryption, which checks no certificate, to TLS.
        parameters["gssencmode"] = "disable"
        parameters["connect_timeout"] = nil
        let defaults = [
            "target_session_attrs": "read-write", "application_name": "synheart-auth", "client_encoding": "UTF8",
            "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "10000",
        ]
        parameters.merge(defaults) { given, _ in given }
        parameters["client_encoding"] = "UTF8"
        let name = host.isEmpty ? address : host
        let unnamed = service.map { "the service \($0)" } ?? "the local socket"
        return Server(
            parameters: parameters, name: (name.isEmpty ? unnamed : name) + (port.isEmpty ? "" : ":" + port),
            isLocal: isLocal, isVerified: mode == "verify-full")
    }

    private static func isLocal(_ host: String) -> Bool {
        // The environment may list several addresses for one host of the URL. Not all of them need be local.
        guard !host.contains(",") else { return false }
        return host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") || host == "localhost" || host == "::1"
            || isLoopback(host)
    }

    private static func isLoopback(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
