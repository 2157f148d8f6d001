import AuthContract
import AuthServer
import Bytes
import Glibc
import StrictJSON

/// Carries out one decision about many devices, in calls of the admin API.
struct FleetRun {
    private static let maximumSelection = 1_000_000
    private static let maximumCall = 100
    /// The largest number of further attempts for a device that keeps changing. Each one reads the device and decides again.
    private static let maximumAttempts = 3

    let administration: any Administration
    let target: DecisionTarget
    private let isStopped = Locked(false)

    init(_ administration: any Administration, _ target: DecisionTarget) {
        self.administration = administration
        self.target = target
    }

    /// Makes the decision about each selected device, and prints the counts.
    ///
    /// - Parameters:
    ///   - decision: the decision's name in the admin API.
    ///   - body: the members of the call for one device.
    func perform(_ decision: String, with body: JSONObject, at now: UnixTime, _ output: OutputOptions) async throws {
        let ids = try target.idsOfFile()
        var plan = FleetPlan(
            decision: decision, app: target.app, asked: body, members: Self.fixed(body, at: now),
            conditions: ids == nil ? target.conditions : nil, devices: (ids ?? []).map { FleetDevice(id: $0) })
        var journal: FleetJournal?
        if let path = target.resume {
            let given = plan.devices
            (journal, plan) = try await FleetJournal.open(path, plan) {
                if ids == nil { try await select() } else { given }
            }
        } else if ids == nil {
            plan.devices = try await select()
        }
        let tally = try await decide(plan, journal, at: now)
        try output.done(
            tally.sentence(of: plan, isDryRun: target.isDryRun), tally.json(of: plan, isDryRun: target.isDryRun))
        guard tally[.refused] == 0 else { throw CommandFailure(.refused, "\(tally[.refused]) devices were refused") }
    }

    /// The JSON members of a call, with a fixed time in `by` instead of `within_seconds`.
    private static func fixed(_ body: JSONObject, at now: UnixTime) -> JSONObject {
        // `within_seconds: 0` demands the rotation at once. A repeated call makes the same demand, so it needs no fixed time.
        guard let within = body["within_seconds"]?.integer, within > 0 else { return body }
        var body = body
        body["within_seconds"] = nil
        body["by"] = .string((now + within).iso8601)
        return body
    }

    /// Throws if the run would take so long that the last devices are told to rotate only after the deadline of the rotation.
    private static func requireTime(
        for count: Int, at rate: Double, _ plan: FleetPlan, _ now: UnixTime
    ) throws(CommandFailure) {
        guard let by = plan.members["by"]?.string, let time = try? UnixTime(iso8601: by), count > 0 else { return }
        let needed = Int64(min(Double(count) / rate, 1e9).rounded(.up))
        guard now + needed >= time else { return }
        throw CommandFailure(
            .impossible,
            "\(count) devices at --rate \(rate) take \(needed) s, but their keys would be too old at \(by): give a longer --within or a higher --rate"
        )
    }

    // MARK: Selection

    private func select() async throws -> [FleetDevice] {
        let query = try FleetQuery(target.conditions)
        let found = try await administration.list(
            .listDevices, "devices", limit: Self.maximumSelection, cursor: ("cursor", "next_cursor"),
            query: [("app_id", target.app)] + query.search)
        guard found.count < Self.maximumSelection else {
            throw CommandFailure(.impossible, "more than \(Self.maximumSelection) devices: narrow --where")
        }
        return found.filter(query.matches).compactMap(FleetDevice.init)
    }

    // MARK: Decisions

