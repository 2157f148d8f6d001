import AuthContract
import AuthServer
import AuthService
import Foundation

/// Checks of the listeners' addresses, the public origin, the certificates and the system's roots.
struct ListenerChecks {
    let settings: ServerSettings
    /// Whether a service runs on the same database; nil: unknown. If true, the addresses are not checked, because that
    /// service already uses them.
    let isServed: Bool?

    private static let day: Int64 = 86_400
    /// The usual places of the system's root certificates, which verify Apple's and Google's servers.
    private static let systemRoots = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    ]

    func run(_ report: inout DoctorReport) async {
        await checkAddresses(&report)
        checkOrigin(&report)
        checkTLS(&report)
        if let files = settings.operations.tls { checkCertificate(files, as: "operations_tls", &report) }
        checkSystemRoots(&report)
    }

    private func checkAddresses(_ report: inout DoctorReport) async {
        guard isServed != true else {
            return report.ok("listeners", "not tried: a service runs on this database; --url asks it")
        }
        let errors = await settings.unavailableListeners()
        for (error, isInUse) in errors {
            if isServed == nil, isInUse {
                report.warn(
                    "listeners", error.description,
                    do: "a running node of this service is no fault, and --url asks it; stop any other program that "
                        + "listens there, or choose another address")
            } else {
                report.fail("listeners", error.description, do: "stop who listens there, or choose another address")
            }
        }
        if errors.isEmpty {
            let operations = settings.operations
            var addresses = ["\(settings.host):\(settings.port)", "\(operations.host):\(operations.port)"]
            if let metrics = settings.metrics { addresses.append("\(metrics.host):\(metrics.port)") }
            report.ok("listeners", "\(addresses.joined(separator: " and ")) are free")
        }
    }

    private func checkOrigin(_ report: inout DoctorReport) {
        if let origin = settings.publicOrigin {
            return report.ok("public_origin", "clients reach the service at \(origin)")
        }
        let consequence = "scheme 2 works on the service's own routes at loopback alone, and tokens have no issuer URL"
        guard !ServerSettings.isLoopback(settings.host) || !settings.trustedProxies.isEmpty else {
            return report.ok(
                "public_origin", "server.public_origin is not set, and only this machine is served: \(consequence)")
        }
        report.warn(
            "public_origin", "server.public_origin is not set: \(consequence)",
            do: "set it to where clients reach the service, such as https://auth.example.com "
                + "(--public-origin, \(ConfigurationKey.publicOrigin.variable)), and restart the service")
    }

    private func checkTLS(_ report: inout DoctorReport) {
        guard let files = settings.tls else {
            guard !ServerSettings.isLoopback(settings.host), settings.trustedProxies.isEmpty else {
                return report.ok("tls", "not by the service itself")
            }
            return report.warn(
                "tls", "\(settings.host) is served in the clear",
                do: "give server.tls_certificate, or a proxy that has one")
        }
        checkCertificate(files, as: "tls", &report)
    }

    private func checkCertificate(_ files: TLSFiles, as check: String, _ report: inout DoctorReport) {
        guard let validity = try? files.validity() else {
            return report.fail(
                check, "\(files.certificate) and \(files.key) cannot be used",
                do: "name a certificate and a key that belong together, in PEM")
        }
        report.note("the certificate \(files.certificate)", ending: validity.upperBound)
        let now = SystemClock().now
        let renew = "renew it: the service reads new files by itself"
        if now < validity.lowerBound {
            report.fail(
                check, "the certificate is good only from \(validity.lowerBound.iso8601)", do: "check the clock")
        } else if now > validity.upperBound {
            report.fail(check, "the certificate has expired \(validity.upperBound.iso8601)", do: renew)
        } else if validity.upperBound - now < 14 * Self.day {
            report.warn(check, "the certificate expires \(validity.upperBound.iso8601)", do: renew)
        } else {
            report.ok(check, "the certificate is good until \(validity.upperBound.iso8601), and the key is its own")
        }
    }

    private func checkSystemRoots(_ report: inout DoctorReport) {
        guard Self.systemRoots.contains(where: { FileManager.default.isReadableFile(atPath: $0) }) else {
            return report.warn(
                "system_roots", "this machine has no certificates of authorities: Apple and Google cannot be asked",
                do: "install ca-certificates")
        }
        report.ok("system_roots", "Apple's and Google's services can be verified")
    }
}
