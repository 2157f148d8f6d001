internal import Foundation

/// What the file system says about a file. A symbolic link is not followed.
///
/// Read through Foundation: several C modules declare `stat`, and which one the compiler credits depends on the order in which
/// it loads them.
struct FileStatus: Sendable {
    let isRegular: Bool
    let isFolder: Bool
    /// In bytes.
    let size: Int64
    let hardLinks: Int64
    let owner: UInt32
    let group: UInt32

    /// Nil if there is no such file, or if the system does not say all of this.
    init?(_ path: String) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            let type = attributes[.type] as? FileAttributeType, let size = attributes[.size] as? NSNumber,
            let hardLinks = attributes[.referenceCount] as? NSNumber,
            let owner = attributes[.ownerAccountID] as? NSNumber,
            let group = attributes[.groupOwnerAccountID] as? NSNumber
        else { return nil }
        isRegular = type == .typeRegular
        isFolder = type == .typeDirectory
        self.size = size.int64Value
        self.hardLinks = hardLinks.int64Value
        self.owner = owner.uint32Value
        self.group = group.uint32Value
    }
}
