internal import AuthContract
internal import AuthService
internal import Foundation
internal import StrictJSON

/// A caller of the admin API, and its rights.
struct AdminCaller: Sendable {
    /// The caller's name in the audit log.
    let actor: String
    let scope: CredentialScope
    /// The credential as it was when the call began; nil for a local user.
    let credential: Credential?

    /// The caller that presents this credential.
    init(_ credential: Credential) {
        actor = "admin:\(credential.id)"
        scope = credential.scope
        self.credential = credential
    }

    /// A user who can open the store directly. Such a user has every right.
    init(local actor: String) {
        self.actor = actor
        scope = .allApps
        credential = nil
    }
}

/// A request to the admin API by a caller whose role allows it. Each operation checks the access to its apps.
struct AdminRequest: Sendable {
    let caller: AdminCaller
    let parameters: [String: String]
    let query: AdminQuery
    /// The members of the body; none if there is no body.
    let body: JSONFields
    /// The condition on the version of the record to change.
    var precondition = Precondition.none
    /// Whether the path is the route's `formerTemplate`.
    var isOnFormerPath = false

    /// The actor in the audit log.
    var actor: String { caller.actor }

    /// The app in the path. The credential must be for it.
    func appID() throws -> AppID {
        let id = try AppID(parameters["app_id"] ?? "")
        try requireAccess(to: id)
        return id
    }

    /// The device in the path.
    func deviceID() throws -> DeviceID { try DeviceID(parameters["device_id"] ?? "") }

    /// Whether the credential is for this app.
    func mayAccess(_ app: AppID) -> Bool { caller.scope.covers(app) }

    /// Refuses an app that the credential is not for.
    func requireAccess(to app: AppID) throws(Refusal) {
        guard mayAccess(app) else { throw Refusal(.forbidden, "\(actor) is not for \(app)") }
    }

    /// Refuses a credential that is not for all apps.
    func requireAccessToAll() throws(Refusal) {
        guard caller.scope == .allApps else { throw Refusal(.forbidden, "\(actor) is for some apps alone") }
    }

    /// The app whose items are listed; nil: all apps. A caller with a credential for some apps must name one of these apps.
    func narrowedApp() throws -> AppID? {
        let app = try namedApp()
        if app == nil { try requireAccessToAll() }
        return app
    }

    /// The app that the query names; nil: none. The credential must be for it.
    func namedApp() throws -> AppID? {
        let app = try query.value("app_id") { try AppID($0) }
        if let app { try requireAccess(to: app) }
        return app
    }
}

extension AdminRequest {
    /// A call that is made within this process, by an authorized caller.
    init(_ call: AdminCall, by caller: AdminCaller) throws {
        self.init(
            caller: caller, parameters: call.parameters,
            query: try AdminQuery(call.query, allowing: call.route.queryNames),
            body: try JSONFields(.object(call.body ?? JSONObject())),
            precondition: try Precondition(call.ifMatch.map { [$0] } ?? []))
    }
}

extension JSONFields {
    /// One of a fixed set of words; nil if absent. The error lists the words.
    func word<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ type: Choice.Type = Choice.self
    ) throws(ContractError) -> Choice? {
        do { return try optionalChoice(name) } catch { throw .word(pathOf(name), type) }
    }
}

extension ContractError {
    fileprivate static func word<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ type: Choice.Type
    ) -> ContractError {
        ContractError("\(name) must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
}

/// The parameters of a query. Only the names that the route allows are accepted, each at most once.
struct AdminQuery: Sendable {
    private var values: [String: String] = [:]

    /// A query with these values. Refuses names that are not in `names`, repeated names, and values with U+0000.
    init(_ items: [(name: String, value: String)], allowing names: [String]) throws(ContractError) {
        for item in items {
            guard names.contains(item.name), values.updateValue(item.value, forKey: item.name) == nil else {
                throw ContractError("the query's names are \(names.joined(separator: ", ")), each once")
            }
            try Self.requireText(item.value, item.name)
        }
    }

    /// Parses a query. Refuses names that are not in `names`, because a mistyped filter would be ignored and widen a list.
    init(_ text: String?, allowing names: [String]) throws(ContractError) {
        for pair in (text ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts.first.map(String.init) ?? ""
            guard names.contains(name) else {
                throw ContractError("the query's names are \(names.isEmpty ? "none" : names.joined(separator: ", "))")
            }
            guard parts.count == 2, let value = parts[1].removingPercentEncoding else {
                throw ContractError("\(name) in the query must have a percent-encoded value")
            }
            guard values.updateValue(value, forKey: name) == nil else {
                throw ContractError("\(name) must be in the query once")
            }
            try Self.requireText(value, name)
        }
    }

    /// Refuses U+0000, which PostgreSQL's texts cannot have.
    private static func requireText(_ value: String, _ name: String) throws(ContractError) {
        guard !value.utf8.contains(0) else { throw ContractError("\(name) in the query must not contain U+0000") }
    }

    /// A value, parsed by `parse`; nil if absent.
    func value<Value>(_ name: String, _ parse: (String) throws -> Value) throws -> Value? {
        try values[name].map(parse)
    }

    /// One of a fixed set of words; nil if absent.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(_ name: String, _ type: Choice.Type) throws -> Choice?
    {
        try value(name) { text in
            guard let choice = Choice(rawValue: text) else { throw ContractError.word("\(name) in the query", type) }
            return choice
        }
    }

    /// A number within a range; nil if absent.
    func integer(_ name: String, in range: ClosedRange<Int64>) throws -> Int64? {
        try value(name) { text in
            guard let number = Int64(text), range.contains(number) else {
                throw ContractError(
                    "\(name) in the query must be a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }
}
