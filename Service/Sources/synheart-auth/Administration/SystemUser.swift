import Glibc

/// Who works on a database, for the audit log.
enum SystemUser {
    /// `cli:` and the name of the user that this process runs as; the number of a user without a name.
    static var actor: String { "cli:\(name ?? String(geteuid()))" }

    private static var name: String? {
        var (user, found) = (passwd(), nil as UnsafeMutablePointer<passwd>?)
        var buffer = [CChar](repeating: 0, count: 1 << 14)
        guard getpwuid_r(geteuid(), &user, &buffer, buffer.count, &found) == 0, found != nil, user.pw_name != nil else {
            return nil
        }
        return String(cString: user.pw_name)
    }
}
