internal import AuthContract
internal import AuthService
internal import StrictJSON
internal import Verification

extension AdminAPI {
    /// Judges one page of the app's devices under a proposed record and under the current one. With the first page, also
    /// judges the counts of the verdict history. With `limit` 0, judges nothing: the call only checks that the record is
    /// valid, and returns its policies. Nothing is changed, and no file or URL of the record is opened.
    func whatIf(_ request: AdminRequest) async throws -> APIResponse {
        try request.body.allowOnly("record", "limit", "cursor")
        let current = try await existingApp(request)
        let record = try AppRecord(request.body.object("record").unmasked(from: current, by: service.apps.mask))
        guard record.appID == current.appID else { throw ContractError("app_id must equal the path's") }
        try await service.apps.requireChangeable(
            record, from: current, knowsOthers: request.caller.scope == .allApps)
        let limit = Int(try request.body.optionalInteger("limit", in: 0...1000) ?? 1000)
        var query = DeviceQuery(limit: limit)
        query.appID = current.appID
        query.after = try request.body.optionalString("cursor").map(DeviceQuery.PageToken.init(cursor:))
        let devices = limit > 0 ? try await service.administration.list(query) : []
        let now = service.clock.now
        let (proposed, present) = (WhatIf(record, at: now), WhatIf(current, at: now))
        var sums = FindingSums()
        for device in devices {
            let known = present.findings(about: device)
            for finding in proposed.findings(about: device) {
                sums.add(finding, of: device.deviceID, isNew: !known.contains(finding))
            }
        }
        let next = devices.count == query.limit ? devices.last.map { DeviceQuery.PageToken($0).cursor } : nil
        let policies = PolicyKind.allCases.compactMap { kind in record.proofPolicy(of: kind).map { (kind.rawValue, $0) }
        }
        let cursor: JSONValue = next.map { .string($0) } ?? .null
        let isFirst = limit > 0 && query.after == nil
        let counts: JSONValue =
            isFirst ? .object(try await countFindings(proposed, present, of: current.appID)) : .null
        return .json(
            JSONObject([
                ("app_id", .string(current.appID.text)), ("devices", .integer(devices.count(where: WhatIf.judges))),
                ("findings", .array(sums.json)), ("counts", counts), ("policies", .object(JSONObject(policies))),
                ("next_cursor", cursor),
            ]))
    }
}

/// The number of devices for each finding.
private struct FindingSums {
    private static let maximumExamples = 5

    private struct Sum {
        var devices = 0
        var newly = 0
        var examples: [DeviceID] = []
    }

    private var sums: [WhatIf.Finding: Sum] = [:]

    /// - Parameter isNew: whether the device has this finding under the proposed record but not under the current one.
    mutating func add(_ finding: WhatIf.Finding, of device: DeviceID, isNew: Bool) {
        var sum = sums[finding] ?? Sum()
        sum.devices += 1
        if isNew {
            sum.newly += 1
            if sum.examples.count < Self.maximumExamples { sum.examples.append(device) }
        }
        sums[finding] = sum
    }

    /// The findings in descending order of stage, reason and code, so those about requests come first.
    var json: [JSONValue] {
        func order(_ finding: WhatIf.Finding) -> (String, String, String) {
            (finding.stage.rawValue, finding.reason.rawValue, finding.code?.rawValue ?? "")
        }
        let sorted = sums.sorted { order($0.key) > order($1.key) }
        return sorted.map { finding, sum in
            let code: JSONValue = finding.code.map { .string($0.rawValue) } ?? .null
            let examples = sum.examples.map { JSONValue.string($0.text) }
            return .object(
                JSONObject([
                    ("stage", .string(finding.stage.rawValue)), ("outcome", .string(finding.outcome.rawValue)),
                    ("code", code), ("reason", .string(finding.reason.rawValue)), ("devices", .integer(sum.devices)),
                    ("newly", .integer(sum.newly)), ("examples", .array(examples)),
                ]))
        }
    }
}
