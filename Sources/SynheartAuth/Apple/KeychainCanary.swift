#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Checks whether the Keychain's answers are correct. At a prewarmed launch the Keychain can answer "not found" for existing
    /// items.
    ///
    /// Each record has a canary, which states whether the record was made. The canary is a separate item, so the Keychain must be
    /// wrong about both before the SDK wrongly believes that a record is absent. The key store has one canary, named `keys`.
    struct KeychainCanary: Sendable {
        let accessGroup: String?

        /// Differs from the service of the records, because a record and its canary have the same account.
        static let service = "ai.synheart.auth.canary"

        /// The content of a record's canary.
        private enum Mark: UInt8 {
            case absent = 0
            case present = 1
        }

        /// Interprets a "not found" of a record. Returns `absent` only if the record's canary (a separate item that states
        /// whether the record was made) confirms this, or if there was no canary and one could be made, as at a first launch.
        func reading(ofAbsent name: RecordName, of owner: GroupOwner? = nil) -> StorageReading {
            let canary = item(name.text)
            switch canary.read(of: owner) {
            case .found([Mark.absent.rawValue]): return .absent
            case .found([Mark.present.rawValue]):
                return .unavailable(
                    StorageError(
                        "the Keychain has no record where there was one", status: Int(errSecItemNotFound),
                        saysAbsent: true))
            case .found: return .unavailable(mend(canary))
            case .unavailable(let error): return .unavailable(error)
            case .absent:
                // A failure can be "duplicate item": the Keychain has the canary, but did not find it.
                let made = canary.add([Mark.absent.rawValue], of: owner)
                if case .found = made { return .absent }
                return made
            }
        }

        /// Notes in the record's canary, a separate item, that the record exists. Called before the record is made, and after
        /// the record was moved to an access group.
        func markPresent(_ name: RecordName) throws(StorageError) { try item(name.text).write([Mark.present.rawValue]) }

        /// Notes in the record's canary, a separate item, that the record is gone. Called after the record was removed. If the canary
        /// cannot be written, as on a full disk, removes the canary: a later reading of the record makes a new canary and returns `absent`.
        func markGone(_ name: RecordName) {
            let canary = item(name.text)
            do throws(StorageError) { try canary.write([Mark.absent.rawValue]) } catch { try? canary.remove() }
        }

        /// Throws if the canary `name` (an item with one of two known values) is damaged or cannot be read, or if a new test
        /// item cannot be written and read. Creates the canary if there is none.
        func check(_ name: String = "keys") throws(StorageError) {
            let canary = item(name)
            switch canary.read() {
            case .found([Mark.absent.rawValue]), .found([Mark.present.rawValue]): break
            case .found: throw mend(canary)
            case .unavailable(let error): throw error
            case .absent:
                let status = canary.add([Mark.present.rawValue])
                guard status == errSecSuccess else { throw canary.error(status) }
            }
            let data = Array(UUID().uuidString.utf8)
            let probe = item("probe \(UUID().uuidString)")
            let status = probe.add(data)
            guard status == errSecSuccess else { throw probe.error(status) }
            let reading = probe.read()
            try probe.remove()
            guard reading == .found(data) else {
                throw StorageError("the Keychain does not find what was just written")
            }
        }

        /// Tries to replace a damaged canary. Returns the error of the current check or reading, which fails even if the
        /// canary was replaced.
        private func mend(_ canary: KeychainItem) -> StorageError {
            try? canary.write([Mark.present.rawValue])
            return StorageError("the Keychain's canary is damaged")
        }

        private func item(_ account: String) -> KeychainItem {
            KeychainItem(service: Self.service, account: account, accessGroup: accessGroup)
        }
    }

    /// Confirms a "not found" by a second look-up after a pause. The functions of Synheart Core's runtime need this,
    /// because they do not remember an earlier "not found".
    struct ConfirmedLook: Sendable {
        private let canary = KeychainCanary(accessGroup: nil)
        let pause: @Sendable () -> Void

        init(pause: @escaping @Sendable () -> Void = Self.pause) { self.pause = pause }

        /// Blocks the caller's thread for 200 ms.
        static let pause: @Sendable () -> Void = { Thread.sleep(forTimeInterval: 0.2) }

        /// The status of a look-up. Returns `errSecItemNotFound` only if the canary, a test item, shows that the Keychain
        /// works and a second look-up finds nothing either. Returns `errSecNotAvailable` if the check of the canary fails.
        func run(_ look: () -> OSStatus) -> OSStatus {
            let status = look()
            guard status == errSecItemNotFound else { return status }
            do throws(StorageError) { try canary.check() } catch { return errSecNotAvailable }
            pause()
            return look()
        }
    }
#endif
