internal import AuthContract
internal import Crypto

/// The first line of a backup, in the clear: the format, the service key's check value, and a random salt.
///
///     synheart-auth-backup/1 <check value> <salt, 32 bytes in base64url>
///
/// The key of the frames is derived from the service key and the whole line. So each backup has its own key, and no frame opens
/// if the line was changed.
struct BackupHeader: Sendable, Hashable {
    /// The check value of the service key that sealed the backup.
    let check: ServiceKeyCheck
    let salt: [UInt8]

    private static let label = "synheart-auth-backup/"
    /// Increase this number if older versions cannot read the frames, the lines or the meaning of a column: they then refuse
    /// the backup.
    private static let format = "1"
    /// The maximum length of the line in bytes, without its line feed.
    static let maximumLength = 256

    /// The header of a new backup.
    init(check: ServiceKeyCheck, salt: [UInt8]) {
        self.check = check
        self.salt = salt
    }

    /// Parses the line, without its line feed.
    init(_ line: [UInt8]) throws(BackupError) {
        let words = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
            .map { String($0) }
        guard let first = words.first, first.hasPrefix(Self.label) else {
            throw BackupError(.notABackup, "is not a backup of this service")
        }
        let format = first.dropFirst(Self.label.count)
        guard format == Self.format else {
            throw BackupError(
                .newerVersion,
                "has the format \(format.prefix(16)), and this version reads \(Self.format): use the version that wrote it"
            )
        }
        guard words.count == 3, let check = ServiceKeyCheck(words[1]), let salt = Base64.url.decode(words[2]),
            salt.count == 32
        else { throw BackupError(.damaged, "has a damaged first line") }
        self.init(check: check, salt: salt)
        // A header has exactly one form.
        guard Array(text.utf8) == line else { throw BackupError(.damaged, "has a damaged first line") }
    }

    /// The line, without its line feed.
    var text: String { "\(Self.label)\(Self.format) \(check.text) \(Base64.url.encode(salt))" }

    /// The key of the frames.
    func key(from serviceKey: ServiceKey) throws(BackupError) -> SymmetricKey {
        let (checks, keys) = (serviceKey.checks, serviceKey.allDerived(for: "synheart-auth/backup/v1\n\(text)"))
        guard let place = checks.firstIndex(of: check), keys.indices.contains(place) else {
            throw BackupError(
                .anotherKey,
                "was sealed with the service key \(check), and this is \(checks.map(\.description).joined(separator: ", "))"
                    + ". Put the right key in its place; service_key may list several")
        }
        return keys[place]
    }
}
