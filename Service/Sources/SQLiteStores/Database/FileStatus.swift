internal import Foundation

/// The properties of a file. A symbolic link is not followed.
///
/// Foundation reads them: several C modules declare `stat`, and which one the compiler uses depends on the order in which it
/// loads them.
struct FileStatus: Sendable {
    let isRegular: Bool
    let isFolder: Bool
    /// In bytes.
    let size: Int64
    let hardLinks: Int64
    let owner: UInt32
    let group: UInt32

    /// Nil if the file does not exist, or if the system does not report all properties.
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
