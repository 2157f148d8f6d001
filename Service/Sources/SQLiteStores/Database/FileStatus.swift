internal import SystemPackage

/// The properties of a file.
struct FileStatus: Sendable {
    /// Which file it is: the same one while it grows or moves, another one for a copy.
    struct Identity: Sendable, Hashable {
        fileprivate let device: DeviceID
        fileprivate let inode: Inode
    }

    private let status: Stat

    /// A file at a path; nil if there is none, or if the system does not say. A symbolic link is not followed.
    init?(_ path: String) {
        guard let status = try? Stat(FilePath(path), followTargetSymlink: false) else { return nil }
        self.status = status
    }

    /// An open file.
    init?(descriptor: Int32) {
        guard let status = try? Stat(FileDescriptor(rawValue: descriptor)) else { return nil }
        self.status = status
    }

    var isRegular: Bool { status.type == .regular }
    var isFolder: Bool { status.type == .directory }
    /// In bytes.
    var size: Int64 { status.size }
    var hardLinks: Int { status.linkCount }
    var owner: UInt32 { status.userID.rawValue }
    var group: UInt32 { status.groupID.rawValue }
    var identity: Identity { Identity(device: status.deviceID, inode: status.inode) }
}
