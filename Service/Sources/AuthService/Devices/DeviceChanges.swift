internal import AuthContract

/// Changes devices: reads one, decides, and saves the decision if the row has not changed since it was read.
struct DeviceChanges: Sendable {
    let store: any DeviceStore
    let directory: DeviceDirectory
    let clock: any ServiceClock

    /// The result of a command.
    enum Outcome: Sendable {
        /// The current device. Either the command changed it, or it was already as wanted.
        case done(DeviceRecord, changed: Bool)
        /// The new key is or was a device's key, or the new App Attest key belongs to another device of the app.
        case keyTaken
    }

    /// Applies a command.
    ///
    /// - Parameters:
    ///   - command: the command.
    ///   - id: the device.
    ///   - app: the record of its app.
    ///   - actor: the actor in the audit log.
    ///   - read: the row as it was just read from the store; nil: it is read now.
    ///   - version: the only version that the command may change; nil: any.
    ///   - isDryRun: whether to save nothing.
    /// - Returns: nil if the app has no such device.
    func apply(
        _ command: DeviceCommand, to id: DeviceID, of app: AppRecord, by actor: String, from read: DeviceRecord? = nil,
        ifVersion version: Int64? = nil, isDryRun: Bool = false
    ) async throws(Refusal) -> Outcome? {
        var known = read
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let current = if let known { known } else { try await directory.read(id, of: app.appID) }
            guard let current else { return nil }
            let decided: DeviceChange?
            do { decided = try current.applying(command, under: app, at: clock.now, by: actor) } catch {
                throw Refusal(error)
            }
            guard let change = decided else { return .done(current, changed: false) }
            guard version == nil || version == current.version else {
                let reason = "the device was changed since it was read"
                throw Refusal(.preconditionFailed, reason, hint: reason)
            }
            guard !isDryRun else { return .done(change.after, changed: true) }
            defer { directory.forget(id) }
            let outcome = try await storeCall { () async throws(StoreError) in try await store.save(change) }
            switch outcome {
            case .saved: return .done(change.saved, changed: true)
            case .keyTaken: return .keyTaken
            case .conflict: known = nil
            }
        }
        throw ConcurrentChanges(of: "the device").refusal
    }
}

extension Refusal {
    /// The refusal for a command that does not apply. Only operators' commands are refused with `CONFLICT`, so the hint
    /// of that refusal has the reason. A device's request only gets the code.
    convenience init(_ conflict: DeviceConflict) {
        self.init(
            conflict.code, conflict.description, hint: conflict.code == .conflict ? conflict.description : nil)
    }
}
