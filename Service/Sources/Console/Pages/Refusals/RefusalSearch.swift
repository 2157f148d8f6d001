internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// A search term for a refusal, from a user, an app's developer or a line of the log.
enum RefusalSearch: Sendable, Hashable {
    /// The id of a device. It may also be the id of a recorded refusal or of a request, which can have the same form.
    case device(DeviceID)
    /// The hash of a device's id, as in the log.
    case hash(String)
    /// The approximate time.
    case time(UnixTime)
    /// The id of a request that does not have the form of a device id. Only the log contains ids of requests.
    case request(String)

    /// The number of newest recorded refusals that are compared with the search term. The service keeps at most this many of one
    /// app.
    static let maximumCompared = 1000
    /// A search for a time covers this many seconds before and after that time.
    static let span: Int64 = 15 * 60

    /// Parses a search term; nil if the text has none of these forms.
    init?(_ text: String) {
        let text = text.trimmed
        let bytes = text.utf8
        if let id = try? DeviceID(text.lowercased()) {
            self = .device(id)
        } else if bytes.count == 16, bytes.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) {
            self = .hash(text.lowercased())
        } else if let time = Self.time(text) {
            self = .time(time)
        } else if 1...128 ~= bytes.count,
            text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) })
        {
            self = .request(text)
        } else {
            return nil
        }
    }

    /// A time in UTC, to the minute or to the second, as pages, the log and the API write it; nil: the text is no such time.
    private static func time(_ text: String) -> UnixTime? {
        var text = text.uppercased()
        for end in [" UTC", "Z"] where text.hasSuffix(end) { text.removeLast(end.count) }
        text = text.replacing(" ", with: "T")
        return try? UnixTime(iso8601: text + (text.utf8.count == 16 ? ":00Z" : "Z"))
    }

    /// Whether a recorded refusal matches the search.
    func matches(_ refusal: JSONValue) -> Bool {
        let device = refusal["device_id"]?.string.flatMap { try? DeviceID($0) }
        switch self {
        case .device(let id): return device == id || refusal["id"]?.string == id.text
        case .hash(let hash): return device?.logged == hash
        case .time(let time):
            let recorded = refusal["recorded_at"]?.string.flatMap { try? UnixTime(iso8601: $0) }
            return recorded.map { abs($0 - time) <= Self.span } ?? false
        case .request: return false
        }
    }

    /// The commands that find the refusals in a machine's log, each with a description.
    var log: [(sentence: String, command: String)] {
        let journal = "journalctl -u synheart-auth -o cat"
        func lines(_ member: String, _ value: String) -> String {
            "\(journal) | grep -F \(Shell.quoted("\"\(member)\":\"\(value)\""))"
        }
        switch self {
        case .device(let id):
            return [
                ("The requests of the device, which the log names by the hash of its id", lines("device", id.logged)),
                ("If it is the id of a request", lines("request_id", id.text)),
            ]
        case .hash(let hash): return [("The requests of the device", lines("device", hash))]
        case .request(let id): return [("The request", lines("request_id", id))]
        case .time(let time):
            func moment(_ time: UnixTime) -> String { Shell.quoted(Moment(time: time, now: time).utc) }
            let span = "--since \(moment(time - Self.span)) --until \(moment(time + Self.span))"
            return [("The refused requests of the time", "\(journal) \(span) | grep -F '\"reason\":'")]
        }
    }
}

extension RefusalSearch {
    /// The id or the hash of the device that is searched for; nil: the search is for a time or a request.
    private var searched: String? {
        switch self {
        case .device(let id): id.text
        case .hash(let hash): hash
        case .time, .request: nil
        }
    }

    /// The value for the template `refusals`.
    ///
    /// - Parameters:
    ///   - count: the number of matching recorded refusals.
    ///   - compared: the number of recorded refusals that were compared.
    ///   - app: the app whose devices are searched; nil: all apps of the person.
    func value(_ count: Int, of compared: Int, in app: String?, _ visit: Visit) async throws(CallRefused) -> PageValue {
        var sentences: [String] = []
        let recorded = "\(Int64(count).grouped) of the newest \(Int64(compared).grouped) recorded refusals"
        switch self {
        case .device: sentences.append("\(recorded) are of this device, or have this id.")
        case .hash: sentences.append("\(recorded) are of a device with this hash.")
        case .time: sentences.append("\(recorded) are from 15 minutes before until 15 minutes after that time.")
        case .request:
            sentences.append(
                "Only the log knows requests by their ids. Its line has the reason, and the hash of the device: search for that."
            )
        }
        var device = PageValue.none
        if let searched {
            if let found = try await DeviceListPage.find(searched, in: app, visit).first,
                let app = found["app_id"]?.string, let id = found["device_id"]?.string
            {
                device = [
                    "id": .text(id), "app": .text(app), "status": PageValue(found["status"]),
                    "path": .text(PagePath.of("devices", app, id)),
                ]
            } else {
                let place = app.map { "The app \($0) has no such device. If no other app has it" } ?? "No app has it"
                sentences.append("\(place), its requests are refused with NOT_REGISTERED.")
            }
        }
        return [
            "device": device, "sentences": .list(sentences.map { .text($0) }),
            "log": .list(log.map { ["sentence": .text($0.sentence), "command": .lines($0.command)] }),
        ]
    }
}
