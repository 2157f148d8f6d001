import AuthContract
import AuthServer
import AuthService
import Foundation

/// Checks of the listeners' addresses and the certificate.
struct ListenerChecks {
    let settings: ServerSettings
    /// Whether a service runs on the same database. If so, the service itself uses the addresses.
    let isServed: Bool

    private static let day: Int64 = 86_400
    /// The usual places of the system's root certificates, which verify Apple's and Google's servers.
    private static let systemRoots = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    ]

    func run(_ diagnosis: inout Diagnosis) async {
        await checkAddresses(&diagnosis)
        checkOrigin(&diagnosis)
        checkTLS(&diagnosis)
        if let files = settings.operations.tls { checkCertificate(files, as: "operations_tls", &diagnosis) }
        checkSystemRoots(&diagnosis)
    }

    private func checkAddresses(_ diagnosis: inout Diagnosis) async {
        guard !isServed else {
            return diagnosis.ok("listeners", "not tried: a service runs on this database; --url asks it")
        }
        let errors = await settings.unavailableListeners()
        for error in errors {
            diagnosis.fail("listeners", error.description, do: "stop who listens there, or choose another address")
        }
        if errors.isEmpty {
            let operations = settings.operations
            var addresses = ["\(settings.host):\(settings.port)", "\(operations.host):\(operations.port)"]
            if let metrics = settings.metrics { addresses.append("\(metrics.host):\(metrics.port)") }
            diagnosis.ok("listeners", "\(addresses.joined(separator: " and ")) are free")
        }
    }

    private func checkOrigin(_ diagnosis: inout Diagnosis) {
        if let origin = settings.publicOrigin {
            return diagnosis.ok("public_origin", "clients reach the service at \(origin)")
        }
        let consequence = "scheme 2 works on the service's own routes at loopback alone, and tokens have no issuer URL"
        guard !ServerSettings.isLoopback(settings.host) || !settings.trustedProxies.isEmpty else {
            return diagnosis.ok(
                "public_origin", "server.public_origin is not set, and only this machine is served: \(consequence)")
        }
        diagnosis.warn(
            "public_origin", "server.public_origin is not set: \(consequence)",
            do: "set it to where clients reach the service, such as https://auth.example.com "
                + "(--public-origin, \(ConfigurationKey.publicOrigin.variable)), and restart the service")
    }

    private func checkTLS(_ diagnosis: inout Diagnosis) {
        guard let files = settings.tls else {
            guard !ServerSettings.isLoopback(settings.host), settings.trustedProxies.isEmpty else {
                return diagnosis.ok("tls", "not by the service itself")
            }
            return diagnosis.warn(
                "tls", "\(settings.host) is served in the clear",
                do: "give server.tls_certificate, or a proxy that has one")
        }
        checkCertificate(files, as: "tls", &diagnosis)
    }

    private func checkCertificate(_ files: TLSFiles, as check: String, _ diagnosis: inout Diagnosis) {
        guard let validity = try? files.validity() else {
            return diagnosis.fail(
                check, "\(files.certificate) and \(files.key) cannot be used",
                do: "name a certificate and a key that belong together, in PEM")
        }
        diagnosis.note("the certificate \(files.certificate)", ending: validity.upperBound)
        let now = SystemClock().now
        let renew = "renew it: the service reads new files by itself"
        if now < validity.lowerBound {
            diagnosis.fail(
                check, "the certificate is good only from \(validity.lowerBound.iso8601)", do: "check the clock")
        } else if now > validity.upperBound {
            diagnosis.fail(check, "the certificate has expired \(validity.upperBound.iso8601)", do: renew)
        } else if validity.upperBound - now < 14 * Self.day {
            diagnosis.warn(check, "the certificate expires \(validity.upperBound.iso8601)", do: renew)
        } else {
            diagnosis.ok(check, "the certificate is good until \(validity.upperBound.iso8601), and the key is its own")
        }
    }

    private func checkSystemRoots(_ diagnosis: inout Diagnosis) {
        guard Self.systemRoots.contains(where: { FileManager.default.isReadableFile(atPath: $0) }) else {
            return diagnosis.warn(
                "system_roots", "this machine has no certificates of authorities: Apple and Google cannot be asked",
                do: "install ca-certificates")
        }
        diagnosis.ok("system_roots", "Apple's and Google's services can be verified")
    }
}
