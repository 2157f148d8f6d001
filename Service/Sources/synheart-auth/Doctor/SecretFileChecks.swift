import AuthServer
import Glibc

/// Checks the permissions of the files with secrets, except the service key next to the database.
struct SecretFileChecks {
    let configuration: ServiceConfiguration

    func run(_ report: inout DoctorReport) {
        var holders: [String: [String]] = [:]
        for setting in configuration.all where setting.key.kind.isSecret {
            if let file = setting.secretFile {
                let isPrivate = Self.checkMode(of: file, named: setting.key.rawValue, &report)
                if isPrivate { report.ok(setting.key.rawValue, "only its owner can read \(file)") }
            } else if case .file(let path) = setting.origin {
                holders[path, default: []].append(setting.key.rawValue)
            }
        }
        for (path, keys) in holders {
            Self.checkMode(of: path, named: "configuration", holding: keys, &report)
        }
        // A group may read TLS keys, because distributions give them such permissions.
        for (key, check) in [(ConfigurationKey.tlsKey, "tls"), (.operationsTLSKey, "operations_tls")] {
            guard let file = configuration.text(key) else { continue }
            Self.checkMode(of: file, named: check, forbidden: 0o007, &report)
        }
    }

    /// Warns if users other than a file's owner can use it.
    ///
    /// - Parameters:
    ///   - keys: the secrets in the file.
    ///   - forbidden: the permissions that other users must not have.
    /// - Returns: false if it warned. A path without a regular file gets no warning.
    @discardableResult
    static func checkMode(
        of file: String, named check: String, holding keys: [String] = [], forbidden: mode_t = 0o077,
        _ report: inout DoctorReport
    ) -> Bool {
        var about = stat()
        guard stat(file, &about) == 0, about.st_mode & S_IFMT == S_IFREG, about.st_mode & forbidden != 0 else {
            return true
        }
        let mode = String(about.st_mode & 0o777, radix: 8)
        let content = keys.isEmpty ? "" : " and holds \(keys.joined(separator: ", "))"
        report.warn(
            check, "\(file) has mode \(mode)\(content): others than its owner can read or change it",
            do: "chmod 600 \(file)")
        return false
    }
}
