internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    func showStatistics(_ request: AdminRequest) async throws -> APIResponse {
        var totals: [DeviceStatus: Int] = [:]
        var apps: [JSONValue] = []
        let report = await service.providerReport()
        for record in try await service.apps.readableRecords().records where request.mayAccess(record.appID) {
            let counts = try await service.administration.count(of: record.appID)
            totals.merge(counts, uniquingKeysWith: +)
            var app = JSONObject([("app_id", .string(record.appID.text)), ("devices", Self.json(counts))])
            if let android = record.android {
                app["play_integrity"] = Self.json(
                    report.integrityUsage.filter { $0.app == record.appID && android.packages.contains($0.package) })
                let source = android.keyAttestation.statusList
                app["revocation_list"] = report.revocationLists.first { $0.source == source }.map(Self.json) ?? .null
            }
            apps.append(.object(app))
        }
        return .json(
            JSONObject([
                ("server_timestamp", .integer(service.clock.now.seconds)), ("devices", Self.json(totals)),
                ("apps", .array(apps)),
            ]))
    }

    private static func json(_ counts: [DeviceStatus: Int]) -> JSONValue {
        .object(JSONObject(DeviceStatus.allCases.map { ($0.rawValue, .integer(counts[$0] ?? 0)) }))
    }

    private static func json(_ usage: [IntegrityUsage]) -> JSONValue {
        .array(
            usage.map {
                [
                    "package": .string($0.package), "day": .string($0.day.iso8601),
                    "requests": .integer($0.requests), "quota_refusals": .integer($0.refused),
                ]
            })
    }

    private static func json(_ list: RevocationListState) -> JSONValue {
        [
            "source": .string(list.source), "usable": .bool(list.isUsable),
            "entries": list.entries.map { .integer($0) } ?? .null,
            "age_seconds": list.ageSeconds.map { .integer($0) } ?? .null,
            "failure": list.failure.map { .string($0) } ?? .null,
        ]
    }
}
