internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    func listApps(_ request: AdminRequest) async throws -> APIResponse {
        let (records, unreadable) = try await service.apps.readableRecords()
        var answer = JSONObject([
            (
                "apps",
                .array(
                    records.filter { request.mayAccess($0.appID) }
                        .map { .object($0.json(secrets: .masked(service.apps.mask))) })
            )
        ])
        let known = unreadable.filter(request.mayAccess)
        if !known.isEmpty { answer["unreadable"] = .array(known.map { .string($0.text) }) }
        return .json(answer)
    }

    func addApp(_ request: AdminRequest) async throws -> APIResponse {
        let record = try AppRecord(request.body)
        guard try await usable({ try await service.apps.add(record, actor: request.actor) }) else {
            let reason = "\(record.appID) exists already"
            throw Refusal(.conflict, reason, hint: reason)
        }
        return answer(record, status: 201)
    }

    func showApp(_ request: AdminRequest) async throws -> APIResponse {
        answer(try await existingApp(request))
    }

    func changeApp(_ request: AdminRequest) async throws -> APIResponse {
        let current = try await existingApp(request)
        try request.precondition.check(current)
        let record = try AppRecord(request.body.unmasked(from: current, by: service.apps.mask))
        guard record.appID == current.appID else { throw ContractError("app_id must equal the path's") }
        try request.requireLifted(current.keys.compromises, by: record)
        try request.requireKnownSources(of: record, replacing: current)
        try request.requireKnownAudiences(of: record, replacing: current)
        try await requireOwnNames(of: record, replacing: current, request)
        // The masked secrets in the new record were replaced by those of the record that was read above. So replace only that
        // record, and not one that was saved meanwhile.
        let changed = try await usable {
            try await service.apps.change(record, ifStill: current, actor: request.actor)
        }
        guard changed else {
            let reason = "The record was changed meanwhile"
            throw Refusal(request.precondition.isConditional ? .preconditionFailed : .conflict, reason, hint: reason)
        }
        return answer(record)
    }

    func removeApp(_ request: AdminRequest) async throws -> APIResponse {
        let record = try await existingApp(request)
        try request.precondition.check(record)
        let expected = request.precondition.isConditional ? record : nil
        guard try await service.removeApp(record.appID, ifStill: expected, actor: request.actor) else {
            try request.precondition.check(try await existingApp(request))
            let reason = "The app has devices, and those that ended count too: disable it instead"
            throw Refusal(.conflict, reason, hint: reason)
        }
        return .noContent
    }

    /// Several apps may share a package or an App ID, such as two channels of one app. But only a credential for all apps may
    /// add a name that another app has.
    private func requireOwnNames(
        of record: AppRecord, replacing current: AppRecord, _ request: AdminRequest
    ) async throws {
        func added(_ names: (AppRecord) -> [String]) -> Set<String> { Set(names(record)).subtracting(names(current)) }
        let members: [(name: String, names: (AppRecord) -> [String])] = [
            ("android.packages", { $0.android?.packages ?? [] }), ("ios.app_ids", { $0.ios?.appIDs ?? [] }),
        ]
        guard request.caller.scope != .allApps, members.contains(where: { !added($0.names).isEmpty }) else { return }
        for other in try await service.apps.records() where other.appID != record.appID {
            for member in members where !added(member.names).isDisjoint(with: member.names(other)) {
                throw Refusal(
                    .forbidden,
                    "\(request.actor) is for some apps alone and named what is in \(member.name) of \(other.appID)",
                    hint: "A name in \(member.name) that another app has needs a credential that is for all apps")
            }
        }
    }

    /// The record with its secrets masked, and its version.
    private func answer(_ record: AppRecord, status: Int = 200) -> APIResponse {
        var answer = APIResponse.json(record.json(secrets: .masked(service.apps.mask)), status: status)
        answer.headers.append(("ETag", EntityTag(record).description))
        return answer
    }

    func existingApp(_ request: AdminRequest) async throws -> AppRecord {
        let id = try request.appID()
        guard let record = try await service.apps.record(id) else {
            throw Refusal(.unknownApp, "no app \(id)", hint: "There is no app \(id)")
        }
        return record
    }

    /// Turns the error about an unusable record, such as one whose anchor is not a certificate, into the refusal of a malformed
    /// request.
    private func usable(_ change: () async throws -> Bool) async throws -> Bool {
        do {
            return try await change()
        } catch let error as StoreError {
            throw error
        } catch let error as Refusal {
            throw error
        } catch {
            throw Refusal(malformed: error)
        }
    }
}

extension AdminRequest {
    /// The service opens the files and URLs of a record with its own rights and from its own network. So only a credential for
    /// all apps may name new ones. Other credentials may name Google's, and keep the current ones.
    fileprivate func requireKnownSources(of record: AppRecord, replacing current: AppRecord) throws(Refusal) {
        guard caller.scope != .allApps else { return }
        for source in record.sources where !source.isGoogle && !current.sources.contains(source) {
            throw Refusal(
                .forbidden, "\(actor) is for some apps alone and named \(source.place)",
                hint: "A new place in \(source.member) needs a credential that is for all apps")
        }
    }

    /// A token audience decides which backends accept the app's device tokens. So only a credential for all apps may add one.
    fileprivate func requireKnownAudiences(of record: AppRecord, replacing current: AppRecord) throws(Refusal) {
        let added = Set(record.signature.tokenAudiences).subtracting(current.signature.tokenAudiences)
        guard caller.scope == .allApps || added.isEmpty else {
            throw Refusal(
                .forbidden, "\(actor) is for some apps alone and added an audience",
                hint: "A new audience in signature.token_audiences needs a credential that is for all apps")
        }
    }
}

extension AdminRequest {
    /// Refuses a record without `keys.compromise` while the stored record has demands there to replace compromised keys.
    /// The new record may come from an older file, so a missing member does not lift the demands. Only null lifts them.
    fileprivate func requireLifted(_ demands: [KeyPolicy.Compromise], by record: AppRecord) throws(Refusal) {
        guard !demands.isEmpty, record.keys.compromises.isEmpty,
            body.optionalValue("keys")?.object?["compromise"] != .null
        else { return }
        let hint = "keys.compromise is set: repeat it, or set it to null to lift it"
        throw Refusal(.conflict, hint, hint: hint)
    }
}

extension JSONFields {
    /// The members with masked secrets replaced by those of `current`, so that a caller can read, change and write a record.
    func unmasked(from current: AppRecord, by mask: SecretMask) throws -> JSONFields {
        var record = JSONObject(names.map { ($0, optionalValue($0) ?? .null) })
        guard var android = record["android"]?.object, var play = android["play_integrity"]?.object else {
            return try JSONFields(.object(record))
        }
        let known = current.android?.playIntegrity
        func unmasked(_ value: JSONValue?, among secrets: [Secret]) throws -> JSONValue? {
            guard let text = value?.string, let secret = try mask.unmask(text, among: secrets) else { return value }
            return .string(secret.exposed)
        }
        play["service_account"] = try unmasked(
            play["service_account"], among: [known?.serviceAccount].compactMap { $0 })
        if let pairs = play["keys"]?.array {
            play["keys"] = .array(
                try pairs.map { pair in
                    guard var members = pair.object else { return pair }
                    members["decryption_key"] = try unmasked(
                        members["decryption_key"], among: known?.keys.map(\.decryptionKey) ?? [])
                    return .object(members)
                })
        }
        android["play_integrity"] = .object(play)
        record["android"] = .object(android)
        return try JSONFields(.object(record))
    }
}
