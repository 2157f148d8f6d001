internal import AuthServer
internal import StrictJSON

/// The decisions about one device.
enum DeviceChange: String, CaseIterable, Sendable {
    case approve, reject
    case revoke
    case forceRotation = "force-rotation"
    case liftRotation = "lift-rotation"
    case lowerScheme = "lower-scheme"

    var route: AdminRoute {
        switch self {
        case .approve: .approveDevice
        case .reject: .rejectDevice
        case .revoke: .revokeDevice
        case .forceRotation: .forceRotation
        case .liftRotation: .liftRotation
        case .lowerScheme: .lowerScheme
        }
    }

    /// The label of the button that leads to the page of the change.
    var label: String {
        switch self {
        case .approve: "Approve"
        case .reject: "Reject"
        case .revoke: "Revoke"
        case .forceRotation: "Demand a new key"
        case .liftRotation: "Take back the demand"
        case .lowerScheme: "Allow scheme 1 again"
        }
    }

    /// Whether the change can apply to a device, as the admin API shows it.
    func applies(to device: JSONValue) -> Bool {
        let status = device["status"]?.string
        return switch self {
        case .approve, .reject: status == "pending"
        case .revoke: status != "revoked" && status != "deregistered"
        case .forceRotation: status == "registered"
        case .liftRotation: status == "registered" && device["must_rotate_by"]?.string != nil
        case .lowerScheme: status == "registered" && (device["highest_scheme"]?.integer ?? 0) > 1
        }
    }

    /// The buttons for a device, of the changes that apply and that the person may make.
    static func buttons(for device: JSONValue, _ visit: Visit, only changes: [DeviceChange] = allCases) -> PageValue {
        guard let app = device["app_id"]?.string, let id = device["device_id"]?.string else { return [] }
        return .list(
            changes.filter { visit.may($0.route, of: app) && $0.applies(to: device) }.map { change in
                [
                    "label": .text(change.label), "path": .text(PagePath.of("devices", app, id, change.rawValue)),
                    "danger": .flag(change == .revoke || change == .reject), "id": .text(id),
                ]
            })
    }
}

/// The page that asks the person to confirm a decision about a device.
struct DeviceChangePage: ChangePage {
    let change: DeviceChange

    var path: String { "/devices/{app_id}/{device_id}/\(change.rawValue)" }
    var needs: AdminRoute? { change.route }

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let (app, id) = (visit.parameters["app_id"] ?? "", visit.parameters["device_id"] ?? "")
        let inPath = ["app_id": app, "device_id": id]
        let next = PagePath.of("devices", app, id)
        let read = try await visit.answer(AdminCall(.showDevice, inPath))
        let tag = try visit.seenVersion(of: read)
        let device = "Device \(id) of \(app): \(read.body["status"]?.string ?? "unknown")."
        func call(_ body: [(String, JSONValue)] = []) -> AdminCall {
            AdminCall(change.route, inPath, body: body.isEmpty ? nil : JSONObject(body))
        }
        func made(
            _ title: String, _ consequences: [String], _ verb: String, _ fields: [ChangeField] = [],
            _ body: [(String, JSONValue)] = [], done: String, isDangerous: Bool = false
        ) -> Change {
            Change(
                title: title, consequences: [device] + consequences, verb: verb, isDangerous: isDangerous,
                fields: fields, call: call(body), tag: tag, done: done, next: next)
        }
        switch change {
        case .approve:
            let unproven = fields["unproven"] == "yes"
            return made(
                "Approve this device?", ["It may sign requests from now on.", "You can revoke it later."],
                "Approve the device",
                [
                    ChangeField(
                        name: "unproven", label: "Also if its proof never verified",
                        hint: "Its assurance is then none, with the label unproven.", kind: .check,
                        value: unproven ? "yes" : "")
                ], unproven ? [("unproven", true)] : [], done: "The device is approved.")
        case .reject:
            return made(
                "Reject this device?", ["It cannot sign requests.", "The app can register it again with a new key."],
                "Reject the device", done: "The device is rejected.", isDangerous: true)
        case .revoke:
            let reason = fields["reason"] ?? ""
            return made(
                "Revoke this device?",
                ["Every request of it is refused from now on, at every node.", "This cannot be taken back."],
                "Revoke the device",
                [
                    ChangeField(
                        name: "reason", label: "Why", hint: "Kept in the audit log, which cannot be changed later.",
                        kind: .text(maximum: 1024), value: reason)
                ], reason.isEmpty ? [] : [("reason", .string(reason))], done: "The device is revoked.",
                isDangerous: true)
        case .forceRotation:
            let within = fields["within"].flatMap { Int64($0) } ?? 86_400
            let reason = fields["reason"] == "compromise" ? "compromise" : "scheduled"
            return made(
                "Demand a new key from this device?",
                [
                    "Each answer to the device asks for a rotation. After the time it can do nothing else.",
                    "If the key is compromised, the device cannot even rotate after the time, and must register again.",
                    "You can take the demand back.",
                ], "Demand a new key",
                [
                    ChangeField(
                        name: "within", label: "Within",
                        kind: .choice([
                            Choice("0", "At once"), Choice("3600", "1 hour"), Choice("86400", "1 day"),
                            Choice("604800", "7 days"), Choice("2592000", "30 days"),
                        ]), value: String(within)),
                    ChangeField(
                        name: "reason", label: "Why",
                        kind: .choice([
                            Choice("scheduled", "Scheduled"), Choice("compromise", "The key may be compromised"),
                        ]), value: reason),
                ], [("within_seconds", .integer(within)), ("reason", .string(reason))],
                done: "The device must make a new key.")
        case .liftRotation:
            return made(
                "Take back the demand for a new key?",
                ["The device keeps its key.", "A demand of the app's record stays: change the record to end it."],
                "Take back the demand", done: "The demand is taken back.")
        case .lowerScheme:
            return made(
                "Let this device sign under scheme 1 again?",
                [
                    "A device that has signed under scheme 2 is held to it, so that no attacker can make it use the older one.",
                    "Do this only if the app's older version has to work again.",
                ], "Allow scheme 1", [], [("scheme", 1)], done: "The device may sign under scheme 1.",
                isDangerous: true)
        }
    }
}
