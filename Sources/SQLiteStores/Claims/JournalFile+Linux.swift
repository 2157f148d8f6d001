#if os(Linux) || os(Android)
    internal import Foundation

    extension JournalFile {
        static func synchronizeData(_ descriptor: Int32) -> Int32 { fdatasync(descriptor) }
    }
#endif