    private func decide(
        _ plan: FleetPlan, _ journal: FleetJournal?, at now: UnixTime
    ) async throws -> FleetTally {
        let done = journal?.done ?? []
        let left = plan.devices.filter { !done.contains($0.id) }
        var tally = FleetTally()
        tally.doneBefore = plan.devices.count - left.count
        let rate = target.rate ?? 50
        let size = min(Self.maximumCall, max(1, Int(rate)))
        try Self.requireTime(for: left.count, at: rate, plan, now)
        if !target.isDryRun, !left.isEmpty { try journal?.begin(with: plan.members) }
        let start = ContinuousClock.now
        var progress = FleetProgress(plan.decision, of: left.count)
        try await interruptible(by: { [isStopped] in isStopped.withLock { $0 = true } }) {
            for first in stride(from: 0, to: left.count, by: size) {
                guard !isStopped.withLock({ $0 }) else { break }
                // The n-th device is due n/rate seconds after the start.
                try await Task.sleep(until: start + .seconds(Double(first) / rate), clock: .continuous)
                let results = try await results(of: Array(left[first..<min(first + size, left.count)]), plan)
                if !target.isDryRun { try journal?.add(results) }
                tally.add(results)
                progress.tell(tally)
            }
        }
        for line in tally.refusalLines { StandardError.print(line) }
        guard tally.count == left.count else {
            throw CommandFailure(
                .impossible, "stopped with \(left.count - tally.count) devices left: run the command again")
        }
        return tally
    }

    private func results(of devices: [FleetDevice], _ plan: FleetPlan) async throws -> [FleetResult] {
        let first = try await call(devices, plan)
        guard plan.conditions != nil else { return first }
        var results: [FleetResult] = []
        for result in first {
            results.append(result.isStale ? try await again(result, plan) : result)
        }
        return results
    }

    /// Decides again about a device that changed after its selection, if it still meets the conditions.
    private func again(_ stale: FleetResult, _ plan: FleetPlan) async throws -> FleetResult {
        let query = try FleetQuery(plan.conditions ?? [])
        var result = stale
        for _ in 0..<Self.maximumAttempts where result.isStale {
            let current = try await administration.ask(.showDevice, target.parameters(of: stale.id))
            guard query.matches(current) else { return FleetResult(id: stale.id, outcome: .skipped) }
            guard let device = FleetDevice(current), let next = try await call([device], plan).first else { break }
            result = next
        }
        return result
    }

    private func call(_ devices: [FleetDevice], _ plan: FleetPlan) async throws -> [FleetResult] {
        let answer = try await administration.ask(
            .decideDevices, ["app_id": plan.app],
            body: JSONObject([
                ("decision", .string(plan.decision)), ("with", .object(plan.members)),
                ("devices", .array(devices.map { .object($0.json) })), ("dry_run", .bool(target.isDryRun)),
            ]))
        let results = (answer["results"]?.array ?? []).compactMap(\.object).compactMap(FleetResult.init)
        guard results.map(\.id) == devices.map(\.id) else {
            throw CommandFailure(.impossible, "the answer is not about the devices of the call")
        }
        return results
    }
}

extension FleetResult {
    fileprivate var isStale: Bool { code == "PRECONDITION_FAILED" }
}

extension FleetDevice {
    /// Reads a device from the admin API's JSON. Returns nil if the JSON has no device id.
    init?(_ json: JSONObject) {
        guard let id = json["device_id"]?.string else { return nil }
        self.init(id: id, version: json["version"]?.integer)
    }
}

/// Reports the progress of a run on standard error: a line each second on a terminal, otherwise every ten seconds.
private struct FleetProgress {
    private let what: String
    private let total: Int
    private let pause = Duration.seconds(isatty(STDERR_FILENO) == 1 ? 1 : 10)
    private let start = ContinuousClock.now
    private var last = ContinuousClock.now

    init(_ what: String, of total: Int) {
        self.what = what
        self.total = total
    }

    mutating func tell(_ tally: FleetTally) {
        guard last.duration(to: .now) >= pause else { return }
        last = .now
        let rate = Double(tally.count) / max(start.duration(to: .now).inSeconds, 1e-6)
        StandardError.print(
            "\(what): \(tally.count) of \(total) devices (\(Int(rate)) a second), \(tally[.refused]) refused")
    }
}
