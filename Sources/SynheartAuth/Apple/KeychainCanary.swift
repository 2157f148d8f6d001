#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Proves whether the Keychain tells the truth. At a prewarmed launch it answers "not found" for items that exist.
    ///
    /// Each record has a canary, which says whether the record was made. It is another item than the record, so that the Keychain has
    /// to be wrong about both before the SDK takes a record for absent.
    struct KeychainCanary: Sendable {
        let accessGroup: String?

        /// Not the service of the records, so that a reset that removes all records keeps the canaries.
        static let service = "ai.synheart.auth.canary"

        /// The content of a record's canary.
        private enum Mark: UInt8 {
            case absent = 0
            case present = 1
        }

        /// Interprets a "not found" of a record. It is `absent` only if the canary says so too, or if there was no canary and one
        /// could be made: then this is a first launch.
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
                // "Duplicate item" too: the Keychain has the canary and did not find it.
                let made = canary.add([Mark.absent.rawValue], of: owner)
                if case .found = made { return .absent }
                return made
            }
        }

        /// Says that the record exists, before it is made.
        func markPresent(_ name: RecordName) throws(StorageError) { try item(name.text).write([Mark.present.rawValue]) }

        /// Says that the record does not exist, after it was removed. Where that cannot be written, as on a full disk, no canary says
        /// the same.
        func markGone(_ name: RecordName) {
            let canary = item(name.text)
            do throws(StorageError) { try canary.write([Mark.absent.rawValue]) } catch { try? canary.remove() }
        }

        /// Throws unless a canary is read back with its data, and a new one can be written and read.
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

        /// Writes a damaged canary again. This time the Keychain is still reported as damaged.
        private func mend(_ canary: KeychainItem) -> StorageError {
            try? canary.write([Mark.present.rawValue])
            return StorageError("the Keychain's canary is damaged")
        }

        private func item(_ account: String) -> KeychainItem {
            KeychainItem(service: Self.service, account: account, accessGroup: accessGroup)
        }
    }

    /// Looks twice before it believes a "not found", with a pause between: for the runtime's functions, which keep no suspicion.
    struct ConfirmedLook: Sendable {
        private let canary = KeychainCanary(accessGroup: nil)
        let pause: @Sendable () -> Void

        init(pause: @escaping @Sendable () -> Void = Self.pause) { self.pause = pause }

        /// Blocks for 200 ms. The host calls on a thread of its own.
        static let pause: @Sendable () -> Void = { Thread.sleep(forTimeInterval: 0.2) }

        /// The status of a look-up. `errSecItemNotFound` only if it is certain; `errSecNotAvailable` if the answer cannot be believed.
        func run(_ look: () -> OSStatus) -> OSStatus {
            let status = look()
            guard status == errSecItemNotFound else { return status }
            do throws(StorageError) { try canary.check() } catch { return errSecNotAvailable }
            pause()
            return look()
        }
    }
#endif
