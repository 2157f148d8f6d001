import Glibc
import StrictJSON

/// The plan of a run that makes one decision, such as a revocation, about many devices.
struct FleetPlan: Sendable {
    /// The decision's name in the admin API.
    let decision: String
    let app: String
    /// The JSON members of the call for one device, as given on the command line.
    let asked: JSONObject
    /// The JSON members of each call. A time relative to now is replaced by a fixed time, so that a repeated call makes the
    /// same demand.
    var members: JSONObject
    /// The conditions of `--where`. Nil if the run takes its devices from a file of ids.
    let conditions: [String]?
    var devices: [FleetDevice] = []

    fileprivate var head: JSONObject {
        let texts = conditions.map { $0.map { JSONValue.string($0) } }
        let query: JSONValue = texts.map { .array($0) } ?? .null
        return JSONObject([
            ("synheart_fleet", 1), ("decision", .string(decision)), ("app_id", .string(app)), ("asked", .object(asked)),
            ("where", query),
        ])
    }
}

/// The file of `--resume`, in JSON lines: the plan, its devices, and the result of each call for a device.
///
/// A device is recorded after its change. If the process dies in between, the next run repeats the change, which then has no
/// effect.
final class FleetJournal {
    private static let maximumSize = 256 << 20
    private let descriptor: Int32
    private let path: String
    /// The devices that need no further call.
    private(set) var done: Set<String> = []
    /// Whether the file already has the JSON members of the calls (`FleetPlan.members`).
    private var hasMembers = false

    /// Continues the run of an existing file, or writes the plan into a new one.
    ///
    /// - Parameter select: selects the devices of a new run.
    /// - Returns: the journal, and the plan in the file.
    static func open(
        _ path: String, _ plan: FleetPlan, selecting select: () async throws -> [FleetDevice]
    ) async throws -> (journal: FleetJournal, plan: FleetPlan) {
        var plan = plan
        if access(path, F_OK) != 0 {
            plan.devices = try await select()
            let lines =
                [plan.head] + plan.devices.map(\.json) + [JSONObject([("selected", .integer(plan.devices.count))])]
            try OutputFile.write(lines.map { JSONValue.object($0).text() + "\n" }.joined(), to: path)
        }
        let journal = try FleetJournal(locking: path)
        return (journal, try journal.read(plan))
    }

    private init(locking path: String) throws(CommandFailure) {
        self.path = path
        descriptor = Glibc.open(path, O_RDWR | O_APPEND | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(path, String(cString: strerror(errno))) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw Self.failure(path, "another run is using it") }
    }

    deinit { close(descriptor) }

    /// Reads the file. Cuts off a line that a crash left incomplete, once the file is known to be the journal of this run.
    private func read(_ plan: FleetPlan) throws -> FleetPlan {
        let bytes = try InputFile.bytes(path, maximum: Self.maximumSize)
        let whole = bytes.lastIndex(of: UInt8(ascii: "\n")).map { bytes[...$0] } ?? []
        var plan = plan
        // Earlier versions of this command wrote the JSON members of the calls into the first line.
        var earlier: JSONObject?
        var (devices, isSelected) = ([FleetDevice](), false)
        for (number, line) in whole.split(separator: UInt8(ascii: "\n")).enumerated() {
            guard let json = try? JSONValue(parsing: line).object else {
                throw Self.failure(path, "line \(number + 1) is damaged")
            }
            if number == 0 {
                try Self.check(json, against: plan, path)
                earlier = json["with"]?.object
            } else if let members = json["with"]?.object {
                (plan.members, hasMembers) = (members, true)
            } else if let count = json["selected"]?.integer {
                isSelected = Int(count) == devices.count
            } else if let id = json["device_id"]?.string {
                if !isSelected { devices.append(FleetDevice(id: id, version: json["version"]?.integer)) }
                if isSelected, json["outcome"]?.string != FleetResult.Outcome.refused.rawValue { done.insert(id) }
            }
        }
        guard isSelected else { throw Self.failure(path, "it has no selection: remove it, and begin again") }
        // If the devices come from a file of ids, that file must still list the devices in the journal. Conditions are not
        // evaluated again: the run uses the devices in the journal.
        guard plan.conditions != nil || plan.devices.isEmpty || plan.devices == devices else {
            throw Self.failure(path, "it is of a run over other devices: name another file")
        }
        plan.devices = devices
        if let earlier, !hasMembers, !done.isEmpty { (plan.members, hasMembers) = (earlier, true) }
        guard whole.count == bytes.count || ftruncate(descriptor, whole.count) == 0 else {
            throw Self.failure(path, String(cString: strerror(errno)))
        }
        return plan
    }

    private static func check(_ head: JSONObject, against plan: FleetPlan, _ path: String) throws(CommandFailure) {
        var (kept, own) = (head, plan.head)
        // Earlier versions wrote the members of the calls into the first line, as `with`. Do not compare them: the time in
        // them differs in each run.
        (kept["with"], own["with"]) = (nil, nil)
        guard kept == own else { throw failure(path, "it is of another run: repeat its command, or name another file") }
    }

    /// Records the JSON members of the calls before the first call, so that a resumed run sends the same members. A dry run
    /// does not call this.
    func begin(with members: JSONObject) throws(CommandFailure) {
        guard !hasMembers else { return }
        try append([JSONObject([("with", .object(members))])])
        hasMembers = true
    }

    /// Records finished devices. Returns when the records are on the disk.
    func add(_ results: [FleetResult]) throws(CommandFailure) { try append(results.map(\.json)) }

    private func append(_ lines: [JSONObject]) throws(CommandFailure) {
        let text = lines.map { JSONValue.object($0).text() + "\n" }.joined()
        if let number = StandardStreams.write(text, to: descriptor) {
            throw Self.failure(path, String(cString: strerror(number)))
        }
        guard fdatasync(descriptor) == 0 || errno == EINVAL else {
            throw Self.failure(path, String(cString: strerror(errno)))
        }
    }

    private static func failure(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure(.impossible, "\(path): \(reason)")
    }
}
