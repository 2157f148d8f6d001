internal import AuthServer
internal import StrictJSON

/// Recorded refusals, newest first, and a search for the reason of one refusal.
struct RefusalListPage: ConsolePage {
    let path = "/refusals"
    let needs: AdminRoute? = .listRecordings
    /// The number of refusals on a page.
    private static let size = 50
    /// How often the page's script refreshes the list, in seconds. It refreshes only the newest refusals.
    private static let interval = 15

    func show(_ visit: Visit) async throws -> Page {
        let apps = try await visit.apps()
        let app = visit.narrowedApp(apps)
        let (cursor, asked) = (visit.request.query["cursor"], (visit.request.query["find"] ?? "").trimmed)
        let search = RefusalSearch(asked)
        let limit = search == nil ? Self.size : RefusalSearch.maximumCompared
        let call = AdminCall(
            .listRecordings,
            query: [("app_id", app), ("limit", String(limit)), ("cursor", search == nil ? cursor : nil)])
        var values: [String: PageValue] = [
            "apps": visit.choices(apps, chosen: app), "commands": visit.commands(call).value, "problem": .none,
            "older": .none, "search": .none,
            // Do not fill in a search text with invisible characters: the page would show them escaped, and the next search would
            // use the escaped text.
            "find": .text(VisibleText.of(asked) == asked ? asked : ""),
        ]
        var refusals: [JSONValue] = []
        do throws(CallRefused) {
            let answer = try await visit.call(call)
            refusals = answer["recordings"]?.elements ?? []
            if let search {
                let compared = refusals.count
                refusals = refusals.filter(search.matches)
                values["search"] = try await search.value(refusals.count, of: compared, in: app, visit)
            } else if !asked.isEmpty {
                refusals = []
                values["problem"] = .text(
                    "Search for a device id, 16 hexadecimal digits of the log, the id of a request, or a time such as "
                        + "2026-11-26 21:14.")
            } else if let cursor = answer["next_cursor"]?.string {
                values["older"] = .text(PagePath.of("refusals", query: [("app", app), ("cursor", cursor)]))
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        values["refusals"] = .list(refusals.prefix(Self.size).map { Self.row($0, visit) })
        values["isEmpty"] = .flag(refusals.isEmpty)
        let isNewest = cursor == nil && asked.isEmpty
        return Page("Refusals", "refusals", values, refresh: isNewest ? Self.interval : nil)
    }

    private static func row(_ refusal: JSONValue, _ visit: Visit) -> PageValue {
        let (app, id) = (refusal["app_id"]?.string ?? "", refusal["id"]?.string ?? "")
        let device = refusal["device_id"]?.string
        return [
            "path": .text(PagePath.of("refusals", app, id)), "app": .text(app),
            "device": device.map { ["id": .text($0), "path": .text(PagePath.of("devices", app, $0))] } ?? .none,
            "format": PageValue(refusal["format"]), "code": .list(words(refusal["code"]?.string ?? "")),
            "step": PageValue(refusal["step"]),
            "recorded": Moment.value(refusal["recorded_at"]?.string, now: visit.now),
            "expires": Moment.value(refusal["expires_at"]?.string, now: visit.now),
        ]
    }
}

extension RefusalListPage {
    /// The words of a refusal code, such as `NONCE_` and `MISMATCH`. Each word keeps the underscore after it, so that a
    /// line can break between the words.
    static func words(_ code: String) -> [PageValue] {
        let words = code.split(separator: "_", omittingEmptySubsequences: false)
        return words.enumerated().map { .text($1 + ($0 + 1 < words.count ? "_" : "")) }
    }
}

/// Asks for confirmation, then erases a recorded refusal.
struct RefusalErasePage: ChangePage {
    let path = "/refusals/{app_id}/{recording_id}/erase"
    let needs: AdminRoute? = .eraseRecording

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let (app, id) = (visit.parameters["app_id"] ?? "", visit.parameters["recording_id"] ?? "")
        return Change(
            title: "Erase this recorded refusal?",
            consequences: [
                "Refusal \(id) of \(app).", "Nobody can replay it any more. The audit log says that it was erased.",
                "The refusal itself stays as it is.",
            ], verb: "Erase the refusal", isDangerous: true,
            call: AdminCall(.eraseRecording, ["app_id": app, "recording_id": id]), done: "The refusal is erased.",
            next: PagePath.of("refusals", query: [("app", app)]))
    }
}
