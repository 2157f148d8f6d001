internal import SystemPackage

/// The properties of a file.
struct FileStatus: Sendable {
    private let status: Stat

    /// A file at a path; nil if there is none, or if the system does not report it. A symbolic link is not followed.
    init?(_ path: String) {
        guard let status = try? Stat(FilePath(path), followTargetSymlink: false) else { return nil }
        self.status = status
    }

    var isRegular: Bool { status.type == .regular }
    var isFolder: Bool { status.type == .directory }
    /// In bytes.
    var size: Int64 { status.size }
    var hardLinks: Int { status.linkCount }
    var owner: UInt32 { status.userID.rawValue }
    var group: UInt32 { status.groupID.rawValue }
}

/// Identifies a file. The identity stays the same while the file grows or moves. A copy has another identity.
struct FileIdentity: Sendable, Hashable {
    /// Whether a file that was opened at a path is still there.
    enum Place: Sendable, Hashable {
        case here
        /// The file was moved or removed, or another file is at its path.
        case elsewhere
        /// The system does not report whether the file is there.
        case unknown
    }

    private let device: DeviceID
    private let inode: Inode

    /// The identity of an open file; nil if the system does not report it.
    init?(descriptor: Int32) { try? self.init(Stat(FileDescriptor(rawValue: descriptor))) }

    /// The identity of the file at a path; nil if there is none, or if the system does not report it. Symbolic links are
    /// followed.
    init?(_ path: String) { try? self.init(Stat(FilePath(path))) }

    private init(_ status: Stat) { (device, inode) = (status.deviceID, status.inode) }

    /// Whether this file is at a path. Symbolic links are followed.
    func place(_ path: String) -> Place {
        do throws(Errno) {
            return FileIdentity(try Stat(FilePath(path))) == self ? .here : .elsewhere
        } catch { return [.noSuchFileOrDirectory, .notDirectory].contains(error) ? .elsewhere : .unknown }
    }
}
