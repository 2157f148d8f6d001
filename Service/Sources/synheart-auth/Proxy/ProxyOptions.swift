import ArgumentParser
import AuthContract
import AuthProxy
import AuthServer
import AuthService
import Foundation
import RequestVerification

/// The flags of a proxy.
struct ProxyOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Where clients' requests arrive; port 0 picks a free one.", valueName: "host:port"))
    var listen: ListenAddress
    @Option(help: ArgumentHelp("The backend, such as http://127.0.0.1:3000.", valueName: "url")) var backend: String
    @Option(help: ArgumentHelp("The auth service's public listener.", valueName: "url")) var service: String
    @Option(
        name: .customLong("credential-file"),
        help:
            "The file with the service credential. Default: $SYNHEART_AUTH_CREDENTIAL, else $SYNHEART_AUTH_CREDENTIAL_FILE."
    )
    var credentialFile: String?
    @Option(
        help: ArgumentHelp(
            "What clients send requests to, such as https://api.example.com. Default: http and the address of --listen.",
            valueName: "url"))
    var origin: String?
    @Option(
        name: .customLong("trusted-proxy"),
        help: "In place of --origin: a proxy's address or network, whose X-Forwarded headers count. May be repeated.")
    var trustedProxies: [String] = []
    @Option(help: "How the backend learns who signed: headers or token.")
    var identity = ProxyCommand.IdentityForm.headers
    @Option(
        name: .customLong("identity-audience"),
        help: "For --identity token: the token's audience, one of the app's token_audiences.")
    var audience: String?
    @Option(
        name: .customLong("upstream-header-file"),
        help: """
            Lines `name: value` that every request to the backend gets, such as the API key of a provider. Unverified requests \
            are then refused, also while the app is in observe mode.
            """)
    var upstreamHeaderFile: String?
    @Option(
        name: .customLong("body-limit"),
        help: "The largest body in bytes. It is verified before the backend sees any of it.")
    var bodyLimit = 1_048_576
    @Option(
        name: .customLong("stream-limit"),
        help:
            "The largest body of scheme 2 that is sent on while it arrives; 0: none. The backend sees its beginning unverified."
    )
    var streamLimit = 0
    @Option(help: "Seconds until the backend must begin its answer, and between two pieces of it.") var timeout = 60
    @Option(name: .customLong("body-timeout"), help: "Seconds that a client has to send a body.") var bodyTimeout = 30
    @Option(name: .customLong("answer-timeout"), help: "Seconds that a whole answer may take.") var answerTimeout = 600
    @Option(
        name: .customLong("operations-listen"),
        help: ArgumentHelp("Where /healthz, /readyz and /metrics are served.", valueName: "host:port"))
    var operationsListen: ListenAddress?
    @Option(
        name: .customLong("drain-seconds"),
        help: "How long connections are accepted after the signal to stop. Default: 5 with --trusted-proxy, else 0.")
    var drainSeconds: Int?
    @Option(name: .customLong("shutdown-seconds"), help: "How long requests in flight may take after that.")
    var shutdownSeconds = 30
    @Flag(
        name: .customLong("insecure-http"),
        help:
            "Allow plain http to and from other machines. Credentials and identities can then be read and changed there."
    )
    var insecureHTTP = false

    /// An address of the form `HOST:PORT`. An IPv6 host is in brackets.
    struct ListenAddress: ExpressibleByArgument {
        let host: String
        let port: Int

        init?(argument: String) {
            guard let colon = argument.lastIndex(of: ":"),
                let port = UInt16(argument[argument.index(after: colon)...])
            else { return nil }
            var host = argument[..<colon]
            if host.hasPrefix("["), host.hasSuffix("]") {
                host = host.dropFirst().dropLast()
            } else if host.contains(":") {
                return nil
            }
            guard !host.isEmpty else { return nil }
            self.host = String(host)
            self.port = Int(port)
        }
    }

    func validate() throws {
        guard origin == nil || trustedProxies.isEmpty else {
            throw ValidationError("--origin excludes --trusted-proxy: it is the one or the other")
        }
        guard audience?.isEmpty != true, (identity == .token) == (audience != nil) else {
            throw ValidationError("--identity token goes with --identity-audience")
        }
        guard (0...1 << 30).contains(bodyLimit) else { throw ValidationError("--body-limit is from 0 to 1073741824") }
        guard (0...1 << 40).contains(streamLimit) else {
            throw ValidationError("--stream-limit is from 0 to 1099511627776")
        }
        for (name, seconds) in [
            ("timeout", timeout), ("body-timeout", bodyTimeout), ("answer-timeout", answerTimeout),
        ] where !(1...86_400).contains(seconds) {
            throw ValidationError("--\(name) is from 1 to 86400")
        }
        for (name, seconds) in [("drain-seconds", drainSeconds ?? 0), ("shutdown-seconds", shutdownSeconds)]
        where !(0...3600).contains(seconds) {
            throw ValidationError("--\(name) is from 0 to 3600")
        }
    }

    /// The settings of the proxy.
    ///
    /// - Throws: `CommandFailure` for flags that are malformed or do not go together, and for files that cannot be read.
    func settings(environment: [String: String]) throws -> AuthProxySettings {
        let proxies: TrustedProxies
        do { proxies = try TrustedProxies(trustedProxies) } catch {
            throw CommandFailure(.impossible, "--trusted-proxy is no address and no network such as 10.0.0.0/8")
        }
        let isLocal = ServerSettings.isLoopback(listen.host)
        guard isLocal || !trustedProxies.isEmpty || insecureHTTP else {
            throw CommandFailure(
                .impossible,
                "--listen \(listen.host) is not a loopback address: give --trusted-proxy or --insecure-http")
        }
        guard isLocal || !trustedProxies.isEmpty || origin != nil else {
            throw CommandFailure(.impossible, "--listen \(listen.host) needs --origin: what clients send requests to")
        }
        if let operations = operationsListen {
            guard ServerSettings.isLoopback(operations.host) || insecureHTTP else {
                throw CommandFailure(
                    .impossible,
                    "--operations-listen \(operations.host) is not a loopback address: that needs --insecure-http")
            }
        }
        var settings = AuthProxySettings(
            service: try url(service, "--service"),
            credential: try CredentialSource.credential(
                file: credentialFile, environment: environment, for: "proxy", role: "service --app APP_ID"
            ).exposed,
            backend: try url(backend, "--backend"))
        if !trustedProxies.isEmpty { settings.source = .trustedProxies(trustedProxies) }
        if let origin { settings.source = .origin(try parse(origin, "--origin").description) }
        if let audience { settings.identity = .token(audience: audience) }
        if let file = upstreamHeaderFile { settings.upstream = try upstream(file) }
        settings.bodyLimit = bodyLimit
        settings.streamLimit = streamLimit
        settings.backendTimeout = .seconds(timeout)
        settings.insecureHTTP = insecureHTTP
        settings.hasOperations = operationsListen != nil
        settings.server.host = listen.host
        settings.server.port = listen.port
        settings.server.trustedProxies = proxies
        settings.server.operations.host = operationsListen?.host ?? settings.server.operations.host
        settings.server.operations.port = operationsListen?.port ?? 0
        settings.server.deadlines.body = .seconds(bodyTimeout)
        settings.server.deadlines.answer = .seconds(answerTimeout)
        settings.server.drain = .seconds(drainSeconds ?? (trustedProxies.isEmpty ? 0 : 5))
        settings.server.shutdown = .seconds(shutdownSeconds)
        settings.server.limits.allBodies = max(settings.server.limits.allBodies, bodyLimit)
        return settings
    }

    private func upstream(_ file: String) throws -> UpstreamHeaders {
        let text = try InputFile.secret(file, namedBy: "--upstream-header-file")
        do throws(UpstreamHeaders.Malformed) {
            return try UpstreamHeaders(text)
        } catch {
            throw CommandFailure(.impossible, "the file that --upstream-header-file names: \(error)")
        }
    }

    /// Parses the origin of a flag. The proxy sends identities or credentials to this origin, so plain HTTP to another
    /// machine is refused unless `--insecure-http` is given.
    private func url(_ text: String, _ flag: String) throws -> RequestOrigin {
        let origin = try parse(text, flag)
        guard origin.isSecure || insecureHTTP else {
            throw CommandFailure(
                .impossible, "\(flag) \(origin) is plain http to another machine: use https, or --insecure-http")
        }
        return origin
    }

    private func parse(_ text: String, _ flag: String) throws -> RequestOrigin {
        do throws(ContractError) {
            return try RequestOrigin(text.hasSuffix("/") ? String(text.dropLast()) : text)
        } catch {
            throw CommandFailure(.impossible, "\(flag) is such as https://api.example.com, without a path: \(error)")
        }
    }
}
