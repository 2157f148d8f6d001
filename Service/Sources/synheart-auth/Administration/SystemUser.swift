import Glibc

/// The user of a command, for the audit log.
enum SystemUser {
    /// `cli:` and the name of the process's user, or the user's number if it has no name.
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
