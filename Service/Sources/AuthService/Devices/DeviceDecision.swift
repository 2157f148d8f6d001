package import AuthContract

/// An operator's decision about one device or about many.
package enum DeviceDecision: Sendable, Hashable {
    case approve(allowsUnproven: Bool)
    case reject
    case revoke(reason: String?)
    case demandRotation(RotationDemand)
    case liftRotation
    case lowerScheme(to: SignatureScheme)

    fileprivate var command: DeviceCommand {
        switch self {
        case .approve(let allowsUnproven): .approve(allowsUnproven: allowsUnproven)
        case .reject: .reject
        case .revoke(let reason): .revoke(reason: reason)
        case .demandRotation(let demand): .demandRotation(demand)
        case .liftRotation: .liftRotationDemand
        case .lowerScheme(let scheme): .lowerScheme(to: scheme)
        }
    }

    /// Whether a device with this status already has the result of this decision. Always false for decisions other than
    /// an approval or a rejection: they do not conflict if the device is already as decided.
    fileprivate func isMet(by status: DeviceStatus) -> Bool {
        switch self {
        case .approve: status == .registered
        case .reject: status == .rejected
        case .revoke, .demandRotation, .liftRotation, .lowerScheme: false
        }
    }
}

extension DeviceAdministration {
    /// The result of a decision.
    package struct Decided: Sendable, Hashable {
        /// The device after the decision. In a dry run, its `version` is the one before the decision.
        package let device: DeviceRecord
        /// Whether the decision changed the device, or in a dry run would change it. False if the device was already as decided.
        package let isChanged: Bool
    }

    /// Applies a decision to one device. Returns and throws the same as the function for that decision, such as
    /// `approve`. Also throws `PRECONDITION_FAILED` if the device has another version.
    ///
    /// - Parameters:
    ///   - decision: the decision.
    ///   - id: the device.
    ///   - app: its app.
    ///   - version: the only version of the device that is changed; nil: any.
    ///   - actor: the actor in the audit log.
    package func decide(
        _ decision: DeviceDecision, on id: DeviceID, of app: AppID, ifVersion version: Int64? = nil, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        try await decide(decision.command, id, of: app, ifVersion: version, actor: actor)
    }

    /// Decides about one device of many. Unlike a decision about one device, an approval of a registered device and a
    /// rejection of a rejected device succeed, so that the decision can be repeated.
    ///
    /// - Parameters:
    ///   - decision: the decision.
    ///   - id: the device.
    ///   - app: the record of its app.
    ///   - version: the version of the device that the operator saw; nil: any. Ignored if the decision changes nothing.
    ///   - isDryRun: whether to save nothing.
    ///   - actor: the actor in the audit log.
    /// - Throws: `NOT_FOUND`, `CONFLICT`, and `PRECONDITION_FAILED` if the device has another version.
    package func decide(
        _ decision: DeviceDecision, on id: DeviceID, of app: AppRecord, ifVersion version: Int64? = nil,
        isDryRun: Bool = false, actor: String
    ) async throws(Refusal) -> Decided {
        do throws(Refusal) {
            return try await apply(decision.command, id, of: app, ifVersion: version, isDryRun: isDryRun, actor: actor)
        } catch {
            guard error.code == .conflict, let device = try await changes.directory.read(id, of: app.appID),
                decision.isMet(by: device.status(under: app.mode))
            else { throw error }
            return Decided(device: device, isChanged: false)
        }
    }
}
