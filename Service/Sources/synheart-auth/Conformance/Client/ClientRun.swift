import AuthContract
import Bytes
import Foundation
import StrictJSON

/// Plays cases against a client's command, several concurrently.
struct ClientRun: Sendable {
    let command: [String]
    let appID: AppID
    /// The path of the PEM file with the test kit's simulated Apple (`--authority`).
    let authority: String
    /// A folder for the clients' states and outputs.
    let folder: String
    /// The host that the client connects to.
    let host: String
    let service: ClientStage.Service
    /// The longest time that one launch of the command may run. Then it is killed.
    let limit: Duration

    /// Plays cases concurrently, at most one at a time at each listener, and reports the results in the order of the cases.
    func play(
        _ cases: [ClientCase], at listeners: [FaultListener], _ tell: (ClientCase, CaseResult) throws -> Void
    ) async throws {
        let (results, report) = AsyncStream.makeStream(of: (Int, CaseResult).self)
        let problem = Locked<(any Error)?>(nil)
        let next = Locked(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for listener in listeners {
                let stage = Locked<ClientStage?>(nil)
                group.addTask {
                    try await listener.run { request in
                        guard let stage = stage.withLock({ $0 }) else { return .nothing }
                        return await stage.respond(to: request)
                    }
                }
                group.addTask {
                    do {
                        while let index = Self.take(next, of: cases.count) {
                            report.yield((index, try await result(of: cases[index], at: listener, stage)))
                        }
                    } catch {
                        problem.withLock { $0 = $0 ?? error }
                        report.finish()
                    }
                }
            }
            var waiting: [Int: CaseResult] = [:]
            var told = 0
            for await (index, result) in results {
                waiting[index] = result
                while let result = waiting.removeValue(forKey: told) {
                    try tell(cases[told], result)
                    told += 1
                }
                if told == cases.count { break }
            }
            group.cancelAll()
        }
        try Task.checkCancellation()
        if let problem = problem.withLock({ $0 }) { throw problem }
    }

    /// Takes the next index; nil if all are taken.
    private static func take(_ next: Locked<Int>, of count: Int) -> Int? {
        next.withLock { next in
            guard next < count else { return nil }
            defer { next += 1 }
            return next
        }
    }

    private func result(
        of item: ClientCase, at listener: FaultListener, _ place: Locked<ClientStage?>
    ) async throws -> CaseResult {
        let stage = ClientStage(service, faults: item.faults)
        place.withLock { $0 = stage }
        let url = "http://\(host):\(listener.port)"
        do {
            let results = try await launch(item, on: stage, url)
            let trace = ClientTrace(arrivals: stage.arrivals, results: results)
            try trace.keepsTheRules(of: item)
            try item.check(trace)
            return CaseResult(state: .holds, reason: "", exchanges: [])
        } catch CaseEnd.skipped(let reason) {
            return CaseResult(state: .skipped, reason: reason, exchanges: [])
        } catch CaseEnd.fails(let reason) {
            return CaseResult(state: .fails, reason: reason, exchanges: stage.exchanges(at: url))
        }
    }

    /// Starts the command once for each launch of the case, and reads its output.
    private func launch(_ item: ClientCase, on stage: ClientStage, _ url: String) async throws -> [[StepResult]] {
        let place = "\(folder)/\(item.id)"
        try FileManager.default.createDirectory(
            atPath: place + "/state", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        var results: [[StepResult]] = []
        for (number, steps) in item.launches.enumerated() {
            stage.begin(launch: number)
            let process = ClientProcess(
                command: command,
                environment: [
                    "CONFORMANCE_URL": url, "CONFORMANCE_APP": appID.text, "CONFORMANCE_STATE": place + "/state",
                    "CONFORMANCE_AUTHORITY": authority, "CONFORMANCE_CASE": item.id,
                    "CONFORMANCE_STEPS": JSONValue.array(steps.map { .object($0.json) }).text(),
                ], folder: place, limit: limit)
            let ending = try await process.run(stage.isKilled)
            try Task.checkCancellation()
            // These exit codes of `env` and shells mean that the program does not exist or cannot be executed.
            guard ending.code != 126, ending.code != 127 else {
                throw CommandFailure(
                    .impossible,
                    "\(command[0]) cannot be started: \(ending.errors.trimmingCharacters(in: .whitespacesAndNewlines))")
            }
            guard !ending.isTooLate else { throw CaseEnd.fails("the command did not end within \(limit)") }
            let said = ending.output.split(separator: "\n").compactMap { StepResult(String($0)) }
            if let index = said.firstIndex(where: \.isUnsupported), steps.indices.contains(index) {
                throw CaseEnd.skipped("the client does not support \(steps[index].name)")
            }
            results.append(said)
            guard !stage.wasKilled else { continue }
            guard ending.code == 0 else {
                let how = ending.code.map { "exit code \($0)" } ?? "a signal"
                throw CaseEnd.fails("the command ended with \(how): \(ending.errors)")
            }
            guard said.count == steps.count else {
                throw CaseEnd.fails(
                    "the command has \(steps.count) steps and printed \(said.count) results: \(ending.errors)")
            }
        }
        return results
    }
}

extension ClientStage {
    /// The last received requests and sent answers, for a report.
    fileprivate func exchanges(at url: String) -> [Exchange] {
        arrivals.suffix(8).map { arrival in
            Exchange(
                url: url + arrival.request.target, sent: arrival.request,
                came: arrival.answer.map { .success($0) } ?? .failure(NoAnswer(ConnectionEnded())))
        }
    }
}

/// The reason why a client got no complete answer.
private struct ConnectionEnded: Error, CustomStringConvertible {
    let description = "the connection was ended"
}
